"""Scans along an axis: cumulative operations and first-order linear recurrences."""

from __future__ import annotations

from functools import partial

import numpy as np
from jax import lax

from msops._loops.to_jax.printing import operations
from msops._loops.to_jax.printing.environment import Environment
from msops._loops.to_jax.printing.evaluate import evaluate
from msops._loops.to_jax.printing.values import Array, Value, in_float32
from msops._loops.to_jax.raising.steps import Accumulate, Recur

_CUMULATIVE = {"add": lax.cumsum, "mul": lax.cumprod, "min": lax.cummin, "max": lax.cummax}


def accumulate(step: Accumulate, env: Environment) -> Value:
    """Returns every partial result along the axis."""
    axes = env.order
    array = env.spread(evaluate(step.value, env), axes)
    first = env.spread(evaluate(step.initial, env), _without(axes, step.axis))
    position = axes.index(step.axis)
    sums = in_float32(partial(_CUMULATIVE[step.op], axis=position), array)
    initial = lax.broadcast_in_dim(first, array.shape, _others(array.ndim, position))
    return Value(operations.binary(step.op, str(array.dtype))(initial, sums), axes)


def recur(step: Recur, env: Environment) -> Value:
    """Returns h for every position of the axis, where h_i = a_i h_{i-1} + b_i."""
    axes = env.order
    position = axes.index(step.axis)
    factor = env.spread(evaluate(step.coefficient, env), axes)
    addend = env.spread(evaluate(step.addend, env), axes)
    first = env.spread(evaluate(step.initial, env), _without(axes, step.axis))
    product = lax.platform_dependent(
        *env.vary((factor, addend, first)),
        cpu=partial(_one_by_one, position=position),
        default=partial(_by_halves, position=position),
    )
    return Value(product, axes)


def _one_by_one(factor: Array, addend: Array, first: Array, position: int) -> Array:
    """A CPU has no use for parallelism that costs passes over memory."""
    permutation = (position, *_others(factor.ndim, position))

    def step(before: Array, now: tuple[Array, ...]) -> tuple[Array, Array]:
        result = lax.add(lax.mul(now[0], before), now[1])
        return result, result

    moved = tuple(lax.transpose(x, permutation) for x in (factor, addend))
    _, stacked = lax.scan(step, first, moved)
    return lax.transpose(stacked, np.argsort(permutation))


def _by_halves(factor: Array, addend: Array, first: Array, position: int) -> Array:
    """Composition of affine functions associates (Blelloch 1990)."""

    def compose(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
        return lax.mul(one[0], other[0]), lax.add(lax.mul(other[0], one[1]), other[1])

    product, total = lax.associative_scan(compose, (factor, addend), axis=position)
    initial = lax.broadcast_in_dim(first, product.shape, _others(product.ndim, position))
    return lax.add(lax.mul(product, initial), total)


def _without(axes: tuple[str, ...], axis: str) -> tuple[str, ...]:
    return tuple(other for other in axes if other != axis)


def _others(ndim: int, position: int) -> tuple[int, ...]:
    return tuple(i for i in range(ndim) if i != position)
