"""Gradients that are operators of their own, which a Backward function in C++ launches.

In the formulas dy is the gradient of the output y, and dx that of the input x.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from msops._ascend.aclnn import activations
from msops._ascend.aclnn.dtypes import in_float32
from msops._ascend.aclnn.kinds import Bool, Bools, Int, Ints, Scalar, Tensor
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn


def _pull_back(
    function: Callable[[jax.Array], jax.Array], x: jax.Array, dy: jax.Array
) -> jax.Array:
    y, pull_back = jax.vjp(function, x)
    return pull_back(dy.astype(y.dtype))[0]


@aclnn("SigmoidBackward")
def sigmoid_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    """``dx = dy * y * (1 - y)``."""
    return grad_output * output * (1 - output)


@aclnn("TanhBackward")
def tanh_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    """``dx = dy * (1 - y ** 2)``."""
    return grad_output * (1 - output * output)


@aclnn("GeluBackward")
def gelu_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    """The gradient of ``aclnnGelu``."""
    return _pull_back(activations.gelu, self, grad_output)


@aclnn("SiluBackward")
def silu_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    """The gradient of ``aclnnSilu``."""
    return _pull_back(activations.silu, self, grad_output)


@aclnn("ThresholdBackward")
def threshold_backward(grad_output: Tensor, self: Tensor, threshold: Scalar) -> Tensor:
    """``dx = dy`` where `self` exceeds the threshold, else 0: of Relu with 0."""
    return jnp.where(self > threshold, grad_output, 0)


@aclnn("LeakyReluBackward")
def leaky_relu_backward(
    grad_output: Tensor, self: Tensor, negative_slope: Scalar, self_is_result: Bool
) -> Tensor:
    """``dx = dy`` where `self` is positive, else ``negative_slope * dy``.

    `self` may be the result instead of the input, which has its sign unless the slope is negative.
    """
    if self_is_result and negative_slope < 0:
        raise Refused("the result does not determine the sign of the input", "Pass the input.")
    return jnp.where(self > 0, grad_output, grad_output.dtype.type(negative_slope) * grad_output)


@aclnn("SoftmaxBackward")
def softmax_backward(grad_output: Tensor, output: Tensor, dim: Int) -> Tensor:
    """``dx = y * (dy - sum(y * dy))``."""
    dy, y = in_float32(grad_output), in_float32(output)
    dx = y * (dy - jnp.sum(y * dy, axis=dim, keepdims=True))
    return dx.astype(output.dtype)


@aclnn("LogSoftmaxBackward")
def log_softmax_backward(grad_output: Tensor, output: Tensor, dim: Int) -> Tensor:
    """``dx = dy - exp(y) * sum(dy)``."""
    dy, y = in_float32(grad_output), in_float32(output)
    dx = dy - jnp.exp(y) * jnp.sum(dy, axis=dim, keepdims=True)
    return dx.astype(output.dtype)


@aclnn("LayerNormBackward")
def layer_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Ints,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Bools,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of ``aclnnLayerNorm``.

    With n = (x - mean) * rstd and g = dy * weight::

        dx = rstd * (g - mean(g) - n * mean(g * n)),  dweight = sum(dy * n),  dbias = sum(dy)

    Args:
      grad_out, input: tensors of one shape.
      normalized_shape: the last axes of that shape.
      mean, rstd: what the forward operator returned.
      weight, bias: those of the forward operator.
      output_mask: which of the gradients are wanted; has no effect here.

    Returns:
      dx, dweight and dbias.
    """
    rank = len(normalized_shape)
    over, rows = tuple(range(-rank, 0)), tuple(range(input.ndim - rank))
    dy, x = in_float32(grad_out), in_float32(input)
    normed = (x - mean) * rstd
    scaled = dy if weight is None else dy * weight
    dx = rstd * (
        scaled
        - jnp.mean(scaled, axis=over, keepdims=True)
        - normed * jnp.mean(scaled * normed, axis=over, keepdims=True)
    )
    return dx.astype(input.dtype), jnp.sum(dy * normed, axis=rows), jnp.sum(dy, axis=rows)
