"""Y1(x), the Bessel function of the second kind, by the polynomials of Abramowitz and Stegun.

Formulas 9.4.4, 9.4.5 and 9.4.6: one form up to 3, one beyond. Y1 of a negative number is that of
its absolute value.
"""

import math

import te.lang.cce as tbe
from mindspore.ops.op_info_register import DataType, TBERegOp, op_info_register
from tbe.common.platform import api_check_support
from tbe.common.register import register_op_compute
from te import tvm
from te.utils import para_check, shape_util

BORDER = 3.0
J1_NEAR = [0.5, -0.56249985, 0.21093573, -0.03954289, 0.00443319, -0.00031761, 0.00001109]
Y1_NEAR = [-0.6366198, 0.2212091, 2.1682709, -1.3164827, 0.3123951, -0.0400976, 0.0027873]
SIZE_FAR = [
    0.79788456,
    0.00000156,
    0.01659667,
    0.00017105,
    -0.00249511,
    0.00113653,
    -0.00020033,
]
ANGLE_FAR = [
    -2.35619449,
    0.12499612,
    0.0000565,
    -0.00637879,
    0.00074348,
    0.00079824,
    -0.00029166,
]
SINE = [(-1) ** k / math.factorial(2 * k + 1) for k in range(10)]

bessel_y1_op_info = (
    TBERegOp("BesselY1")
    .fusion_type("ELEMWISE")
    .async_flag(False)
    .binfile_name("bessel_y1.so")
    .compute_cost(10)
    .kernel_name("bessel_y1")
    .partial_flag(True)
    .op_pattern("formatAgnostic")
    .input(0, "x", False, "required", "all")
    .output(0, "y", False, "required", "all")
    .dtype_format(DataType.F16_Default, DataType.F16_Default)
    .dtype_format(DataType.F32_Default, DataType.F32_Default)
    .get_op_info()
)


@op_info_register(bessel_y1_op_info)
def _bessel_y1_tbe():
    """Registers BesselY1."""
    return


def _polynomial(x, coefficients):
    """Returns the polynomial at x, by Horner's scheme."""
    res = tbe.vmuls(x, tvm.const(coefficients[-1], x.dtype))
    for coefficient in coefficients[-2:0:-1]:
        res = tbe.vmul(tbe.vadds(res, tvm.const(coefficient, x.dtype)), x)
    return tbe.vadds(res, tvm.const(coefficients[0], x.dtype))


def _sine(x):
    """Returns sin(x): whole turns are taken away, the rest goes into Taylor's series."""
    turns = tbe.floor(tbe.vadds(tbe.vmuls(x, 1 / (2 * math.pi)), 0.5))
    turns = tbe.cast_to(turns, x.dtype)
    # Two parts of 2 pi: the first has few digits, so its products are exact.
    rest = tbe.vadd(x, tbe.vmuls(turns, -6.28125))
    rest = tbe.vadd(rest, tbe.vmuls(turns, 6.28125 - 2 * math.pi))
    return tbe.vmul(rest, _polynomial(tbe.vmul(rest, rest), SINE))


@register_op_compute("bessel_y1")
def bessel_y1_compute(x, y, kernel_name="bessel_y1"):
    """Returns Y1 of the absolute value of x."""
    dtype_input = x.dtype
    if not api_check_support("te.lang.cce.vadd", "float32"):
        raise RuntimeError(f"BesselY1 kernel data type [{dtype_input}] not support.")
    x = tbe.vabs(tbe.cast_to(x, "float32"))
    border = tbe.broadcast(tvm.const(BORDER, x.dtype), x.shape)

    near = tbe.vmin(x, border)
    square = tbe.vmuls(tbe.vmul(near, near), 1 / BORDER**2)
    j1 = tbe.vmul(near, _polynomial(square, J1_NEAR))
    log = tbe.vlog(tbe.vmuls(near, 0.5))
    product = tbe.vmul(tbe.vmuls(tbe.vmul(near, log), 2 / math.pi), j1)
    res_near = tbe.vdiv(tbe.vadd(product, _polynomial(square, Y1_NEAR)), near)

    far = tbe.vmax(x, border)
    ratio = tbe.vmuls(tbe.vrec(far), BORDER)
    angle = tbe.vadd(far, _polynomial(ratio, ANGLE_FAR))
    size = tbe.vmul(tbe.vrsqrt(far), _polynomial(ratio, SIZE_FAR))
    res_far = tbe.vmul(size, _sine(angle))

    res = tbe.vcmpsel(x, border, "lt", res_near, res_far)
    if dtype_input == "float16":
        res = tbe.cast_to(res, "float16")
    return res


@para_check.check_op_params(
    para_check.REQUIRED_INPUT, para_check.REQUIRED_OUTPUT, para_check.KERNEL_NAME
)
def bessel_y1(x, y, kernel_name="bessel_y1"):
    """Builds BesselY1."""
    shape_input = x.get("shape")
    dtype_input = x.get("dtype").lower()
    para_check.check_shape(shape_input, param_name="x")
    para_check.check_dtype(dtype_input, ("float16", "float32"), param_name="x")
    shape_input, _ = shape_util.refine_shape_axes(shape_input, [])
    data = tvm.placeholder(shape_input, dtype=dtype_input, name="data_input")
    res = bessel_y1_compute(data, y, kernel_name)
    with tvm.target.cce():
        sch = tbe.auto_schedule(res)
    config = {
        "name": kernel_name,
        "print_ir": False,
        "tensor_list": (data, res),
        "bool_storage_as_1bit": False,
    }
    tbe.cce_build_code(sch, config)
