"""Losses and their gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from msops._ascend.aclnn.dtypes import floating, in_float32, promote
from msops._ascend.aclnn.kinds import Int, Tensor
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn


def _reduce(x: jax.Array, reduction: int) -> jax.Array:
    if reduction not in (0, 1, 2):
        raise Refused(f"expected reduction 0, 1 or 2; got {reduction}", "None, mean or sum.")
    return (lambda x: x, jnp.mean, jnp.sum)[reduction](x)


@aclnn("MseLoss")
def mse_loss(self: Tensor, target: Tensor, reduction: Int) -> Tensor:
    """``(self - target) ** 2``: all (`reduction` 0), their mean (1) or sum (2)."""
    x, y = map(floating, promote(self, target))
    difference = in_float32(x) - in_float32(y)
    return _reduce(difference * difference, reduction).astype(x.dtype)


@aclnn("MseLossBackward")
def mse_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: Int) -> Tensor:
    """The gradient of `MseLoss` for `self`: ``2 * (self - target) * dy``, over n for the mean."""
    x, y = map(floating, promote(self, target))
    loss, pull_back = jax.vjp(lambda x: mse_loss(x, y, reduction), x)
    dy = jnp.broadcast_to(grad_output.astype(loss.dtype).reshape(loss.shape or ()), loss.shape)
    return jnp.broadcast_to(pull_back(dy)[0], jnp.broadcast_shapes(self.shape, target.shape))
