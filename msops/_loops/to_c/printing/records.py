"""Elements of records, which gcc takes into vectors one by one.

    parallel i in 0 .. 100 {
      y[i, 0] = sin(x[i])                y[i * 5] = ...
      ...                         C:     ...
      y[i, 4] = cos(x[i])                y[i * 5 + (4 + ms_apart_4)] = ...
    }

gcc loads the neighbours of several records together, and stores them together, by shuffles of
vectors. It has these for records of three elements, or of a power of two, and leaves loops over
others scalar. Of elements whose distance it does not know it makes vectors one by one. That pays
where a loop computes much from them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msops._loops.analysis.affine import Affine, affine
from msops._loops.ir.nodes import Buffer, Expr, For, Load, Store
from msops._loops.ir.walk import accesses_in, statements
from msops._loops.to_c.facts.strides import stride
from msops._loops.to_c.facts.work import LEAST_WORK, work

_MOST_FIELDS = 16
"""Elements of a record that are told apart; each takes a register for its address."""

Place: TypeAlias = tuple[str, tuple[Expr, ...]]
"""A buffer and indices."""


def elements_apart(loop: For, buffers: Mapping[str, Buffer]) -> dict[Place, int]:
    """Returns which elements gcc must not take for neighbours, so that a loop runs in vectors.

    Args:
      loop: an innermost loop that is to run in vectors.
      buffers: the buffers of the kernel, locals too, by name.

    Returns:
      A number for each, from 1; those with different numbers are apart, and from all without one.
    """
    of_buffers: dict[str, list[Load | Store]] = {}
    for access in accesses_in(loop.body):
        if access.indices:
            of_buffers.setdefault(access.buffer, []).append(access)
    records = [record for same in of_buffers.values() for record in _records(same, loop, buffers)]
    if not any(_is_left_scalar(record, loop, buffers) for record in records):
        return {}
    places = {(access.buffer, access.indices) for same in of_buffers.values() for access in same}
    if work(statements(loop.body)) < LEAST_WORK * len(places):
        return {}
    if any(len(record) > _MOST_FIELDS for record in records):
        return {}
    return {
        (access.buffer, access.indices): number
        for record in records
        for number, (_, same) in enumerate(sorted(record.items()))
        for access in same
        if number
    }


def _records(
    accesses: Sequence[Load | Store], loop: For, buffers: Mapping[str, Buffer]
) -> list[dict[int, list[Load | Store]]]:
    """Returns the accesses to each record by their distances from one of its elements.

    Args:
      accesses: all accesses to a buffer.
      loop: the loop.
      buffers: the buffers of the kernel.
    """
    if len(accesses) < 2:
        return []
    found: dict[frozenset[tuple[Expr, int]], dict[int, list[Load | Store]]] = {}
    for access in accesses:
        shape = buffers[access.buffer].shape
        total = Affine.of_constant(0)
        for axis, at in enumerate(access.indices):
            part = affine(at, {loop.var})
            if part is None:
                break
            total += part.scaled(math.prod(shape[axis + 1 :]))
        else:
            terms = frozenset(total.terms.items())
            found.setdefault(terms, {}).setdefault(total.constant, []).append(access)
    return list(found.values())


def _is_left_scalar(
    record: Mapping[int, list[Load | Store]], loop: For, buffers: Mapping[str, Buffer]
) -> bool:
    """Returns whether gcc has no shuffle for the elements that a loop touches of a record."""
    one, *_ = next(iter(record.values()))
    size = abs(stride(one, loop.var, buffers) or 0)
    if size in (0, 3) or size.bit_count() == 1:
        return False
    loaded, stored = (
        sum(any(isinstance(access, kind) for access in same) for same in record.values())
        for kind in (Load, Store)
    )
    # One loaded element, or a part that is stored, it takes into vectors one by one by itself.
    return loaded >= 2 or stored >= size
