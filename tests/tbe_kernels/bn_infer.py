"""Batch normalisation with given moments, in blocks of channels and without."""

import te.lang.cce
from mindspore.ops.op_info_register import DataType, TBERegOp, op_info_register
from tbe.tvm.topi import generic
from tbe.tvm.topi.cce import util
from te import tvm
from te.platform.fusion_manager import fusion_manager

SHAPE_SIZE_LIMIT = 2147483648

bn_infer_op_info = (
    TBERegOp("BnInfer")
    .kernel_name("bn_infer")
    .attr("epsilon", "optional", "float", "all", "0.001")
    .input(0, "x", None, "required", None)
    .input(1, "mean", None, "required", None)
    .input(2, "variance", None, "required", None)
    .input(3, "gamma", None, "required", None)
    .input(4, "beta", None, "required", None)
    .output(0, "y", True, "required", "all")
    .dtype_format(*[DataType.F32_5HD] * 6)
    .dtype_format(*[DataType.F16_Default] * 6)
    .get_op_info()
)


@op_info_register(bn_infer_op_info)
def _bn_infer_tbe():
    """Registers BnInfer."""
    return


@fusion_manager.register("bn_infer")
def bn_infer_compute(x, mean, variance, gamma, beta, epsilon):
    """Returns gamma * (x - mean) / sqrt(variance + epsilon) + beta."""
    shape = te.lang.cce.util.shape_to_list(x.shape)
    scale = te.lang.cce.vmul(gamma, te.lang.cce.vrsqrt(te.lang.cce.vadds(variance, epsilon)))
    shift = te.lang.cce.vsub(beta, te.lang.cce.vmul(mean, scale))
    scale = te.lang.cce.broadcast(scale, shape)
    return te.lang.cce.vmadd(x, te.lang.cce.broadcast(shift, shape), scale)


@util.check_input_type(dict, dict, dict, dict, dict, dict, float, str)
def bn_infer(x, mean, variance, gamma, beta, y, epsilon=1e-3, kernel_name="bn_infer"):
    """Normalises images by the moments of each channel."""
    shape = x.get("shape")
    util.check_kernel_name(kernel_name)
    util.check_shape_rule(shape)
    util.check_shape_size(shape, SHAPE_SIZE_LIMIT)
    util.compare_tensor_dict_key(mean, variance, "shape")
    if x.get("format") == "NC1HWC0":
        shape_c = mean.get("shape")
    else:
        shape_c = [1, mean.get("ori_shape")[0], *[1] * (len(shape) - 2)]
    dtype = x.get("dtype").lower()
    data = tvm.placeholder(shape, name="x", dtype=dtype)
    params = [tvm.placeholder(shape_c, name=n, dtype=dtype) for n in ("m", "v", "g", "b")]
    res = bn_infer_compute(data, *params, epsilon)
    with tvm.target.cce():
        sch = generic.auto_schedule(res)
    te.lang.cce.cce_build_code(sch, {"name": kernel_name, "tensor_list": [data, *params, res]})
