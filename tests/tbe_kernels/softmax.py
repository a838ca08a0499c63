"""Softmax over one axis, an attribute."""

import te.lang.cce
from mindspore.ops.op_info_register import DataType, TBERegOp, op_info_register
from te import tvm
from te.utils import shape_util
from topi import generic
from topi.cce import util

softmax_op_info = (
    TBERegOp("Softmax")
    .kernel_name("softmax")
    .attr("axis", "optional", "int", "all", "-1")
    .input(0, "x", None, "required", None)
    .output(0, "y", True, "required", "all")
    .dtype_format(DataType.F32_Default, DataType.F32_Default)
    .dtype_format(DataType.F16_Default, DataType.F16_Default)
    .get_op_info()
)


@op_info_register(softmax_op_info)
def _softmax_tbe():
    """Registers Softmax."""
    return


@util.check_input_type(dict, dict, int, str)
def softmax(x, y, axis=-1, kernel_name="softmax"):
    """exp(x - max) / sum(exp(x - max))."""
    shape = x.get("shape")
    axis = shape_util.axis_check(len(shape), axis)
    data = tvm.placeholder(shape, name="x", dtype=x.get("dtype"))
    top = te.lang.cce.reduce_max(data, axis=axis, keepdims=True)
    exponent = te.lang.cce.vexp(te.lang.cce.vsub(data, te.lang.cce.broadcast(top, shape)))
    total = te.lang.cce.sum(exponent, axis=axis, keepdims=True)
    res = te.lang.cce.vdiv(exponent, te.lang.cce.broadcast(total, shape))
    with tvm.target.cce():
        sch = generic.auto_schedule(res)
    te.lang.cce.cce_build_code(sch, {"name": kernel_name, "tensor_list": [data, res]})
