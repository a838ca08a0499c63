"""Rounds to the levels of a scale per channel."""

import te.lang.cce
from mindspore.ops.op_info_register import DataType, TBERegOp, op_info_register
from tbe.tvm.topi import generic
from tbe.tvm.topi.cce import util
from te import tvm
from te.platform.fusion_manager import fusion_manager

quantize_levels_op_info = (
    TBERegOp("QuantizeLevels")
    .kernel_name("quantize_levels")
    .attr("num_bits", "required", "int", "all")
    .attr("narrow", "optional", "bool", "all", "false")
    .input(0, "x", None, "required", None)
    .input(1, "scale", None, "required", None)
    .output(0, "y", True, "required", "all")
    .dtype_format(*[DataType.F32_Default] * 3)
    .dtype_format(*[DataType.F16_5HD] * 3)
    .get_op_info()
)


@op_info_register(quantize_levels_op_info)
def _quantize_levels_tbe():
    """Registers QuantizeLevels."""
    return


@fusion_manager.register("quantize_levels")
def quantize_levels_compute(x, scale, low, high):
    """Returns scale * round(clip(x / scale, low, high)), halves upwards."""
    shape = te.lang.cce.util.shape_to_list(x.shape)
    eps = tvm.const(1e-4, x.dtype)
    safe = te.lang.cce.vcmpsel(scale, eps, "ge", scale, eps)
    wide = te.lang.cce.broadcast(safe, shape, x.dtype)
    levels = te.lang.cce.round_to(te.lang.cce.vdiv(x, wide), float(high), float(low))
    whole = te.lang.cce.floor(te.lang.cce.vadds(levels, 0.5))
    return te.lang.cce.vmul(whole, wide)


@util.check_input_type(dict, dict, dict, int, bool, str)
def quantize_levels(x, scale, y, num_bits, narrow=False, kernel_name="quantize_levels"):
    """Rounds each channel to its own levels."""
    shape, dtype = x.get("shape"), x.get("dtype").lower()
    util.check_shape_rule(scale.get("ori_shape"), 1, 1, x.get("ori_shape")[1])
    util.check_dtype_rule(dtype, ("float16", "float32"))
    shape_c = scale.get("shape")
    if x.get("format") == "NCHW":
        shape_c = [1, scale.get("shape")[0], 1, 1]
    high = 2 ** (num_bits - 1) - 1
    data = tvm.placeholder(shape, name="x", dtype=dtype)
    levels = tvm.placeholder(shape_c, name="scale", dtype=dtype)
    res = quantize_levels_compute(data, levels, -high if narrow else -high - 1, high)
    with tvm.target.cce():
        sch = generic.auto_schedule(res)
    te.lang.cce.cce_build_code(
        sch,
        {"print_ir": False, "name": kernel_name, "tensor_list": [data, levels, res]},
    )
