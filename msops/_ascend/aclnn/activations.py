"""Activation functions and dropout by a mask."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.dtypes import floating
from msops._ascend.aclnn.kinds import Float, Int, Scalar, Tensor, Text
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn


@aclnn("Relu")
def relu(self: Tensor) -> Tensor:
    """``max(self, 0)``; its derivative at 0 is 0."""
    return jax.nn.relu(self)


@aclnn("Sigmoid")
def sigmoid(self: Tensor) -> Tensor:
    """``1 / (1 + exp(-self))``."""
    return jax.nn.sigmoid(floating(self))


@aclnn("Gelu")
def gelu(self: Tensor) -> Tensor:
    """GELU by its tanh approximation, as Ascend computes it.

    Source: D. Hendrycks, K. Gimpel, "Gaussian Error Linear Units", 2016.
    """
    return jax.nn.gelu(floating(self), approximate=True)


@aclnn("GeluV2")
def gelu_v2(x: Tensor, approximate: Int) -> Tensor:
    """GELU: exact by erf (`approximate` 0), or by tanh (1)."""
    if approximate not in (0, 1):
        raise Refused(f"expected approximate 0 or 1; got {approximate}", "0 is erf, 1 is tanh.")
    return jax.nn.gelu(floating(x), approximate=bool(approximate))


@aclnn("FastGelu")
def fast_gelu(self: Tensor) -> Tensor:
    """``self * sigmoid(1.702 * self)``, which is close to GELU."""
    x = floating(self)
    return x * jax.nn.sigmoid(x.dtype.type(1.702) * x)


@aclnn("GeluMul")
def gelu_mul(input: Tensor, approximate: Text) -> Tensor:
    """``gelu(a) * b`` for the halves a, b of the last axis; `approximate` is "none" or "tanh"."""
    if approximate not in ("none", "tanh"):
        raise Refused(f"expected 'none' or 'tanh'; got {approximate!r}", "'none' is exact by erf.")
    if not input.ndim or input.shape[-1] % 2:
        raise Refused(f"expected an even last axis; got shape {input.shape}", "Pad it.")
    first, second = jnp.split(floating(input), 2, axis=-1)
    return jax.nn.gelu(first, approximate=approximate == "tanh") * second


@aclnn("Silu")
def silu(self: Tensor) -> Tensor:
    """``self * sigmoid(self)``."""
    return jax.nn.silu(floating(self))


@aclnn("Swish")
def swish(self: Tensor, beta: Scalar | None) -> Tensor:
    """``self * sigmoid(beta * self)``; `beta` is 1 if absent."""
    x = floating(self)
    return x * jax.nn.sigmoid(x if beta is None else x.dtype.type(beta) * x)


@aclnn("SwiGlu")
def swiglu(x: Tensor, dim: Int) -> Tensor:
    """``silu(a) * b`` for the halves a, b of `x` along `dim`."""
    if x.shape[dim] % 2:
        raise Refused(f"expected an even size of axis {dim}; got {x.shape[dim]}", "Pad it.")
    first, second = jnp.split(floating(x), 2, axis=dim)
    return jax.nn.silu(first) * second


@aclnn("LeakyRelu")
def leaky_relu(self: Tensor, negative_slope: Scalar) -> Tensor:
    """`self`, times `negative_slope` where negative."""
    x = floating(self)
    return jnp.where(x > 0, x, x.dtype.type(negative_slope) * x)


@aclnn("Elu")
def elu(self: Tensor, alpha: Scalar, scale: Scalar, input_scale: Scalar) -> Tensor:
    """``scale * x`` where positive, else ``scale * alpha * (exp(input_scale * x) - 1)``."""
    x = floating(self)
    # The double where: exp of a large positive entry would make the gradient NaN.
    negative = jnp.where(x > 0, 0, x)
    low = x.dtype.type(alpha) * jnp.expm1(x.dtype.type(input_scale) * negative)
    return x.dtype.type(scale) * jnp.where(x > 0, x, low)


@aclnn("Softplus")
def softplus(self: Tensor, beta: Scalar, threshold: Scalar) -> Tensor:
    """``log(1 + exp(beta * self)) / beta``; `self` where ``beta * self`` exceeds `threshold`."""
    x = floating(self)
    scaled = x.dtype.type(beta) * x
    return jnp.where(scaled > threshold, x, jax.nn.softplus(scaled) / x.dtype.type(beta))


@aclnn("Hardtanh")
def hardtanh(self: Tensor, clip_min: Scalar, clip_max: Scalar) -> Tensor:
    """`self` moved into ``[clip_min, clip_max]``."""
    return jnp.clip(self, self.dtype.type(clip_min), self.dtype.type(clip_max))


@aclnn("Hardsigmoid")
def hardsigmoid(self: Tensor) -> Tensor:
    """``clip(self / 6 + 1 / 2, 0, 1)``."""
    return jax.nn.hard_sigmoid(floating(self))


@aclnn("Hardswish")
def hardswish(self: Tensor) -> Tensor:
    """``self * hardsigmoid(self)``."""
    return jax.nn.hard_silu(floating(self))


@aclnn("Mish")
def mish(self: Tensor) -> Tensor:
    """``self * tanh(softplus(self))``."""
    return jax.nn.mish(floating(self))


@aclnn("Threshold")
def threshold(self: Tensor, threshold: Scalar, value: Scalar) -> Tensor:
    """`self` where it exceeds `threshold`, else `value`."""
    return jnp.where(self > threshold, self, self.dtype.type(value))


@aclnn("DropoutDoMask")
def dropout_do_mask(self: Tensor, mask: Tensor, prob: Float) -> Tensor:
    """`self` where the mask's bit is set, divided by ``1 - prob``; 0 elsewhere.

    Args:
      self: tensor of N entries.
      mask: uint8 of any shape, one bit per entry, lowest bit first, padded
        (``aclnnDropoutGenMask`` pads to a multiple of 16 bytes); or bool of the shape of `self`.
      prob: the probability that an entry was dropped; with 0 the mask is not looked at.
    """
    if not 0 <= prob <= 1:
        raise Refused(f"expected prob between 0 and 1; got {prob}", "It is the part dropped.")
    kept = unpack_mask(mask, self.shape)
    x = floating(self)
    if prob == 0:
        return x
    if prob == 1:
        return jnp.zeros_like(x)
    return jnp.where(kept, x / x.dtype.type(1 - prob), 0)


def unpack_mask(mask: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Returns a mask of bits as bool of a shape."""
    if mask.dtype == np.bool_ and mask.shape == shape:
        return mask
    size = math.prod(shape)
    if mask.dtype != np.uint8 or mask.size * 8 < size:
        raise Refused(
            f"expected a mask of at least {-(-size // 8)} uint8, or of bool{list(shape)}; got "
            f"{mask.dtype}{list(mask.shape)}",
            "Pack one bit per entry, lowest bit first.",
        )
    bits = jnp.unpackbits(mask.reshape(-1), bitorder="little")
    return bits[:size].reshape(shape).astype(bool)
