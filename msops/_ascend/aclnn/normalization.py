"""Softmax and the normalizations. Narrow floats are computed in Float32."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from msops._ascend.aclnn.dtypes import floating, in_float32
from msops._ascend.aclnn.kinds import Bool, Float, Int, Ints, Tensor, Text, UpdatedTensor
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn


@aclnn("Softmax")
def softmax(self: Tensor, dim: Int) -> Tensor:
    """Exponentials along an axis, scaled to sum one."""
    x = in_float32(self).reshape(self.shape or 1)
    return jax.nn.softmax(x, axis=dim).reshape(self.shape).astype(floating(self).dtype)


@aclnn("LogSoftmax")
def log_softmax(self: Tensor, dim: Int) -> Tensor:
    """The logarithms of `Softmax`."""
    x = in_float32(self).reshape(self.shape or 1)
    return jax.nn.log_softmax(x, axis=dim).reshape(self.shape).astype(floating(self).dtype)


@aclnn("LayerNorm")
def layer_norm(
    input: Tensor, normalized_shape: Ints, weight: Tensor | None, bias: Tensor | None, eps: Float
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """`input` with mean 0 and variance 1 over its last axes, scaled and shifted.

    Args:
      input: tensor whose shape ends in `normalized_shape`.
      normalized_shape: the axes.
      weight, bias: tensors of that shape, or None.
      eps: added to the variance.

    Returns:
      The output; then mean and 1 / standard deviation, their normalized axes of size 1.

    Source: J. L. Ba et al., "Layer Normalization", 2016.
    """
    rank = len(normalized_shape)
    if not rank or input.shape[-rank:] != normalized_shape:
        raise Refused(
            f"expected an input whose shape ends in {list(normalized_shape)}; got {input.shape}",
            "normalizedShape is the end of the input's shape.",
        )
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and given.shape != normalized_shape:
            raise Refused(
                f"expected {name} of shape {normalized_shape}; got {given.shape}", "Reshape it."
            )
    x, over = in_float32(input), tuple(range(-rank, 0))
    mean = jnp.mean(x, axis=over, keepdims=True)
    rstd = jax.lax.rsqrt(jnp.var(x, axis=over, keepdims=True) + eps)
    return _scale((x - mean) * rstd, weight, bias, input), mean, rstd


def _scale(
    x: jax.Array, weight: jax.Array | None, bias: jax.Array | None, like: jax.Array
) -> jax.Array:
    x = x if weight is None else x * weight.astype(x.dtype)
    x = x if bias is None else x + bias.astype(x.dtype)
    return x.astype(floating(like).dtype)


@aclnn("RmsNorm")
def rms_norm(x: Tensor, gamma: Tensor, epsilon: Float) -> tuple[Tensor, Tensor | None]:
    """`x` divided by its root mean square over the axes of `gamma`, times `gamma`.

    Returns:
      The output; then 1 / root mean square, the normalized axes of size 1.

    Source: B. Zhang, R. Sennrich, "Root Mean Square Layer Normalization", 2019.
    """
    return _rms_norm(x, gamma, epsilon)


def _rms_norm(x: jax.Array, gamma: jax.Array, epsilon: float) -> tuple[jax.Array, jax.Array]:
    if not gamma.ndim or x.shape[-gamma.ndim :] != gamma.shape:
        raise Refused(
            f"expected gamma with the end of the shape {x.shape}; got {gamma.shape}", "Reshape it."
        )
    wide, over = in_float32(x), tuple(range(-gamma.ndim, 0))
    rstd = jax.lax.rsqrt(jnp.mean(wide * wide, axis=over, keepdims=True) + epsilon)
    return _scale(wide * rstd, gamma, None, x), rstd


@aclnn("AddRmsNorm")
def add_rms_norm(
    x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: Float
) -> tuple[Tensor, Tensor | None, Tensor]:
    """`RmsNorm` of ``x1 + x2``; returns its two results and the sum."""
    total = (in_float32(x1) + in_float32(x2)).astype(floating(x1).dtype)
    return (*rms_norm(total, gamma, epsilon), total)


@aclnn("InplaceAddRmsNorm")
def inplace_add_rms_norm(
    x1_ref: UpdatedTensor, x2_ref: UpdatedTensor, gamma: Tensor, epsilon: Float
) -> tuple[Tensor, Tensor, Tensor]:
    """`AddRmsNorm` that stores the output in its first input and the sum in its second.

    Returns:
      1 / root mean square; then the new values of `x1_ref` and `x2_ref`.
    """
    total = (in_float32(x1_ref) + in_float32(x2_ref)).astype(floating(x1_ref).dtype)
    result, rstd = _rms_norm(total, gamma, epsilon)
    return rstd, result, total


@aclnn("DeepNorm")
def deep_norm(
    x: Tensor, gx: Tensor, beta: Tensor, gamma: Tensor, alpha: Float, epsilon: Float
) -> tuple[Tensor | None, Tensor | None, Tensor]:
    """`LayerNorm` of ``alpha * x + gx`` over the axes of `gamma`.

    Returns:
      Mean and 1 / standard deviation, the normalized axes of size 1; then the output.

    Source: H. Wang et al., "DeepNet", 2022.
    """
    if x.shape != gx.shape:
        raise Refused(f"expected gx of shape {x.shape}; got {gx.shape}", "Add it alone.")
    total = alpha * in_float32(x) + in_float32(gx)
    y, mean, rstd = layer_norm(total, gamma.shape, in_float32(gamma), in_float32(beta), epsilon)
    return mean, rstd, y.astype(x.dtype)


@aclnn("RmsNormQuant")
def rms_norm_quant(
    x: Tensor, gamma: Tensor, beta: Tensor, scale: Tensor, offset: Tensor, epsilon: Float
) -> Tensor:
    """`RmsNorm` plus `beta` as Int8: divided by `scale`, plus `offset`, rounded halves to even.

    The order of the parameters, and that `scale` divides, were checked with no published prototype.

    Args:
      x: tensor whose last axes are normalized.
      gamma, beta: tensors of the shape of these axes, or one row of it.
      scale, offset: one number each; `offset` is Int8.
      epsilon: added to the mean square.
    """
    weight, shift = (v.reshape(v.shape[-1:]) for v in (gamma, beta))
    normed = rms_norm(in_float32(x), in_float32(weight), epsilon)[0] + in_float32(shift)
    steps = normed / in_float32(scale).reshape(()) + offset.reshape(()).astype(normed.dtype)
    return jnp.clip(jnp.round(steps), -128, 127).astype(jnp.int8)


@aclnn("GroupNormSwish")
def group_norm_swish(
    x: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    data_format: Text | None,
    num_groups: Int,
    eps: Float,
    activate_swish: Bool,
    swish_scale: Float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`GroupNorm` of [N, C, ...], then ``y * sigmoid(swish_scale * y)`` if `activate_swish`.

    Args:
      x: [N, C, ...].
      gamma, beta: [C], or None.
      data_format: "NCHW" or None.
      num_groups: how many groups of channels there are.
      eps: added to the variance.
      activate_swish, swish_scale: the activation.

    Returns:
      The output; then mean and 1 / standard deviation, [N, num_groups].
    """
    if x.ndim < 2 or data_format not in (None, "", "NCHW"):
        raise Refused(
            f"expected [N, C, ...] in format NCHW; got {x.shape} in {data_format!r}", "Permute it."
        )
    n, c, *rest = x.shape
    wide = in_float32(x)
    y, mean, rstd = group_norm(wide, gamma, beta, n, c, math.prod(rest), num_groups, eps)
    if activate_swish:
        y = y * jax.nn.sigmoid(swish_scale * y)
    dtype = floating(x).dtype
    return y.astype(dtype), mean.astype(dtype), rstd.astype(dtype)


@aclnn("ScaledMaskedSoftmax")
def scaled_masked_softmax(x: Tensor, mask: Tensor, scale: Float, fix_triu_mask: Bool) -> Tensor:
    """The softmax of ``scale * x`` along the last axis, -10000 in place of masked entries.

    Args:
      x: [N, C, H, W].
      mask: bool that broadcasts against `x`; True masks. Not looked at if `fix_triu_mask`.
      scale: the factor.
      fix_triu_mask: whether the mask is the triangle above the diagonal.
    """
    scores = in_float32(x) * scale
    hidden = jnp.triu(jnp.ones(x.shape[-2:], bool), 1) if fix_triu_mask else mask != 0
    return jax.nn.softmax(jnp.where(hidden, -10000.0, scores), axis=-1).astype(floating(x).dtype)


@aclnn("GroupNorm")
def group_norm(
    self: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    n: Int,
    c: Int,
    hxw: Int,
    group: Int,
    eps: Float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`self` with mean 0 and variance 1 in each of `group` groups of channels.

    Args:
      self: tensor of n * c * hxw entries.
      gamma, beta: [c], or None.
      n, c, hxw: the sizes of the batch, of the channels and of what is left.
      group: how many groups there are.
      eps: added to the variance.

    Returns:
      The output; then mean and 1 / standard deviation, [n, group].

    Source: Y. Wu, K. He, "Group Normalization", 2018.
    """
    if n * c * hxw != self.size or group <= 0 or c % group:
        raise Refused(
            f"expected N * C * HxW = {self.size} and C a multiple of group; got {n} * {c} * {hxw} "
            f"and {group}",
            "Pass the sizes of the tensor.",
        )
    x = in_float32(self).reshape(n, group, -1)
    mean = jnp.mean(x, axis=2)
    rstd = jax.lax.rsqrt(jnp.var(x, axis=2) + eps)
    normed = ((x - mean[..., None]) * rstd[..., None]).reshape(n, c, hxw)
    weight, bias = (None if v is None else v.reshape(c, 1) for v in (gamma, beta))
    return _scale(normed, weight, bias, self).reshape(self.shape), mean, rstd


@aclnn("BatchNorm")
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: UpdatedTensor | None,
    running_var: UpdatedTensor | None,
    training: Bool,
    momentum: Float,
    eps: Float,
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
    """`input` with mean 0 and variance 1 in each channel (axis 1), scaled and shifted.

    Args:
      input: [N, C, ...].
      weight, bias: [C], or None.
      running_mean, running_var: [C]; used if not `training`, else moved by `momentum` towards the
        batch's mean and its unbiased variance. None while `training`: nobody keeps them.
      training: whether to normalize by the batch.
      momentum: the weight of the batch in the running values.
      eps: added to the variance.

    Returns:
      The output, the batch's mean and 1 / standard deviation [C]; then the running values.

    Source: S. Ioffe, C. Szegedy, "Batch Normalization", 2015.
    """
    if input.ndim < 2:
        raise Refused(f"expected an input of rank 2 or more; got {input.shape}", "Add axes.")
    x = in_float32(input)
    over = (0, *range(2, x.ndim))
    shape = (1, -1) + (1,) * (x.ndim - 2)
    new_mean, new_var = running_mean, running_var
    if training:
        mean, variance = jnp.mean(x, axis=over), jnp.var(x, axis=over)
        count = math.prod(x.shape[axis] for axis in over)
        unbiased = variance * count / max(count - 1, 1)
        if running_mean is not None:
            new_mean = (1 - momentum) * running_mean.astype(x.dtype) + momentum * mean
        if running_var is not None:
            new_var = (1 - momentum) * running_var.astype(x.dtype) + momentum * unbiased
    elif running_mean is None or running_var is None:
        raise Refused(
            "expected running statistics where training is false; got None",
            "Pass runningMean and runningVar, or train.",
        )
    else:
        mean, variance = running_mean.astype(x.dtype), running_var.astype(x.dtype)
    rstd = jax.lax.rsqrt(variance + eps)
    normed = (x - mean.reshape(shape)) * rstd.reshape(shape)
    scale, shift = (None if v is None else v.reshape(shape) for v in (weight, bias))
    return _scale(normed, scale, shift, input), mean, rstd, new_mean, new_var
