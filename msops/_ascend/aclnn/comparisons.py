"""Comparisons, logic, bits, and the choice between two tensors."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from msops._ascend.aclnn.arithmetic import two_operands
from msops._ascend.aclnn.dtypes import kind_of, promote
from msops._ascend.aclnn.kinds import SomeTensors, Tensor
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn

_COMPARISONS: dict[str, Callable[..., jax.Array]] = {
    "Eq": jnp.equal,
    "Ne": jnp.not_equal,
    "Gt": jnp.greater,
    "Ge": jnp.greater_equal,
    "Lt": jnp.less,
    "Le": jnp.less_equal,
}
_BITS: dict[str, Callable[..., jax.Array]] = {
    "BitwiseAnd": jnp.bitwise_and,
    "BitwiseOr": jnp.bitwise_or,
    "BitwiseXor": jnp.bitwise_xor,
}
_LOGIC: dict[str, Callable[..., jax.Array]] = {
    "LogicalAnd": jnp.logical_and,
    "LogicalOr": jnp.logical_or,
    "LogicalXor": jnp.logical_xor,
}


def _require_integers(x: jax.Array) -> None:
    if kind_of(x.dtype) > 1:
        raise Refused(f"expected integers or booleans; got {x.dtype}", "Cast them.")


def _enter(name: str, function: Callable[..., jax.Array], takes_floats: bool) -> None:
    @two_operands(f"{name}Tensor", f"{name}Scalar")
    def apply(self: Tensor, other: Tensor) -> Tensor:
        if not takes_floats:
            _require_integers(self)
        return function(self, other)


for _name, _function in _COMPARISONS.items():
    _enter(_name, _function, takes_floats=True)
for _name, _function in _BITS.items():
    _enter(_name, _function, takes_floats=False)


def _enter_logic(name: str, function: Callable[..., jax.Array]) -> None:
    def logic(self: Tensor, other: Tensor) -> Tensor:
        return function(self != 0, other != 0)

    aclnn(name)(logic)


for _name, _function in _LOGIC.items():
    _enter_logic(_name, _function)


@aclnn("LogicalNot")
def logical_not(self: Tensor) -> Tensor:
    """Whether an entry is zero."""
    return self == 0


@aclnn("BitwiseNot")
def bitwise_not(self: Tensor) -> Tensor:
    """The bits inverted."""
    _require_integers(self)
    return jnp.bitwise_not(self)


@two_operands("RightShift")
def right_shift(input: Tensor, shift_bits: Tensor) -> Tensor:
    """``input >> shift_bits``, which keeps the sign."""
    _require_integers(input)
    return jnp.right_shift(input, shift_bits)


@aclnn("SWhere")
def where(condition: Tensor, self: Tensor, other: Tensor) -> Tensor:
    """`self` where `condition` holds, else `other`."""
    x, y = promote(self, other)
    return jnp.where(condition != 0, x, y)


@aclnn("IsFinite")
def is_finite(self: Tensor) -> Tensor:
    """Whether an entry is neither infinite nor NaN."""
    return jnp.isfinite(self)


@aclnn("IsInf")
def is_inf(self: Tensor) -> Tensor:
    """Whether an entry is infinite."""
    return jnp.isinf(self)


@aclnn("AllFinite")
def all_finite(self: SomeTensors) -> Tensor:
    """True if an entry is infinite or NaN: despite its name the operator reports overflow.

    Source: MindSpore 2.7.2, ``nn/wrap/loss_scale.py``: ``overflow = AllFinite()(outputs)``.
    """
    return ~jnp.all(jnp.stack([jnp.all(jnp.isfinite(tensor)) for tensor in self]))
