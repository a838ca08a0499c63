"""Comparisons, logic, bits, and the choice between two tensors."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from msops._ascend.aclnn.arithmetic import beside
from msops._ascend.aclnn.dtypes import kind_of, promote
from msops._ascend.aclnn.kinds import Scalar, SomeTensors, Tensor
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


def _enter_pair(name: str, function: Callable[..., jax.Array]) -> None:
    """Enters ``nameTensor(self, other)`` and ``nameScalar(self, other)``."""

    def with_tensor(self: Tensor, other: Tensor) -> Tensor:
        return function(*promote(self, other))

    def with_scalar(self: Tensor, other: Scalar) -> Tensor:
        return function(*beside(self, other))

    aclnn(f"{name}Tensor")(with_tensor)
    aclnn(f"{name}Scalar")(with_scalar)


def _integers_only(name: str, function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    def checked(x: jax.Array, y: jax.Array) -> jax.Array:
        if kind_of(x.dtype) > 1:
            raise Refused(f"expected integers or booleans; got {x.dtype}", "Cast them.")
        return function(x, y)

    checked.__name__ = name
    return checked


for _name, _function in _COMPARISONS.items():
    _enter_pair(_name, _function)
for _name, _function in _BITS.items():
    _enter_pair(_name, _integers_only(_name, _function))


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
    if kind_of(self.dtype) > 1:
        raise Refused(f"expected integers or booleans; got {self.dtype}", "Cast them.")
    return jnp.bitwise_not(self)


@aclnn("RightShift")
def right_shift(input: Tensor, shift_bits: Tensor) -> Tensor:
    """``input >> shift_bits``, which keeps the sign."""
    return _integers_only("RightShift", jnp.right_shift)(*promote(input, shift_bits))


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
