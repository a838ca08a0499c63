"""The sum of a list of tensors, and of an optional bias."""

import te.lang.cce
from mindspore.ops import CustomRegOp, DataType, custom_info_register
from tbe.tvm.topi.cce import util
from te import tvm

INFO = (
    CustomRegOp("AddN")
    .input(0, "inputs", "dynamic")
    .input(1, "bias", "optional")
    .output(0, "y")
    .dtype_format(DataType.F32_Default, DataType.F32_Default, DataType.F32_Default)
    .target("Ascend")
    .get_op_info()
)


@custom_info_register(INFO)
@util.check_input_type((list, tuple), (dict, type(None)), dict, str)
def add_n(inputs, bias, y, kernel_name="add_n"):
    """Adds as many tensors as there are."""
    data = [
        tvm.placeholder(x.get("shape"), name=f"data_{i}", dtype=x.get("dtype"))
        for i, x in enumerate(inputs)
    ]
    res = data[0]
    for one in data[1:]:
        res = te.lang.cce.vadd(res, one)
    if bias:
        data.append(tvm.placeholder(bias.get("shape"), name="bias", dtype=bias.get("dtype")))
        res = te.lang.cce.vadd(res, te.lang.cce.broadcast(data[-1], res.shape))
    with tvm.target.cce():
        sch = te.lang.cce.auto_schedule(res)
    te.lang.cce.cce_build_code(sch, {"name": kernel_name, "tensor_list": [*data, res]})
