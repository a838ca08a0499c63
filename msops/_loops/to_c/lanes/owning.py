"""Local copies of the elements of arrays that only one iteration of a loop touches.

    parallel t in 0 .. 1000 {             parallel t in 0 .. 1000 {
      serial j in 0 .. 6 {                  local own: float32[6] {
        b[t, j] = f(b[t, 0], ...)             parallel e in 0 .. 6 { own[e] = b[t, e] }
      }                             ->        serial j in 0 .. 6 { own[j] = f(own[0], ...) }
    }                                         parallel e_1 in 0 .. 6 { b[t, e_1] = own[e_1] }
                                            } }

For rows in the lanes of vectors, the lanes are the last axis of a copy. A vector of its elements is
then read at once, although the original elements are apart in memory.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence

from msops._loops.analysis.costs import mean_trips
from msops._loops.ir.names import Names, over_box
from msops._loops.ir.nodes import Buffer, Expr, For, If, Kernel, Load, Local, Stmt, Store, Var
from msops._loops.ir.operators import size_bytes
from msops._loops.ir.ranges import Ranges, nested_ranges
from msops._loops.ir.walk import (
    A,
    Scope,
    accesses_in,
    buffers_of,
    declared_in,
    is_innermost,
    loads,
    map_accesses,
    statements,
    stored_in,
)
from msops._loops.to_c.clean.reductions import SUMMED_IN_FLOAT32
from msops._loops.to_c.facts.blocks import can_swap
from msops._loops.to_c.facts.strides import stride
from msops._loops.to_c.facts.work import LEAST_WORK, work_in_loops
from msops._loops.to_c.lanes.lane_groups import around_lanes, may_be_in_lanes

_MOST_BYTES = 1 << 10
"""Bytes of an array of one row: the array of all lanes stays near the first-level cache."""
_FEWEST_TRIPS = 8
"""Iterations of a loop inside of a row that fill vectors of their own."""


def with_arrays_of_own(
    loop: For, scope: Scope, kernel: Kernel, names: Names
) -> tuple[tuple[Stmt, ...], list[For | If]] | None:
    """Returns the body of a loop on copies of its rows; None if these gain nothing in lanes.

    Args:
      loop: a parallel loop.
      scope: the scope around it.
      kernel: the kernel.
      names: the names of the kernel.

    Returns:
      The body, and its loops and conditions that go around the lanes.
    """
    buffers = buffers_of(kernel)
    copied = _arrays_of_own(loop, buffers)
    stored = stored_in(loop.body)
    back = [b for b in copied if b.name in stored and _is_read_after(b, loop, scope, kernel)]
    inside = statements(loop.body)
    loops = [part for part in inside if isinstance(part, For)]
    ranges = nested_ranges((loop, *loops), scope.ranges)
    moved = sum(math.prod(buffer.shape[1:]) for buffer in (*copied, *back))
    if (
        stored.isdisjoint(buffer.name for buffer in copied)
        or not all(_may_be_in_row(part, loop) for part in inside)
        or not _run_in_order(loops, ranges)
        or not _touches_only_rows(loop, copied, buffers)
        or work_in_loops(loop.body, ranges) < LEAST_WORK * moved
    ):
        return None
    return _on_copies(loop, copied, back, names)


def _run_in_order(loops: Sequence[For], ranges: Ranges) -> bool:
    """Returns whether the loops of a row run in order, or are too short for vectors."""
    return any(loop.kind == "serial" for loop in loops) and not any(
        is_innermost(loop) and loop.kind != "serial" and mean_trips(loop, ranges) >= _FEWEST_TRIPS
        for loop in loops
    )


def _may_be_in_row(stmt: Stmt, loop: For) -> bool:
    """Returns whether a statement of a row can run in lanes, or around them."""
    match stmt:
        case For():
            return can_swap(loop, stmt)
        case If():
            return may_be_in_lanes(stmt, loop)
        case Local(buffer=buffer):
            return size_bytes(buffer) <= _MOST_BYTES
        case Store(value=value):
            # Sums of the others have more digits.
            return value.dtype not in SUMMED_IN_FLOAT32


def _touches_only_rows(
    loop: For, copied: Collection[Buffer], buffers: Mapping[str, Buffer]
) -> bool:
    """Returns whether all that a loop touches are small rows, or elements beside each other."""
    rows = declared_in(loop.body) | {buffer.name for buffer in copied}
    accesses = dict.fromkeys(accesses_in(loop.body))
    return all(size_bytes(b) <= _MOST_BYTES * b.shape[0] for b in copied) and not any(
        any(loads(index) for index in access.indices)
        or (access.buffer not in rows and stride(access, loop.var, buffers) not in (0, 1))
        for access in accesses
    )


def _is_read_after(buffer: Buffer, loop: For, scope: Scope, kernel: Kernel) -> bool:
    """Returns whether anything but a loop may read what it stores to an array."""
    if buffer.name in kernel.results or scope.loops:
        return True
    everywhere, inside = (
        sum(access.buffer == buffer.name for access in accesses_in(body))
        for body in (kernel.body, loop.body)
    )
    return everywhere > inside


def _arrays_of_own(loop: For, buffers: Mapping[str, Buffer]) -> list[Buffer]:
    """Returns the arrays of which each iteration of a loop touches a row of its own.

    Args:
      loop: the loop.
      buffers: the buffers of the kernel, locals too, by name.
    """
    declared, at = declared_in(loop.body), Var(loop.var)
    firsts: dict[str, set[Expr | None]] = {}
    for access in accesses_in(loop.body):
        if access.buffer not in declared:
            is_in_row = len(access.indices) > 1
            firsts.setdefault(access.buffer, set()).add(access.indices[0] if is_in_row else None)
    return [buffers[name] for name, found in firsts.items() if found == {at}]


def _on_copies(
    loop: For,
    copied: Sequence[Buffer],
    back: Collection[Buffer],
    names: Names,
) -> tuple[tuple[Stmt, ...], list[For | If]]:
    """Returns what `with_arrays_of_own` does; the loops that copy do not go around the lanes.

    Args:
      loop: the loop.
      copied: the arrays whose rows are copied.
      back: those whose rows are copied back.
      names: the names of the kernel.
    """
    own = {
        buffer.name: dataclasses.replace(buffer, name=names.fresh("own"), shape=buffer.shape[1:])
        for buffer in copied
    }

    def element(access: A) -> A:
        if access.buffer not in own:
            return access
        buffer = own[access.buffer].name
        return dataclasses.replace(access, buffer=buffer, indices=access.indices[1:])

    changed = map_accesses(loop.body, element)
    around = around_lanes(changed, loop)
    before = (_copy(loop, buffer, own[buffer.name], names, is_back=False) for buffer in copied)
    after = (_copy(loop, buffer, own[buffer.name], names, is_back=True) for buffer in back)
    body: tuple[Stmt, ...] = (*before, *changed, *after)
    for inner in own.values():
        body = (Local(inner, body, location=loop.location),)
    return body, around


def _copy(loop: For, buffer: Buffer, own: Buffer, names: Names, *, is_back: bool) -> Stmt:
    """Returns the loops that copy a row of an array, or copy it back."""
    outer: Expr = Var(loop.var)

    def copied(at: tuple[Expr, ...]) -> Stmt:
        if is_back:
            return Store(buffer.name, (outer, *at), Load(own.name, at, own.dtype))
        return Store(own.name, at, Load(buffer.name, (outer, *at), buffer.dtype))

    spans = [(0, size) for size in own.shape]
    return over_box(spans, ["e"] * len(spans), names.fresh, copied)
