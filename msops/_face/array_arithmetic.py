"""Arithmetic of two operands as MindSpore computes it, where it is not that of `jax.numpy`.

A Python scalar takes the dtype of the array beside it unless that cannot hold the kind of the
scalar: then the result is Int64, Float32 or Complex64. An int that the dtype cannot hold wraps.
A number of numpy, which is what `np.sqrt(2)` gives, is a Python scalar, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._base.dtypes import KIND_RANKS, SCALAR_RANKS
from msops.errors import ArgumentValueError

Array = Any

_SCALAR_DTYPES = (np.bool_, np.int64, np.float32, np.complex64)


def kind_of(dtype: np.dtype) -> int:
    """Returns the rank of a dtype's kind: bool, integer, float, complex."""
    return KIND_RANKS[dtype.kind]


def typed(scalar: Any, dtype: np.dtype) -> np.ndarray | np.generic:
    """A Python scalar in the dtype it takes beside an array of `dtype`.

    Left to JAX it would be weakly typed: Int32 + 1.0 would be Float64 under 64-bit types, and
    Bool + 1 a weak Int64 that later gives way to Int8.

    Raises:
      ArgumentValueError: it is an int that no dtype holds.
    """
    kind = SCALAR_RANKS[type(scalar)]
    target = _SCALAR_DTYPES[kind] if kind > kind_of(dtype) else dtype.type
    try:
        with np.errstate(over="ignore"):
            return target(scalar)
    except OverflowError:
        return _wrapped(scalar, target)


def _wrapped(number: int, target: type[np.generic]) -> np.generic:
    if not -(2**63) <= number < 2**64 or not issubclass(target, np.integer):
        raise ArgumentValueError.explained(
            "Tensor arithmetic",
            f"expected an int from -2**63 to 2**64 - 1; got {number}",
            "Write it as a float.",
        )
    # MindSpore keeps the lower bits: Int8 * 300 is Int8 * 44.
    return np.uint64(number % 2**64).astype(target)


def binary(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """Returns `function` with Python scalars typed as MindSpore types them."""

    def call(x: Array, y: Array) -> Array:
        x, y = _operand(x), _operand(y)
        if type(y) in SCALAR_RANKS:
            if type(x) in SCALAR_RANKS:
                x = typed(x, np.dtype(bool))
            return function(x, typed(y, x.dtype))
        if type(x) in SCALAR_RANKS:
            return function(typed(x, y.dtype), y)
        return function(x, y)

    call.__name__ = call.__qualname__ = getattr(function, "__name__", "binary")
    return call


def _operand(value: Any) -> Any:
    """An operand, a Python scalar for a number of numpy."""
    if isinstance(value, np.number) and value.dtype.kind in "iuf":
        return float(value) if value.dtype.kind == "f" else int(value)
    return value


def _subtract(x: Array, y: Array) -> Array:
    if kind_of(x.dtype) == 0 and kind_of(y.dtype) == 0:
        # JAX and numpy refuse it; MindSpore's difference of booleans is whether they differ.
        return jnp.logical_xor(x, y)
    return jnp.subtract(x, y)


def _multiply(x: Array, y: Array) -> Array:
    return jnp.multiply(*_as_factors(x, y))


def _divide(x: Array, y: Array) -> Array:
    x, y = _as_factors(x, y)
    if kind_of(x.dtype) < 2 and kind_of(y.dtype) < 2:
        y = y.astype(np.float32)
        x = _as_factors(x, y)[0].astype(np.float32)
    return jnp.true_divide(x, y)


def _as_factors(x: Array, y: Array) -> tuple[Array, Array]:
    """Operands of a product or quotient: a Bool beside floats becomes an integer.

    XLA makes 0 of False times infinity or NaN, and of False by 0, if it sees that it was a bool.
    """
    if kind_of(x.dtype) == 0 and kind_of(y.dtype) > 1:
        return x.astype(np.int8), y
    return (x, y.astype(np.int8)) if kind_of(y.dtype) == 0 and kind_of(x.dtype) > 1 else (x, y)


def _raise(x: Array, y: Array) -> Array:
    x = x.astype(y.dtype) if kind_of(x.dtype) == 0 else x
    if kind_of(x.dtype) > 1 or not _may_be_below_0(y):
        return jnp.power(x, y)
    return _integer_power(x, y)


def _may_be_below_0(y: Array) -> bool:
    return y.dtype.kind == "i" and not (isinstance(y, np.integer) and int(y) >= 0)


@jax.jit
def _integer_power(x: Array, y: Array) -> Array:
    """The rule of the loop language: below 0 the quotient truncated, and 0 of 0."""
    power = jnp.power(x, jnp.maximum(y, 0))
    x = x.astype(power.dtype)
    inverse = jnp.where(x == 1, x, 0)
    if jnp.issubdtype(x.dtype, jnp.signedinteger):
        inverse = jnp.where(x == -1, jnp.where(y % 2 == 0, 1, x), inverse)
    return jnp.where(y < 0, inverse, power)


_power = binary(_raise)


def pow(x: Array, y: Array) -> Array:
    """``x ** y``; a Python int exponent stays static, which is exact and cheap to differentiate."""
    y = _operand(y)
    if type(y) is int and hasattr(x, "dtype") and kind_of(x.dtype) > 1:
        return jnp.power(x, y)
    return _power(x, y)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def _bounded(x: Array, bound: Array, is_lower: bool) -> Array:
    return jnp.where(_passes(x, bound, is_lower) & (x != bound), x, bound)


@_bounded.defjvp
def _bounded_jvp(is_lower: bool, primals: Sequence[Array], tangents: Sequence[Array]) -> Any:
    x, bound = primals
    # All of the slope is that of `x` where both are equal, as in MindSpore's ClampScalarGrad.
    return _bounded(x, bound, is_lower), jnp.where(_passes(x, bound, is_lower), *tangents)


def _passes(x: Array, bound: Array, is_lower: bool) -> Array:
    return jnp.isnan(x) | (x >= bound if is_lower else x <= bound)


@functools.partial(jax.jit, static_argnums=2)
def _bound(x: Array, bound: Array, is_lower: bool) -> Array:
    dtype = jnp.promote_types(x.dtype, bound.dtype)
    x, bound = jnp.broadcast_arrays(x.astype(dtype), bound.astype(dtype))
    if jnp.issubdtype(dtype, jnp.floating):
        return _bounded(x, bound, is_lower)
    return jnp.maximum(x, bound) if is_lower else jnp.minimum(x, bound)


_at_least = binary(lambda x, low: _bound(x, low, True))
_at_most = binary(lambda x, high: _bound(x, high, False))


def clip(x: Array, min: Any = None, max: Any = None) -> Array:
    """`x` with its entries moved into ``[min, max]``; its slope at the bounds is 1."""
    x = x if min is None else _at_least(x, min)
    return x if max is None else _at_most(x, max)


def clip_by_value(x: Array, clip_value_min: Any = None, clip_value_max: Any = None) -> Array:
    """`x` in the same bounds in its own dtype; at a bound it has half of the slope."""
    x = x if clip_value_min is None else jnp.maximum(x, _like(clip_value_min, x))
    return x if clip_value_max is None else jnp.minimum(x, _like(clip_value_max, x))


def _like(bound: Any, x: Array) -> Array:
    return jnp.asarray(bound).astype(x.dtype)


def select(condition: Array, x: Array, y: Array) -> Array:
    """`x` where `condition` holds, else `y`."""
    return binary(functools.partial(jnp.where, condition))(x, y)


@jax.custom_jvp
def _magnitude(x: Array) -> Array:
    return jnp.abs(x)


@_magnitude.defjvp
def _magnitude_jvp(primals: Sequence[Array], tangents: Sequence[Array]) -> Any:
    (x,), (dx,) = primals, tangents
    # 0 at 0, where JAX has 1.
    return jnp.abs(x), dx * jnp.where(x == 0, 0, jnp.sign(x))


@jax.jit
def abs(x: Array) -> Array:
    """``|x|``."""
    return _magnitude(x) if jnp.issubdtype(x.dtype, jnp.floating) else jnp.abs(x)


@jax.jit
def _floor_divide(x: Array, y: Array) -> Array:
    if x.dtype == bool and y.dtype == bool:
        return jnp.broadcast_arrays(x, y)[0]
    dtype = jnp.result_type(x, y)
    if jnp.issubdtype(dtype, jnp.floating) and dtype.itemsize == 2:
        # jax.numpy rounds each step to 16 bits, and is off by one or more.
        quotient: Array = _floor_divide(x.astype(jnp.float32), y.astype(jnp.float32))
        return quotient.astype(dtype)
    quotient = jnp.floor_divide(x, y)
    if jnp.issubdtype(quotient.dtype, jnp.integer):
        return _unless_by_0(x, y, quotient)
    # jax.numpy has NaN for infinity by a number, and 0 of a sign by chance.
    exact = jax.lax.stop_gradient(x / y)
    quotient = jnp.where(quotient == 0, jnp.copysign(quotient, exact), quotient)
    return jnp.where(jnp.isinf(x) | jnp.isinf(y), jnp.floor(exact), quotient)


def _unless_by_0(x: Array, y: Array, quotient: Array) -> Array:
    """A quotient of integers; by 0 as if it were infinite: the nearest integer of the dtype."""
    kind, limits = quotient.dtype.type, jnp.iinfo(quotient.dtype)
    below = jnp.where(x < 0, kind(limits.min), kind(0))
    return jnp.where(y == 0, jnp.where(x > 0, kind(limits.max), below), quotient)


@jax.jit
def _real_divide(x: Array, y: Array) -> Array:
    """``ops.RealDiv``: the truncated quotient of integers, in their dtype."""
    if kind_of(x.dtype) != 1 or kind_of(y.dtype) != 1:
        return _divide(x, y)
    dtype = jnp.promote_types(x.dtype, y.dtype)
    x, y = jnp.broadcast_arrays(x.astype(dtype), y.astype(dtype))
    return _unless_by_0(x, y, jax.lax.div(x, jnp.where(y == 0, 1, y)))


@jax.jit
def _truncated_divide(x: Array, y: Array) -> Array:
    if x.dtype == bool and y.dtype == bool:
        return jnp.broadcast_arrays(x, y)[0]
    if kind_of(x.dtype) < 2 and kind_of(y.dtype) < 2:
        dtype = jnp.promote_types(x.dtype, y.dtype)
        return _real_divide(x.astype(dtype), y.astype(dtype))
    return jnp.trunc(_divide(x, y))


@jax.jit
def _floor_mod(x: Array, y: Array) -> Array:
    remainder = jnp.remainder(x, y)
    if not jnp.issubdtype(remainder.dtype, jnp.floating):
        return remainder
    # Its 0 is never -0.
    return remainder - jnp.where(remainder == 0, jax.lax.stop_gradient(remainder), 0)


add = binary(jnp.add)
sub = binary(_subtract)
mul = binary(_multiply)
div = binary(_divide)
real_div = binary(_real_divide)
floor_div = binary(_floor_divide)
truncated_div = binary(_truncated_divide)
mod = binary(_floor_mod)
truncated_mod = binary(jnp.fmod)
maximum = binary(jnp.maximum)
minimum = binary(jnp.minimum)
