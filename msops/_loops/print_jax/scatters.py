"""Stores through indices that are no slices, with derivatives for those JAX has none of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax

from msops._loops.ir import Store
from msops._loops.print_jax.gathers import elements
from msops._loops.print_jax.indices import Places, as_index, find_windows, stacked
from msops._loops.print_jax.scope import Scope, ValueOf
from msops._loops.print_jax.values import Array, Value

_MODES = lax.GatherScatterMode


def scatter(
    buffer: Array, target: Store, value: Value, op: str | None, scope: Scope, value_of: ValueOf
) -> Array:
    """Returns a buffer with elements replaced or combined.

    Args:
      buffer: the old contents.
      target: what is stored to.
      value: what is stored.
      op: what it is combined with the old elements by; None replaces them, and no two iterations
        then store to the same element.
      scope: what is evaluated where; nothing is stored where its masks do not hold.
      value_of: evaluates the indices.
    """
    if not target.indices:
        # A scalar has no dimension to index.
        places, updates = _places((1,), target, value, scope, value_of)
        return lax.reshape(_scatter(lax.reshape(buffer, (1,)), places, updates, op), ())
    places, updates = _places(buffer.shape, target, value, scope, value_of)
    return _scatter(buffer, places, updates, op)


def _places(
    shape: tuple[int, ...], target: Store, value: Value, scope: Scope, value_of: ValueOf
) -> tuple[Places, Array]:
    mask = scope.mask
    moving = set(mask.axes) if mask else set()
    windows = {
        position: axis
        for position, axis in find_windows(target.indices, _known(shape, target), moving, scope).items()
        if scope.axis_ranges[axis][0] == 0 and target.indices[position] == _lone(axis)
    }
    indexed = tuple(p for p in range(len(shape)) if p not in windows)
    if not indexed:
        # Scatters need an index; whole dimensions do as well by number.
        indexed, windows = (0,), {p: axis for p, axis in windows.items() if p}
    values = [
        as_index(value_of(target.indices[p]), shape[p], scope)
        if target.indices else Value(np.int32(0), ())
        for p in indexed
    ]  # fmt: skip
    used = set(value.axes).union(moving, *(index.axes for index in values))
    batch = scope.ordered(used - set(windows.values()))
    columns = [scope.spread(index, batch) for index in values]
    if mask is not None:
        where = scope.spread(mask, batch)
        first = lax.full(where.shape, columns[0]) if not np.ndim(columns[0]) else columns[0]
        columns[0] = lax.select(where, first, lax.full(where.shape, np.int32(shape[indexed[0]])))
    updates = scope.spread(value, (*batch, *windows.values()))
    return Places(stacked(columns), batch, indexed, windows), updates
