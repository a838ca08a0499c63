"""Reductions over axes, and the sign of a zero that ``if x > m: m = x`` keeps: that of the first.

XLA's extremes of 0 and -0 are either one. Where one is 0, a second reduction finds the first zero,
or the last one where equal numbers replace each other. It is one of 2 * position + sign, whose
lowest bit says what the zero is. Few extremes are 0, so of many numbers it only runs if some are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax import lax

from msops._loops.ir.nodes import Expr
from msops._loops.to_jax.printing import operations
from msops._loops.to_jax.printing.environment import Environment
from msops._loops.to_jax.printing.evaluate import evaluate, guarded
from msops._loops.to_jax.printing.shields import repeated
from msops._loops.to_jax.printing.values import Array, Value
from msops._loops.to_jax.raising.steps import Reduce

FOUND_BY = {"first": "min", "last": "max"}
"""The reduction of keys that finds the zero which stays."""
NOWHERE = {"first": np.int32(2**31 - 2), "last": np.int32(-2)}


_FEW = 1 << 14
"""Iterations up to which a branch takes as long as what it saves, and longer to compile."""


def with_signs(
    best: Value, keys: Callable[[Environment], Value], iterations: int, env: Environment
) -> Value:
    """Returns extremes whose zeros have the signs of those that stay.

    Args:
      best: the extremes; none is NaN.
      keys: the reduction of `zero_keys` that belongs to them.
      iterations: how many are reduced in all.
      env: the environment of both.
    """

    def signed(inner: Environment, array: Array) -> tuple[Array, ...]:
        found = inner.spread(keys(inner), best.axes)
        is_negative = lax.eq(lax.bitwise_and(found, np.int32(1)), np.int32(1))
        zero = lax.full_like(array, 0)
        zeros = lax.select(is_negative, lax.neg(zero), zero)
        return inner.vary([lax.select(_is_zero(array), zeros, array)])

    array = lax.stop_gradient(best.array)
    if iterations <= _FEW:
        (found,) = signed(env, array)
    else:
        has_zero = lax.reduce_or(_is_zero(array), range(array.ndim))
        (found,) = env.cond(has_zero, signed, lambda inner, same: inner.vary([same]), array)
    return Value(_in_place_of(best.array, found), best.axes)


def zero_keys(value: Value, axes: Sequence[str], keeps: str, env: Environment) -> Value:
    """Returns a key for each zero of a value, which counts along axes, the outermost first."""
    array = value.array
    sizes = [env.extents[axis] if axis in value.axes else 1 for axis in axes]
    positions = lax.full(array.shape, np.int32(0))
    for number, axis in enumerate(axes):
        if axis in value.axes:
            counted = lax.broadcasted_iota(np.int32, array.shape, value.axes.index(axis))
            step = np.int32(math.prod(sizes[number + 1 :]))
            positions = lax.add(positions, lax.mul(counted, lax.full_like(counted, step)))
    return Value(keys_at(positions, array, keeps), value.axes)


def keys_at(positions: Array, array: Array, keeps: str) -> Array:
    """Returns the keys of an array's zeros at some positions."""
    bits = lax.bitcast_convert_type(array, np.dtype(f"int{8 * array.dtype.itemsize}"))
    is_negative = lax.convert_element_type(lax.lt(bits, lax.full_like(bits, 0)), np.int32)
    keys = lax.add(lax.add(positions, positions), is_negative)
    return lax.select(_is_zero(array), keys, lax.full_like(keys, NOWHERE[keeps]))


def _is_zero(array: Array) -> Array:
    return lax.eq(array, lax.full_like(array, 0))


@jax.custom_jvp
def _in_place_of(best: Array, found: Array) -> Array:
    """Returns equal numbers in place of some, with the slope of these."""
    return found


@_in_place_of.defjvp
def _in_place_of_jvp(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Array, Array]:
    return primals[1], tangents[0]


def reduce_expression(op: str, expr: Expr, over: Sequence[str], env: Environment) -> Value:
    """Returns the reduction of an expression over axes, where the conditions of `env` hold."""
    return reduce_value(op, _neutral_where_masked(op, expr, env), over, env)


def reduce_kept(step: Reduce, env: Environment) -> Value:
    """Returns the extremes that a condition keeps, where the conditions of `env` hold."""
    op, over = step.stored_op, step.over
    value = _neutral_where_masked(op, step.value, env)
    best = reduce_value(op, value, over, env)
    if set(over).isdisjoint(value.axes):
        return best

    def keys(inner: Environment) -> Value:
        # Here once more, or XLA would keep all values for the case that this runs.
        inner = guarded(step.nest.mask, inner.over(env.axes))
        value = _neutral_where_masked(op, step.value, inner)
        found = zero_keys(value, over, step.keeps, inner)
        return reduce_value(FOUND_BY[step.keeps], found, over, inner)

    return with_signs(best, keys, step.nest.iterations, env)


def _neutral_where_masked(op: str, expr: Expr, env: Environment) -> Value:
    value = evaluate(expr, env)
    if env.mask is None:
        return value
    neutral = Value(operations.identity(op, expr.dtype), ())
    return env.choose(env.mask, value, neutral)


def reduce_value(op: str, value: Value, over: Sequence[str], env: Environment) -> Value:
    """Returns the reduction of a value over axes; it may be constant along some."""
    if not over:
        return value
    axes = tuple(axis for axis in env.order if axis in value.axes or axis in over)
    if op not in ("add", "mul", "xor"):
        axes = value.axes  # Repetition changes nothing.
    is_repeated = axes != value.axes
    if is_repeated:
        value = repeated(value, env.origins)
    array = env.spread(value, axes)
    dimensions = tuple(i for i, axis in enumerate(axes) if axis in over)
    kept = tuple(axis for axis in axes if axis not in over)
    result = operations.reduce(op, array, dimensions)
    if is_repeated:
        env.origins.note(result, "scaled" if op == "add" else "several")
    return Value(result, kept)
