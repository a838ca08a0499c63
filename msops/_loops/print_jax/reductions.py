"""Reductions, contractions, convolutions and pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import numpy as np
from jax import lax

from msops._loops.intrinsics import is_float
from msops._loops.ir import Expr
from msops._loops.print_jax import operations
from msops._loops.print_jax.evaluate import _apply, choose, evaluate
from msops._loops.print_jax.scope import Scope
from msops._loops.print_jax.values import Array, Value, constant, spread
from msops._loops.raising.steps import Contract, Convolve, Pool
from msops._loops.raising.windows import Window


def reduce_expression(op: str, expr: Expr, over: Sequence[str], scope: Scope) -> Value:
    """Returns the reduction of an expression over axes, where the scope's conditions hold."""
    value = evaluate(expr, scope)
    if scope.mask is not None and (over or True):
        neutral = Value(operations.identity(op, expr.dtype), ())
        value = choose(scope.mask, value, neutral, scope)
    return reduce_value(op, value, over, scope)


def reduce_value(op: str, value: Value, over: Sequence[str], scope: Scope) -> Value:
    """Returns the reduction of a value over axes; it may be constant along some."""
    if not over:
        return value
    axes = tuple(axis for axis in scope.order if axis in value.axes or axis in over)
    if op in ("min", "max", "land", "lor", "and", "or"):
        axes = value.axes  # Repetition changes nothing.
    array = spread(value, axes, scope.extents)
    dimensions = tuple(i for i, axis in enumerate(axes) if axis in over)
    kept = tuple(axis for axis in axes if axis not in over)
    return Value(operations.reduce(op, array, dimensions), kept)


# Contractions.


def contract(step: Contract, scope: Scope) -> Value:
    """Returns a sum of products, pair by pair, the cheapest pair first."""
    values = [evaluate(factor, scope) for factor in step.factors]
    kept = {axis for axis in scope.order if axis not in step.over}
    total = contract_values(values, kept, scope)
    missing = [axis for axis in step.over if all(axis not in v.axes for v in values)]
    if missing:
        times = constant(
            math.prod(scope.extents[axis] for axis in missing), step.nest.store.value.dtype
        )
        total = _apply(lax.mul, scope, total, Value(times, ()))
    return _apply(lax.neg, scope, total) if step.turned else total


def contract_values(values: Sequence[Value], kept: set[str], scope: Scope) -> Value:
    """Returns the product of values, summed over all axes that are not kept."""
    left = list(values)
    while len(left) > 1:
        first, second = min(
            ((i, j) for i in range(len(left)) for j in range(i + 1, len(left))),
            key=lambda pair: _pair_cost(left, pair, kept, scope),
        )
        other, one = left.pop(second), left.pop(first)
        needed = kept.union(*(value.axes for value in left))
        left.append(_contract_pair(one, other, needed, scope))
    (last,) = left
    return reduce_value("add", last, [axis for axis in last.axes if axis not in kept], scope)


def _pair_cost(
    values: Sequence[Value], pair: tuple[int, int], kept: set[str], scope: Scope
) -> tuple[int, int]:
    """The size of a pair's result, then the work."""
    one, other = (values[i] for i in pair)
    rest = [value for i, value in enumerate(values) if i not in pair]
    needed = kept.union(*(value.axes for value in rest))
    axes = {*one.axes, *other.axes}
    extents = scope.extents
    return (
        math.prod(extents[axis] for axis in axes & needed),
        math.prod(extents[axis] for axis in axes),
    )


def _contract_pair(one: Value, other: Value, needed: set[str], scope: Scope) -> Value:
    shared = set(one.axes) & set(other.axes)
    summed = [axis for axis in scope.order if axis in shared and axis not in needed]
    free = [[a for a in value.axes if a not in shared] for value in (one, other)]
    if not summed or not (free[0] or free[1]):
        product = _apply(lax.mul, scope, one, other)
        return reduce_value("add", product, [a for a in product.axes if a not in needed], scope)
    one, other = (
        reduce_value("add", v, [a for a in own if a not in needed], scope)
        for v, own in zip((one, other), free, strict=True)
    )
    batch = [axis for axis in scope.order if axis in shared and axis in needed]
    numbers = tuple(
        tuple(tuple(value.axes.index(axis) for axis in group) for value in (one, other))
        for group in (summed, batch)
    )
    product = _dot(one.array, other.array, numbers)
    axes = (
        *batch,
        *(axis for axis in one.axes if axis not in shared),
        *(axis for axis in other.axes if axis not in shared),
    )
    return Value(product, axes)


def precision() -> lax.Precision | None:
    """Returns full precision, unless the user of JAX asked for another by its own setting."""
    return None if jax.config.jax_default_matmul_precision else lax.Precision.HIGHEST


def _dot(one: Array, other: Array, numbers: tuple) -> Array:
    narrow = np.dtype(one.dtype).itemsize == 2 and np.dtype(one.dtype).kind not in "iu"
    product = lax.dot_general(
        one, other, numbers, precision=precision(),
        preferred_element_type=np.float32 if narrow else one.dtype,
    )  # fmt: skip
    return lax.convert_element_type(product, one.dtype) if narrow else product


# Sliding windows.


def convolve(step: Convolve, scope: Scope, wide: Scope) -> Value:
    """Returns a convolution.

    Args:
      step: the convolution.
      scope: of the nest.
      wide: the same with the windows' own axes.
    """
    image, kernel = evaluate(step.image, wide), evaluate(step.filter, scope)
    taps = [window.tap for window in step.windows]
    outputs = [window.output for window in step.windows]
    slides = [window.axis for window in step.windows]
    over = set(step.over)
    image = reduce_value("add", image, _only(image, kernel, over - set(taps)), wide)
    kernel = reduce_value("add", kernel, _only(kernel, image, over - set(taps)), scope)
    shared = [a for a in scope.order if a in image.axes and a in kernel.axes]
    groups = [axis for axis in shared if axis not in over]
    features = [axis for axis in shared if axis in over]
    batch = [axis for axis in image.axes if axis not in {*shared, *slides}]
    filters = [axis for axis in kernel.axes if axis not in {*shared, *taps}]
    extents = {**scope.extents, **wide.extents}

    def flat(value: Value, *parts: Sequence[str]) -> Array:
        array = spread(value, [axis for part in parts for axis in part], extents)
        return lax.reshape(array, [math.prod(extents[a] for a in part) for part in parts])

    lhs = flat(image, batch, [*groups, *features], *([axis] for axis in slides))
    rhs = flat(kernel, [*groups, *filters], features, *([axis] for axis in taps))
    backwards = [2 + i for i, window in enumerate(step.windows) if window.dilation < 0]
    result = _conv(
        lhs, lax.rev(rhs, backwards) if backwards else rhs, step.windows,
        math.prod(extents[axis] for axis in groups),
    )  # fmt: skip
    axes = (*batch, *groups, *filters, *outputs)
    result = lax.reshape(result, [extents[axis] for axis in axes])
    value = Value(result, axes)
    return _apply(lax.neg, scope, value) if step.turned else value


def _only(value: Value, other: Value, over: set[str]) -> list[str]:
    return [axis for axis in value.axes if axis in over and axis not in other.axes]


def _conv(lhs: Array, rhs: Array, windows: Sequence[Window], groups: int) -> Array:
    narrow = np.dtype(lhs.dtype).itemsize == 2 and np.dtype(lhs.dtype).kind not in "iu"
    kind = lhs.dtype
    if narrow:
        lhs, rhs = (lax.convert_element_type(x, np.float32) for x in (lhs, rhs))
    result = lax.conv_general_dilated(
        lhs, rhs,
        window_strides=[window.stride for window in windows],
        padding=[(0, 0)] * len(windows),
        rhs_dilation=[abs(window.dilation) for window in windows],
        feature_group_count=groups,
        precision=precision(),
    )  # fmt: skip
    return lax.convert_element_type(result, kind) if narrow else result


def pool(step: Pool, scope: Scope, wide: Scope) -> Value:
    """Returns a reduction over sliding windows."""
    value = evaluate(step.value, wide)
    taps = {window.tap for window in step.windows}
    value = reduce_value(step.op, value, [a for a in step.over if a not in taps], wide)
    by_axis = {window.axis: window for window in step.windows}
    lengths = [scope.extents[by_axis[a].tap] if a in by_axis else 1 for a in value.axes]
    strides = [by_axis[a].stride if a in by_axis else 1 for a in value.axes]
    dilations = [by_axis[a].dilation if a in by_axis else 1 for a in value.axes]
    array = _reduce_window(step.op, value.array, lengths, strides, dilations)
    axes = tuple(by_axis[a].output if a in by_axis else a for a in value.axes)
    return Value(array, axes)


def _reduce_window(
    op: str, array: Array, lengths: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Array:
    kind = np.dtype(array.dtype)
    function = {"add": lax.add, "max": lax.max, "min": lax.min}[op]
    start = operations.identity(op, kind.name)
    return lax.reduce_window(
        array, start, function, tuple(lengths), tuple(strides), "VALID",
        window_dilation=tuple(dilations),
    )  # fmt: skip


__all__ = ["contract", "convolve", "is_float", "pool", "reduce_expression"]
