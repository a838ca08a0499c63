"""Scans along an axis: cumulative operations and first-order linear recurrences."""

from __future__ import annotations

import numpy as np
from jax import lax

from msops._loops.print_jax import operations
from msops._loops.print_jax.evaluate import evaluate
from msops._loops.print_jax.scope import Scope
from msops._loops.print_jax.values import Array, Value, spread
from msops._loops.raising.steps import Accumulate, Recur

_CUMULATIVE = {"add": lax.cumsum, "mul": lax.cumprod, "min": lax.cummin, "max": lax.cummax}


def accumulate(step: Accumulate, scope: Scope) -> Value:
    """Returns every partial result along the axis."""
    axes = scope.order
    array = spread(evaluate(step.value, scope), axes, scope.extents)
    first = spread(evaluate(step.initial, scope), _without(axes, step.axis), scope.extents)
    position = axes.index(step.axis)
    kind = np.dtype(array.dtype)
    narrow = kind.itemsize == 2 and kind.kind not in "iu"
    if narrow:
        array = lax.convert_element_type(array, np.float32)
    partial = _CUMULATIVE[step.op](array, axis=position)
    if narrow:
        partial = lax.convert_element_type(partial, kind)
    initial = lax.broadcast_in_dim(first, array.shape, _others(array.ndim, position))
    return Value(operations.binary(step.op, kind.name)(initial, partial), axes)


def recur(step: Recur, scope: Scope) -> Value:
    """Returns h for every position of the axis.

    h_i = a_i h_{i-1} + b_i is a composition of affine functions, which associates (Blelloch 1990).
    """
    axes = scope.order
    position = axes.index(step.axis)
    factor = spread(evaluate(step.coefficient, scope), axes, scope.extents)
    addend = spread(evaluate(step.addend, scope), axes, scope.extents)
    first = spread(evaluate(step.initial, scope), _without(axes, step.axis), scope.extents)
    others = factor.size // factor.shape[position]
    if others >= WIDE_ENOUGH:
        return Value(_scan(factor, addend, first, position), axes)

    def compose(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
        return (
            lax.mul(one[0], other[0]),
            lax.add(lax.mul(other[0], one[1]), other[1]),
        )

    product, total = lax.associative_scan(compose, (factor, addend), axis=position)
    initial = lax.broadcast_in_dim(first, product.shape, _others(product.ndim, position))
    return Value(lax.add(lax.mul(product, initial), total), axes)


WIDE_ENOUGH = 1024
"""Elements beside the axis from which one vector step a position beats the associative scan."""


def _scan(factor: Array, addend: Array, first: Array, position: int) -> Array:
    permutation = (position, *_others(factor.ndim, position))
    moved = [lax.transpose(x, permutation) for x in (factor, addend)]

    def step(before: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        result = lax.add(lax.mul(now[0], before), now[1])
        return result, result

    _, stacked = lax.scan(step, first, (moved[0], moved[1]))
    return lax.transpose(stacked, np.argsort(permutation))


def _without(axes: tuple[str, ...], axis: str) -> tuple[str, ...]:
    return tuple(other for other in axes if other != axis)


def _others(ndim: int, position: int) -> tuple[int, ...]:
    return tuple(i for i in range(ndim) if i != position)
