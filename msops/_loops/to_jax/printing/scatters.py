"""Stores through indices that are no slices, with derivatives for those JAX has none of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax

from msops._loops.ir.algebra import integer
from msops._loops.ir.nodes import Store
from msops._loops.ir.ranges import range_of
from msops._loops.to_jax.printing import operations
from msops._loops.to_jax.printing.environment import Environment
from msops._loops.to_jax.printing.evaluate import evaluate
from msops._loops.to_jax.printing.indices import IndexTuples, as_index, find_windows, stacked
from msops._loops.to_jax.printing.loads import elements
from msops._loops.to_jax.printing.reductions import FOUND_BY, NOWHERE, keys_at
from msops._loops.to_jax.printing.values import Array, Value

_MODES = lax.GatherScatterMode


def scatter(
    buffer: Array,
    target: Store,
    value: Value,
    op: str | None,
    env: Environment,
    *,
    once: bool,
) -> Array:
    """Returns a buffer with elements replaced or combined.

    Args:
      buffer: the old contents.
      target: what is stored to.
      value: what is stored.
      op: what it is combined with the old elements by; None replaces them, and no two iterations
        then store to the same element.
      env: what is evaluated where; nothing is stored where its masks do not hold.
      once: no element is combined twice.
    """
    if not target.indices:
        # A scalar has no dimension to index.
        tuples, updates = _index_tuples((1,), target, value, env)
        return lax.reshape(_scatter(lax.reshape(buffer, (1,)), tuples, updates, op), ())
    tuples, updates = _index_tuples(buffer.shape, target, value, env)
    if op is not None and once:
        # JAX has scatters for few operations, and derivatives for fewer.
        old = _cut_elements(buffer, tuples, updates)
        updates = operations.binary(op, str(buffer.dtype))(old, updates)
        op = None
    return _scatter(buffer, tuples, updates, op)


def _index_tuples(
    shape: tuple[int, ...], target: Store, value: Value, env: Environment
) -> tuple[IndexTuples, Array]:
    """Returns where the iterations store, and what."""
    indices = target.indices or (integer(0),)
    mask = env.mask
    moving = set(mask.axes) if mask else set()
    windows = {
        position: axis
        for position, axis in find_windows(indices, shape, moving, env).items()
        if range_of(indices[position], env.ranges)[0] == 0
    }
    if len(windows) == len(shape):
        del windows[0]  # There must be an index.
    indexed = tuple(p for p in range(len(shape)) if p not in windows)
    values = [as_index(evaluate(indices[p], env), shape[p], env) for p in indexed]
    used = set(value.axes).union(moving, *(index.axes for index in values))
    batch = env.ordered(used - set(windows.values()))
    columns = [env.spread(index, batch) for index in values]
    if mask is not None:
        where = env.spread(mask, batch)
        beyond = lax.full(where.shape, np.int32(shape[indexed[0]]))
        first = columns[0] if np.ndim(columns[0]) else lax.full(where.shape, columns[0])
        columns[0] = lax.select(where, first, beyond)
    updates = env.spread(value, (*batch, *windows.values()))
    updates = lax.full((), np.asarray(updates)) if isinstance(updates, np.generic) else updates
    return IndexTuples(stacked(columns), batch, indexed, windows), updates


def _scatter(buffer: Array, tuples: IndexTuples, updates: Array, op: str | None) -> Array:
    if op in ("land", "lor"):
        wide, new = (lax.convert_element_type(x, np.int32) for x in (buffer, updates))
        result = _plain("min" if op == "land" else "max", wide, tuples, new)
        return lax.convert_element_type(result, np.bool_)
    if op and op.endswith(("min", "max")) and np.dtype(buffer.dtype).kind not in "iub":
        return _extreme(op, tuples)(buffer, updates, tuples.indices)
    return _plain(op, buffer, tuples, updates)


def _plain(op: str | None, buffer: Array, tuples: IndexTuples, updates: Array) -> Array:
    first = len(tuples.batch)
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(range(first, first + len(tuples.windows))),
        inserted_window_dims=tuples.indexed,
        scatter_dims_to_operand_dims=tuples.indexed,
    )
    return _SCATTERS[op](
        buffer,
        tuples.indices,
        updates,
        numbers,
        mode=_MODES.FILL_OR_DROP,
        unique_indices=op is None,
    )


_SCATTERS: dict[str | None, Callable[..., Array]] = {
    None: lax.scatter,
    "add": lax.scatter_add,
    "mul": lax.scatter_mul,
    "min": lax.scatter_min,
    "max": lax.scatter_max,
}


def _extreme(op: str, tuples: IndexTuples) -> Callable[[Array, Array, Array], Array]:
    """Returns a scatter of minima or maxima, or of those that a condition keeps.

    Its derivative is that of the elements which equal the result, their mean where several do, as
    JAX has it for reductions.
    """

    @jax.custom_jvp
    def run(buffer: Array, updates: Array, indices: Array) -> Array:
        here = dataclasses.replace(tuples, indices=indices)
        keeps, _, extreme = op.rpartition(" ")
        best = _plain(extreme, buffer, here, updates)
        return _with_signs(keeps, best, buffer, here, updates) if keeps else best

    @run.defjvp
    def run_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Array]:
        buffer, updates, indices = primals
        result = run(buffer, updates, indices)
        here = dataclasses.replace(tuples, indices=indices)
        found = _cut_elements(result, here, updates)
        kept, taken = (
            lax.convert_element_type(lax.eq(*pair), result.dtype)
            for pair in ((buffer, result), (updates, found))
        )
        count = _plain("add", kept, here, taken)
        total = _plain("add", lax.mul(kept, tangents[0]), here, lax.mul(taken, tangents[1]))
        # NaN equals nothing, not even itself.
        return result, lax.div(total, lax.max(count, lax.full(count.shape, 1, count.dtype)))

    return run


def _with_signs(
    keeps: str, best: Array, buffer: Array, tuples: IndexTuples, updates: Array
) -> Array:
    """Returns extremes whose zeros have the signs of those that stay; see kept_zeros.py."""
    is_zero, was_zero = (lax.eq(x, lax.full_like(x, 0)) for x in (best, buffer))
    positions = lax.reshape(lax.iota(np.int32, updates.size), updates.shape)
    keys = keys_at(positions, updates, keeps)
    nowhere = lax.full(buffer.shape, NOWHERE[keeps])
    found = _plain(FOUND_BY[keeps], nowhere, tuples, keys)
    is_odd = lax.eq(lax.bitwise_and(found, lax.full_like(found, 1)), lax.full_like(found, 1))
    zero = lax.full_like(best, 0)
    new = lax.select(is_odd, lax.neg(zero), zero)
    is_old = lax.eq(found, nowhere)
    if keeps == "first":
        is_old = lax.bitwise_or(is_old, was_zero)
    return lax.select(is_zero, lax.select(is_old, buffer, new), best)


def _cut_elements(buffer: Array, tuples: IndexTuples, updates: Array) -> Array:
    """Returns the elements at index tuples; anything for those that are dropped."""
    sizes = dict(zip(tuples.windows, updates.shape[len(tuples.batch) :], strict=True))
    ends = [sizes.get(p, size) for p, size in enumerate(buffer.shape)]
    return elements(lax.slice(buffer, [0] * buffer.ndim, ends), tuples, _MODES.CLIP)
