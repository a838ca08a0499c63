"""Softmax and the normalizations. Narrow floats are computed in Float32."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from msops._ascend.aclnn.dtypes import floating, in_float32
from msops._ascend.aclnn.kinds import Bool, Float, Int, Ints, Tensor, UpdatedTensor
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn


@aclnn("Softmax")
def softmax(self: Tensor, dim: Int) -> Tensor:
    """Exponentials along an axis, scaled to sum one."""
    return jax.nn.softmax(in_float32(self), axis=dim).astype(floating(self).dtype)


@aclnn("LogSoftmax")
def log_softmax(self: Tensor, dim: Int) -> Tensor:
    """The logarithms of `Softmax`."""
    return jax.nn.log_softmax(in_float32(self), axis=dim).astype(floating(self).dtype)


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
    running_mean: UpdatedTensor,
    running_var: UpdatedTensor,
    training: Bool,
    momentum: Float,
    eps: Float,
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor, Tensor]:
    """`input` with mean 0 and variance 1 in each channel (axis 1), scaled and shifted.

    Args:
      input: [N, C, ...].
      weight, bias: [C], or None.
      running_mean, running_var: [C]; used if not `training`, else moved by `momentum` towards the
        batch's mean and its unbiased variance.
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
    old_mean, old_var = running_mean.astype(x.dtype), running_var.astype(x.dtype)
    if training:
        mean, variance = jnp.mean(x, axis=over), jnp.var(x, axis=over)
        count = math.prod(x.shape[axis] for axis in over)
        new_mean = (1 - momentum) * old_mean + momentum * mean
        new_var = (1 - momentum) * old_var + momentum * variance * count / max(count - 1, 1)
    else:
        mean, variance, new_mean, new_var = old_mean, old_var, old_mean, old_var
    rstd = jax.lax.rsqrt(variance + eps)
    normed = (x - mean.reshape(shape)) * rstd.reshape(shape)
    scale, shift = (None if v is None else v.reshape(shape) for v in (weight, bias))
    return _scale(normed, scale, shift, input), mean, rstd, new_mean, new_var
