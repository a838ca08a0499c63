"""Loads through indices that are no slices."""

from __future__ import annotations

from jax import lax

from msops._loops.ir.nodes import Load
from msops._loops.ir.ranges import range_of
from msops._loops.to_jax.printing.environment import Environment, ValueOf
from msops._loops.to_jax.printing.indices import IndexTuples, as_index, find_windows, stacked
from msops._loops.to_jax.printing.values import Array, Value


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
