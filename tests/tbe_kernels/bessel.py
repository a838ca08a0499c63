"""exp(-|x|) I0(x) and exp(-|x|) I1(x) by Chebyshev series, for |x| up to 8 and beyond.

The series are interpolated when the file is loaded, from I0's and I1's integrals.
"""

import numpy as np
import te.lang.cce
from mindspore.ops.op_info_register import DataType, TBERegOp, op_info_register
from tbe.tvm.topi import generic
from tbe.tvm.topi.cce import util
from te import tvm
from te.platform.fusion_manager import fusion_manager

BORDER = 8.0


def _scaled_bessel(order, x):
    """exp(-x) I_order(x) for x >= 0: the mean of exp(x (cos t - 1)) cos(order t) over a circle."""
    angles = np.arange(400) * (2 * np.pi / 400)
    return np.mean(np.exp(x[..., None] * (np.cos(angles) - 1)) * np.cos(order * angles), axis=-1)


def _series(order):
    """Returns both series: in x / 4 - 1, and in 16 / x - 1 for sqrt(x) times the function."""
    near = np.polynomial.chebyshev.chebinterpolate(
        lambda t: _scaled_bessel(order, (t + 1) * BORDER / 2), 26
    )
    far = np.polynomial.chebyshev.chebinterpolate(
        lambda t: (lambda x: np.sqrt(x) * _scaled_bessel(order, x))(2 * BORDER / (t + 1.02)), 16
    )
    return near, far


def _op_info(name, kernel):
    return (
        TBERegOp(name)
        .kernel_name(kernel)
        .input(0, "x", None, "required", None)
        .output(0, "y", True, "required", "all")
        .dtype_format(DataType.F16_Default, DataType.F16_Default)
        .dtype_format(DataType.F32_Default, DataType.F32_Default)
        .get_op_info()
    )


@op_info_register(_op_info("BesselI0e", "bessel_i0e"))
def _bessel_i0e_tbe():
    """Registers BesselI0e."""
    return


@op_info_register(_op_info("BesselI1e", "bessel_i1e"))
def _bessel_i1e_tbe():
    """Registers BesselI1e."""
    return


def _clenshaw(y, coefficients):
    """Returns the Chebyshev series at y, by Clenshaw's recurrence."""
    twice = te.lang.cce.vmuls(y, 2.0)
    now = te.lang.cce.broadcast(float(coefficients[-1]), y.shape, y.dtype)
    before = te.lang.cce.broadcast(0.0, y.shape, y.dtype)
    for coefficient in coefficients[-2:0:-1]:
        following = te.lang.cce.vsub(te.lang.cce.vmul(twice, now), before)
        now, before = te.lang.cce.vadds(following, float(coefficient)), now
    last = te.lang.cce.vsub(te.lang.cce.vmul(y, now), before)
    return te.lang.cce.vadds(last, float(coefficients[0]))


@fusion_manager.register("bessel")
def bessel_compute(x, order):
    """Returns the scaled function of one order."""
    near, far = _series(order)
    size = te.lang.cce.vabs(x)
    inner = te.lang.cce.vmins(size, BORDER)
    close = _clenshaw(te.lang.cce.vadds(te.lang.cce.vmuls(inner, 2 / BORDER), -1.0), near)
    outer = te.lang.cce.vmaxs(size, BORDER)
    reciprocal = te.lang.cce.vmuls(te.lang.cce.vrec(outer), 2 * BORDER)
    distant = te.lang.cce.vmul(
        _clenshaw(te.lang.cce.vadds(reciprocal, -1.02), far), te.lang.cce.vrsqrt(outer)
    )
    res = te.lang.cce.vcmpsel(size, BORDER, "le", close, distant)
    if order == 1:
        res = te.lang.cce.vmul(res, te.lang.cce.vcmpsel(x, 0.0, "lt", -1.0, 1.0))
    return res


def _build(x, order, kernel_name):
    util.check_kernel_name(kernel_name)
    util.check_shape_rule(x.get("shape"))
    dtype = x.get("dtype").lower()
    data = tvm.placeholder(util.shape_refine(x.get("shape")), name="x", dtype=dtype)
    wide = data
    if dtype == "float16":
        wide = te.lang.cce.cast_to(data, "float32")
    res = bessel_compute(wide, order)
    if dtype == "float16":
        res = te.lang.cce.cast_to(res, "float16")
    with tvm.target.cce():
        sch = generic.auto_schedule(res)
    te.lang.cce.cce_build_code(sch, {"name": kernel_name, "tensor_list": [data, res]})


@util.check_input_type(dict, dict, str)
def bessel_i0e(x, y, kernel_name="bessel_i0e"):
    """exp(-|x|) I0(x)."""
    _build(x, 0, kernel_name)


@util.check_input_type(dict, dict, str)
def bessel_i1e(x, y, kernel_name="bessel_i1e"):
    """exp(-|x|) I1(x)."""
    _build(x, 1, kernel_name)
