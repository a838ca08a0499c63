"""Layer normalisation over the last axis; the moments are outputs too."""

from impl.util.platform_adapter import para_check, register_operator_compute, tbe, tvm
from mindspore.ops.op_info_register import DataType, TBERegOp, op_info_register

layer_norm_op_info = (
    TBERegOp("LayerNorm")
    .kernel_name("layer_norm")
    .attr("epsilon", "optional", "float", "all", "1e-5")
    .input(0, "x", None, "required", None)
    .input(1, "gamma", None, "required", None)
    .input(2, "beta", None, "required", None)
    .output(0, "y", True, "required", "all")
    .output(1, "mean", True, "required", "all")
    .output(2, "variance", True, "required", "all")
    .dtype_format(*[DataType.F32_Default] * 6)
    .get_op_info()
)


@op_info_register(layer_norm_op_info)
def _layer_norm_tbe():
    """Registers LayerNorm."""
    return


@register_operator_compute("LayerNorm", op_mode="static")
def layer_norm_compute(x, gamma, beta, epsilon):
    """Returns the normalised tensor and its moments."""
    shape = x.shape
    share = 1.0 / shape[-1].value
    mean = tbe.vmuls(tbe.reduce_sum(x, axis=-1, keepdims=True), share)
    centred = tbe.vsub(x, tbe.broadcast(mean, shape))
    variance = tbe.vmuls(tbe.reduce_sum(tbe.vmul(centred, centred), -1, True), share)
    inverse = tbe.vrsqrt(tbe.vadds(variance, tvm.const(epsilon, x.dtype)))
    y = tbe.vmul(centred, tbe.broadcast(inverse, shape))
    y = tbe.vmla(y, tbe.broadcast(gamma, shape), tbe.broadcast(beta, shape))
    return y, mean, variance


@para_check.check_op_params(
    *[para_check.REQUIRED_INPUT] * 3,
    *[para_check.REQUIRED_OUTPUT] * 3,
    para_check.OPTION_ATTR_FLOAT,
    para_check.KERNEL_NAME,
)
def layer_norm(x, gamma, beta, y, mean, variance, epsilon=1e-5, kernel_name="layer_norm"):
    """gamma * (x - mean) / sqrt(variance + epsilon) + beta, row by row."""
    data = [
        tvm.placeholder(one.get("shape"), name=name, dtype=one.get("dtype"))
        for one, name in ((x, "x"), (gamma, "gamma"), (beta, "beta"))
    ]
    results = layer_norm_compute(*data, epsilon)
    with tvm.target.cce():
        sch = tbe.auto_schedule(list(results))
    tbe.build(sch, {"name": kernel_name, "tensor_list": [*data, *results]})
