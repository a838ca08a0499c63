"""MindSpore's ``_grad_ops`` namespace: the derivatives of elementwise operators, by name.

The order of arguments is MindSpore's: of ``TanhGrad(y, dy)`` y is the operator's result, of
``ReluGrad(dy, x)`` x is its input.

Source: MindSpore 2.7.2, mindspore/ops/operations/_grad_ops.py.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from msops._base.missing_names import missing_names
from msops._face.tensor import lift
from msops.ops._table import primitive_class

_RULES = {
    "ACosGrad": lambda x, dy: -dy / jnp.sqrt(1 - x * x),
    "AbsGrad": lambda x, dy: dy * jnp.sign(x),
    "AcoshGrad": lambda y, dy: dy / jnp.sinh(y),
    "AsinGrad": lambda x, dy: dy / jnp.sqrt(1 - x * x),
    "AsinhGrad": lambda y, dy: dy / jnp.cosh(y),
    "AtanGrad": lambda x, dy: dy / (1 + x * x),
    "InvGrad": lambda y, dy: -dy * y * y,
    "ReLU6Grad": lambda dy, x: jnp.where((x > 0) & (x <= 6), dy, jnp.zeros_like(dy)),
    "ReciprocalGrad": lambda y, dy: -dy * y * y,
    "ReluGrad": lambda dy, x: jnp.where(x > 0, dy, jnp.zeros_like(dy)),
    "RsqrtGrad": lambda y, dy: -0.5 * dy * y * y * y,
    "SigmoidGrad": lambda y, dy: dy * y * (1 - y),
    "SoftplusGrad": lambda dy, x: dy * jax.nn.sigmoid(x),
    "SqrtGrad": lambda y, dy: 0.5 * dy / y,
    "TanhGrad": lambda y, dy: dy * (1 - y * y),
}

globals().update({name: primitive_class(name, lift(rule), {}) for name, rule in _RULES.items()})

__all__ = list(_RULES)

__getattr__ = missing_names(__name__)
