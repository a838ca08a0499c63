"""Functions of one tensor, entry by entry."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.dtypes import floating, kind_of
from msops._ascend.aclnn.kinds import DType, Int, Tensor
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn

# The results are floats, Float32 for integers.
_FLOAT: dict[str, Callable[[jax.Array], jax.Array]] = {
    "Exp": jnp.exp,
    "Exp2": jnp.exp2,
    "Expm1": jnp.expm1,
    "Log": jnp.log,
    "Log2": jnp.log2,
    "Log10": jnp.log10,
    "Log1p": jnp.log1p,
    "Sqrt": jnp.sqrt,
    "Rsqrt": jax.lax.rsqrt,
    "Reciprocal": jnp.reciprocal,
    "Sin": jnp.sin,
    "Cos": jnp.cos,
    "Tan": jnp.tan,
    "Asin": jnp.arcsin,
    "Acos": jnp.arccos,
    "Atan": jnp.arctan,
    "Sinh": jnp.sinh,
    "Cosh": jnp.cosh,
    "Tanh": jnp.tanh,
    "Asinh": jnp.arcsinh,
    "Acosh": jnp.arccosh,
    "Atanh": jnp.arctanh,
    "Erf": jax.lax.erf,
    "Erfc": jax.lax.erfc,
    "Erfinv": jax.lax.erf_inv,
}

# The results have the dtype of the tensor.
_SAME: dict[str, Callable[[jax.Array], jax.Array]] = {
    "Abs": jnp.abs,
    "Neg": jnp.negative,
    "Sign": jnp.sign,
    "Ceil": jnp.ceil,
    "Floor": jnp.floor,
    "Round": jnp.round,
    "Trunc": jnp.trunc,
}


def _enter_float(name: str, function: Callable[[jax.Array], jax.Array]) -> None:
    def unary(self: Tensor) -> Tensor:
        return function(floating(self))

    aclnn(name)(unary)


def _enter_same(name: str, function: Callable[[jax.Array], jax.Array]) -> None:
    def unary(self: Tensor) -> Tensor:
        if kind_of(self.dtype) == 0 and name != "Abs":
            raise Refused("expected numbers; got bool", "Cast them.")
        return function(self)

    aclnn(name)(unary)


for _name, _function in _FLOAT.items():
    _enter_float(_name, _function)
for _name, _function in _SAME.items():
    _enter_same(_name, _function)


@aclnn("RoundDecimals")
def round_decimals(self: Tensor, decimals: Int) -> Tensor:
    """`self` rounded to a number of decimals, halves to even; -1 rounds to tens."""
    if kind_of(self.dtype) > 1:
        return jnp.round(self, decimals)
    if kind_of(self.dtype) == 0:
        raise Refused("expected numbers; got bool", "Cast them.")
    if decimals >= 0:
        return self
    if 10**-decimals > np.iinfo(self.dtype).max:
        raise Refused(
            f"expected decimals for which 10**{-decimals} fits {self.dtype}; got {decimals}",
            "Cast the tensor to a wider dtype.",
        )
    unit = self.dtype.type(10**-decimals)
    quotient, rest = jnp.divmod(self, unit)
    is_odd = quotient % 2 == 1
    # Half of a unit is whole: rest + rest would overflow.
    up = (rest > unit // 2) | ((rest == unit // 2) & is_odd)
    return (quotient + up.astype(self.dtype)) * unit


@aclnn("Cast")
def cast(self: Tensor, dtype: DType) -> Tensor:
    """`self` in another dtype, which the output must have too; floats become integers towards 0."""
    return self.astype(dtype)
