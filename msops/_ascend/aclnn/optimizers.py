"""Steps of optimizers."""

from __future__ import annotations

import jax.numpy as jnp

from msops._ascend.aclnn.dtypes import in_float32
from msops._ascend.aclnn.kinds import Bool, Float, Tensor, UpdatedTensor
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn


@aclnn("ApplyAdamWV2")
def apply_adam_w(
    var_ref: UpdatedTensor,
    m_ref: UpdatedTensor,
    v_ref: UpdatedTensor,
    max_grad_norm_ref: UpdatedTensor | None,
    grad: Tensor,
    step: Tensor,
    lr: Float,
    beta1: Float,
    beta2: Float,
    weight_decay: Float,
    eps: Float,
    amsgrad: Bool,
    maximize: Bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """One step of Adam with decoupled weight decay.

    With g the gradient, t = step + 1, and M the greatest v so far if `amsgrad`, else v::

        m = beta1 * m + (1 - beta1) * g,  v = beta2 * v + (1 - beta2) * g ** 2
        var = var * (1 - lr * weight_decay)
              - lr * (m / (1 - beta1 ** t)) / (sqrt(M / (1 - beta2 ** t)) + eps)

    Args:
      var_ref, m_ref, v_ref: tensors of one shape.
      max_grad_norm_ref: M, or None without `amsgrad`.
      grad: the gradient, of that shape.
      step: how many steps were made before, one number; 0 in the first step.
      lr, beta1, beta2, weight_decay, eps: the constants.
      amsgrad: whether M is kept.
      maximize: whether to go up the gradient.

    Returns:
      The new values of the first four.

    Source: I. Loshchilov, F. Hutter, "Decoupled weight decay regularization", 2019. For the count
    of steps: MindSpore 2.7.2, ``mint.optim.AdamW``, whose first call passes 0.
    """
    if step.size != 1 or (amsgrad and max_grad_norm_ref is None):
        raise Refused(
            f"expected one step, and maxGradNorm with amsgrad; got {step.shape} and "
            f"{None if max_grad_norm_ref is None else max_grad_norm_ref.shape}",
            "Pass a tensor of one entry, and a tensor of zeros at first.",
        )
    g = in_float32(-grad if maximize else grad)
    t = in_float32(step).reshape(()) + 1
    m = beta1 * in_float32(m_ref) + (1 - beta1) * g
    v = beta2 * in_float32(v_ref) + (1 - beta2) * g * g
    greatest = v
    if max_grad_norm_ref is not None and amsgrad:
        greatest = jnp.maximum(in_float32(max_grad_norm_ref), v)
    root = jnp.sqrt(greatest / (1 - jnp.power(beta2, t))) + eps
    var = in_float32(var_ref) * (1 - lr * weight_decay)
    var = var - lr * (m / (1 - jnp.power(beta1, t))) / root
    # What an unused maxGradNorm holds, it keeps.
    kept = greatest if amsgrad else max_grad_norm_ref
    return var, m, v, kept
