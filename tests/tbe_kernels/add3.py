"""y = a + b + c, without more than the entry."""

import te.lang.cce
from mindspore.ops import CustomRegOp, DataType, custom_info_register
from te import tvm

INFO = (
    CustomRegOp("Add3")
    .input(0, "a")
    .input(1, "b")
    .input(2, "c")
    .output(0, "y")
    .dtype_format(*[DataType.F16_Default] * 4)
    .dtype_format(*[DataType.F32_Default] * 4)
    .dtype_format(*[DataType.I32_Default] * 4)
    .target("Ascend")
    .get_op_info()
)


@custom_info_register(INFO)
def add3(a, b, c, y, kernel_name="add3"):
    """Adds three tensors of one shape."""
    data = [tvm.placeholder(x.get("shape"), name="x", dtype=x.get("dtype")) for x in (a, b, c)]
    res = te.lang.cce.vadd(te.lang.cce.vadd(data[0], data[1]), data[2])
    with tvm.target.cce():
        sch = te.lang.cce.auto_schedule(res)
    te.lang.cce.cce_build_code(sch, {"name": kernel_name, "tensor_list": [*data, res]})
