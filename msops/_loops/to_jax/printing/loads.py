"""Loads: slices and reshapes where indices are affine, else gathers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jax import lax

from msops._loops.analysis.affine import Affine
from msops._loops.analysis.conditions import implied
from msops._loops.ir.nodes import Load
from msops._loops.ir.ranges import range_of
from msops._loops.to_jax.printing.environment import Environment, ValueOf
from msops._loops.to_jax.printing.indices import (
    IndexTuples,
    as_index,
    find_windows,
    scalar_sum,
    stacked,
)
from msops._loops.to_jax.printing.values import Array, Uniform, Value, reshaped
from msops._loops.to_jax.raising.views import ArrayView, Dimension, Level, find_view


def load(expr: Load, env: Environment, value_of: ValueOf) -> Value:
    """Returns the elements that a load reads."""
    contents = env.contents[expr.buffer]
    if isinstance(contents, Uniform) or 0 in contents.shape:
        value = contents.value if isinstance(contents, Uniform) else contents.dtype.type(0)
        return Value(value, ())
    view = find_view(expr.indices, contents.shape, env.axis_ranges)
    padding = [_padding(dimension, env) for dimension in view.dimensions] if view else []
    known = [amount for amount in padding if amount is not None]
    if view is None or len(known) < len(padding):
        value = gather(contents, expr, env, value_of)
    else:
        value = _viewed(contents, view, known, value_of)
    order = env.ordered(set(value.axes))
    return Value(env.spread(value, order), order)


# Views.


def _padding(dimension: Dimension, env: Environment) -> tuple[int, int] | None:
    """Returns how far the view reaches beyond both ends of a dimension.

    None: an element beyond them may be chosen, so the index must be clamped to the nearest one.
    """
    first, last = dimension.index.range(env.ranges)
    low, high = max(0, -first), max(0, last - dimension.size + 1)
    if not low and not high:
        return (0, 0)
    if not dimension.levels and dimension.rest:
        return (0, 0)  # A dynamic slice of one element clamps its index itself.
    if max(low, high) > 4 * dimension.size:
        return None
    size = Affine.of_constant(dimension.size - 1)
    names, conditions = env.axis_ranges, env.conditions
    inside = implied(dimension.index, conditions, names, env.ranges) and implied(
        size - dimension.index, conditions, names, env.ranges
    )
    return (low, high) if inside else None


def _viewed(
    array: Array, view: ArrayView, padding: Sequence[tuple[int, int]], value_of: ValueOf
) -> Value:
    """Returns the view of an array, its axes in the order of memory."""
    array = reshaped(array, view.shape)
    array = _padded(array, view, padding)
    array = _sliced(array, view, padding, value_of)
    array = _split_levels(array, view)
    backwards = [i for i, axis in enumerate(view.axes) if axis in view.reversed]
    return Value(lax.rev(array, backwards) if backwards else array, view.axes)


def _padded(array: Array, view: ArrayView, padding: Sequence[tuple[int, int]]) -> Array:
    """Pads with what is never chosen: beyond the ends, and to whole blocks of outer levels."""
    amounts = []
    for dimension, (low, high) in zip(view.dimensions, padding, strict=True):
        spare = _block(dimension) - dimension.length
        end = 0 if dimension.rest else dimension.start + dimension.length
        beyond = max(high, end + spare - dimension.size) if not dimension.rest else high + spare
        amounts.append((low, max(0, beyond), 0))
    if any(amount != (0, 0, 0) for amount in amounts):
        array = lax.pad(array, np.zeros((), array.dtype), amounts)
    return array


def _block(dimension: Dimension) -> int:
    """How many elements are cut out, so that they divide into the levels."""
    if len(dimension.levels) < 2:
        return dimension.length
    outermost = dimension.levels[0]
    return outermost.step * outermost.extent


def _sliced(
    array: Array, view: ArrayView, padding: Sequence[tuple[int, int]], value_of: ValueOf
) -> Array:
    dimensions = view.dimensions
    starts = [d.start + low for d, (low, _) in zip(dimensions, padding, strict=True)]
    lengths = [_block(dimension) for dimension in dimensions]
    if any(dimension.rest for dimension in dimensions):
        dynamic = [
            scalar_sum(dimension.rest, start, dimension.size, value_of)
            for dimension, start in zip(dimensions, starts, strict=True)
        ]
        array = lax.dynamic_slice(array, dynamic, lengths, allow_negative_indices=False)
        starts = [0] * len(dimensions)
    strides = [d.levels[0].step if len(d.levels) == 1 else 1 for d in dimensions]
    ends = [start + length for start, length in zip(starts, lengths, strict=True)]
    if any(starts) or any(s > 1 for s in strides) or tuple(ends) != tuple(array.shape):
        array = lax.slice(array, starts, ends, strides)
    return array


def _split_levels(array: Array, view: ArrayView) -> Array:
    """Gives every level a dimension of its own, outermost first."""
    depth = max((len(dimension.levels) for dimension in view.dimensions), default=0)
    if depth < 2:
        return reshaped(array, _extents(view))
    for position in range(depth - 1):
        array = _split_once(array, view, position)
    return reshaped(array, _extents(view))


def _split_once(array: Array, view: ArrayView, position: int) -> Array:
    """Splits level `position` off the blocks of every dimension that has a next one."""
    shape: list[int] = []
    keep: list[tuple[int, int]] = []
    for dimension in view.dimensions:
        levels = dimension.levels
        done = levels[: min(position, max(0, len(levels) - 1))]
        for level in done:
            shape.append(level.extent)
            keep.append((level.extent, 1))
        rest = levels[len(done) :]
        if len(rest) > 1:
            shape += [rest[0].extent, rest[0].step]
            keep.append((rest[0].extent, 1))
            keep.append(_next_cut(rest[1:]))
        elif rest:
            shape.append(rest[0].extent)
            keep.append((rest[0].extent, 1))
        else:
            shape.append(1)
            keep.append((1, 1))
    array = reshaped(array, shape)
    lengths = [length for length, _ in keep]
    short = [max(0, n - size) for n, size in zip(lengths, shape, strict=True)]
    if any(short):
        array = lax.pad(array, np.zeros((), array.dtype), [(0, n, 0) for n in short])
    if tuple(lengths) != tuple(array.shape) or any(stride > 1 for _, stride in keep):
        array = lax.slice(array, [0] * len(keep), lengths, [stride for _, stride in keep])
    return array


def _next_cut(levels: Sequence[Level]) -> tuple[int, int]:
    """Length and stride of the slice that holds what the levels of a block need."""
    if len(levels) == 1:
        return 1 + levels[0].step * (levels[0].extent - 1), levels[0].step
    return levels[0].step * levels[0].extent, 1


def _extents(view: ArrayView) -> list[int]:
    return [level.extent for dimension in view.dimensions for level in dimension.levels]


def gather(array: Array, expr: Load, env: Environment, value_of: ValueOf) -> Value:
    """Returns elements at indices, each clamped to the nearest one that there is."""
    windows = find_windows(expr.indices, array.shape, set(), env)
    array = _cut(array, windows, expr, env)
    indexed = tuple(p for p in range(array.ndim) if p not in windows)
    values = [as_index(value_of(expr.indices[p]), array.shape[p], env) for p in indexed]
    batch = env.ordered({axis for value in values for axis in value.axes})
    columns = [env.spread(value, batch) for value in values]
    tuples = IndexTuples(stacked(columns), batch, indexed, windows)
    modes = lax.GatherScatterMode
    mode = modes.PROMISE_IN_BOUNDS if _is_inside(expr, array, indexed, env) else modes.CLIP
    return Value(elements(array, tuples, mode), (*batch, *windows.values()))


def elements(array: Array, tuples: IndexTuples, mode: lax.GatherScatterMode) -> Array:
    """Returns the elements at index tuples: dimensions of the batch, then those of windows."""
    first = len(tuples.batch)
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(first, first + len(tuples.windows))),
        collapsed_slice_dims=tuples.indexed,
        start_index_map=tuples.indexed,
    )
    sizes = tuple(size if p in tuples.windows else 1 for p, size in enumerate(array.shape))
    return lax.gather(array, tuples.indices, numbers, sizes, mode=mode)


def _cut(array: Array, windows: dict[int, str], expr: Load, env: Environment) -> Array:
    """Returns what the axes of windows run over."""
    starts, ends = [0] * array.ndim, list(array.shape)
    for position, axis in windows.items():
        first, _ = range_of(expr.indices[position], env.ranges)
        starts[position], ends[position] = first, first + env.extents[axis]
    if not any(starts) and ends == list(array.shape):
        return array
    return lax.slice(array, starts, ends)


def _is_inside(expr: Load, array: Array, indexed: tuple[int, ...], env: Environment) -> bool:
    bounds = [(range_of(expr.indices[p], env.ranges), array.shape[p]) for p in indexed]
    return all(low >= 0 and high < size for (low, high), size in bounds)
