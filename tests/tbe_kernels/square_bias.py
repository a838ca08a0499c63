"""Two outputs, of which one is made from the other: x * x, and x * x + bias."""

import tbe
import tbe.dsl
from mindspore.ops.op_info_register import DataType, TBERegOp, op_info_register
from tbe import tvm
from tbe.common.register import register_op_compute
from tbe.common.utils import para_check, shape_util

square_bias_op_info = (
    TBERegOp("SquareBias")
    .fusion_type("OPAQUE")
    .async_flag(False)
    .binfile_name("square_bias.so")
    .compute_cost(10)
    .kernel_name("square_bias")
    .partial_flag(True)
    .attr("bias", "optional", "float", "all", "1.0")
    .input(0, "x", None, "required", None)
    .output(0, "square", True, "required", "all")
    .output(1, "shifted", True, "required", "all")
    .dtype_format(*[DataType.F32_Default] * 3)
    .get_op_info()
)


@op_info_register(square_bias_op_info)
def _square_bias_tbe():
    """Registers SquareBias."""
    return


@register_op_compute("square_bias")
def square_bias_compute(x, bias):
    """Returns both."""
    square = tbe.dsl.vmul(x, x)
    return [square, tbe.dsl.vadds(square, bias)]


@para_check.check_op_params(
    para_check.REQUIRED_INPUT,
    para_check.REQUIRED_OUTPUT,
    para_check.REQUIRED_OUTPUT,
    para_check.OPTION_ATTR_FLOAT,
    para_check.KERNEL_NAME,
)
def square_bias(x, square, shifted, bias=1.0, kernel_name="square_bias"):
    """x * x, and x * x + bias."""
    shape = shape_util.shape_refine(x.get("shape"))
    para_check.check_shape(shape, param_name="x")
    para_check.check_dtype(x.get("dtype"), ("float16", "float32"), param_name="x")
    data = tvm.placeholder(shape, name="x", dtype=x.get("dtype"))
    results = square_bias_compute(data, bias)
    with tvm.target.cce():
        sch = tbe.dsl.auto_schedule(results)
    tbe.dsl.build(sch, {"name": kernel_name, "tensor_list": [data, *results]})
