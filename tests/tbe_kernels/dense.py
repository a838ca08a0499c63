"""A dense layer: a product of matrices, its bias optional, and a leaky activation."""

import te.lang.cce
from mindspore.ops.op_info_register import DataType, TBERegOp, op_info_register
from tbe.tvm.topi import generic
from te import tvm

dense_op_info = (
    TBERegOp("Dense")
    .kernel_name("dense")
    .attr("slope", "required", "float", "all")
    .input(0, "x", None, "required", None)
    .input(1, "w", None, "required", None)
    .input(2, "bias", None, "optional", None)
    .output(0, "y", True, "required", "all")
    .dtype_format(*[DataType.F32_Default] * 4)
    .get_op_info()
)


@op_info_register(dense_op_info)
def _dense_tbe():
    """Registers Dense."""
    return


def dense(x, w, bias, y, slope, kernel_name="dense"):
    """leaky(x @ w.T + bias)."""
    data = [
        tvm.placeholder(one.get("shape"), name=name, dtype=one.get("dtype"))
        for one, name in ((x, "x"), (w, "w"), (bias, "bias"))
        if one is not None
    ]
    product = te.lang.cce.matmul(
        data[0], data[1], False, True, tensor_bias=data[2] if bias is not None else None
    )
    res = te.lang.cce.vlrelu(product, slope)
    with tvm.target.cce():
        sch = generic.auto_schedule(res)
    te.lang.cce.cce_build_code(sch, {"name": kernel_name, "tensor_list": [*data, res]})
