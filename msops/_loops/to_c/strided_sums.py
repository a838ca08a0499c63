"""Sums whose elements are apart in memory are computed in an array where they are side by side.

    parallel i {                                   local w_columns: float32[32, 16] {
      reduction c in 0 .. 32 {                       ...
        local value: float32[] {                     parallel i {
          value[] = ...                                local sums: float32[16] {
          parallel o in 0 .. 16 {                        parallel o { sums[o] = out[o, i] }
            out[o, i] = out[o, i]          ->            reduction c in 0 .. 32 {
              + w[o, c] * value[]                          local value: float32[] {
          }                                                  value[] = ...
        }                                                    parallel o_1 in 0 .. 16 {
      }                                                        sums[o_1] = sums[o_1]
    }                                                            + w_columns[c, o_1] * value[]
                                                               ...
                                                         parallel o_2 { out[o_2, i] = sums[o_2] }

A deformable convolution is such a kernel. Each of its samples takes long, so the loop over channels
is inside, but the channels come first in memory: without this each vector is put together from as
many lines as it has elements. Factors that are apart, too, are copied once as in transposing.py.
Where the loops hold nothing but the sum, they are interchanged instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from msops._loops.analysis.costs import fixed_trips, mean_trips
from msops._loops.analysis.updates import update_of
from msops._loops.ir.building import element_of
from msops._loops.ir.elements import exists
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import Buffer, For, Kernel, Load, Local, Stmt, Store, Var
from msops._loops.ir.ranges import nested_ranges
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    bodies,
    buffers_of,
    declared_in,
    loads,
    map_accesses,
    rewrite_loops,
    rewrite_statements,
    stored_in,
    variables,
    with_body,
    with_parts,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.axis_copies import FEWEST_READS, AxisCopies, Factor, factor_of
from msops._loops.to_c.blocks import index
from msops._loops.to_c.packing import fill_once
from msops._loops.to_c.strides import stride, tells_apart
from msops._loops.to_c.sums import FEWEST_WAITING

A = TypeVar("A", Load, Store)

_FEWEST_COLUMNS = 8
"""Elements that fill a vector."""


def sum_side_by_side(kernel: Kernel) -> Kernel:
    """Returns the kernel with such sums in arrays of their own."""
    summing = _Summing(kernel)
    changed = rewrite_loops(kernel, summing.loop, "reduction", "serial")
    if changed is kernel:
        return kernel
    return unique_names(simplify(with_body(changed, fill_once(changed.body, summing.copies.made))))


@dataclass(frozen=True)
class _Columns:
    """An innermost loop that updates the elements of a sum.

    Attributes:
      loop: the loop.
      store: the update.
      scope: that around the loop.
    """

    loop: For
    store: Store
    scope: Scope


class _Summing:
    def __init__(self, kernel: Kernel) -> None:
        self._names = Names(kernel)
        self.copies = AxisCopies(self._names, buffers_of(kernel))

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop around a sum; None to look inside of it."""
        if not scope.is_parallel or len(stored_in(loop.body)) < 2:
            return None
        for columns in _columns_in((loop,), scope):
            if _is_strided(columns, loop, scope):
                return self._side_by_side(columns, loop, scope)
        return None

    def _side_by_side(self, columns: _Columns, loop: For, scope: Scope) -> tuple[Stmt, ...]:
        part, store = columns.loop, columns.store
        sums = Buffer(self._names.fresh("sums"), (fixed_trips(part) or 0,), store.value.dtype)
        at = (index("sub", Var(part.var), part.begin),)

        def own(access: A) -> A:
            is_sum = access.buffer == store.buffer
            return replace(access, buffer=sums.name, indices=at) if is_sum else access

        element = Load(sums.name, at, sums.dtype)
        first = with_parts(part, body=(Store(sums.name, at, element_of(store)),))
        last = with_parts(part, body=(with_parts(store, value=element),))

        def changed(old: For) -> tuple[Stmt, ...]:
            return map_accesses((old,), own) if old == part else (old,)

        body = rewrite_statements(loop.body, changed, For)
        body, copies = self.copies.read(_factors(columns, loop, scope), body)
        return self.copies.filled(
            copies, (Local(sums, (first, with_parts(loop, body=body), last)),)
        )


def _columns_in(body: tuple[Stmt, ...], scope: Scope) -> Iterator[_Columns]:
    """Yields the innermost parallel loops of one store."""
    for stmt in body:
        match stmt:
            case For(kind="parallel", body=(Store() as store,)):
                yield _Columns(stmt, store, scope)
            case _:
                for part, inside in zip(bodies(stmt), scope.inside(stmt), strict=True):
                    yield from _columns_in(part, inside)


def _is_strided(columns: _Columns, loop: For, scope: Scope) -> bool:
    """Returns whether elements of a sum are apart, and a loop does nothing else with them.

    Args:
      columns: the loop over the elements.
      loop: a loop around it, which adds terms.
      scope: the scope around that.
    """
    store, var = columns.store, columns.loop.var
    inside = columns.scope.loops[len(scope.loops) :]
    trips = fixed_trips(columns.loop) or 0
    step = stride(store, var, columns.scope.buffers)
    if update_of(store) is None or trips < _FEWEST_COLUMNS or step in (None, 0, 1):
        return False
    indices = set().union(*map(variables, store.indices))
    touched = [access for access in accesses_in(loop.body) if access.buffer == store.buffer]
    around = [part.var for part in scope.loops if part.kind == "parallel"]
    return (
        indices.isdisjoint(part.var for part in inside)
        and not any(map(loads, store.indices))
        and len(touched) == 2
        # No other iteration may touch an element that this one only reads and writes back.
        and all(any(tells_apart(at, var) for at in store.indices) for var in around)
        and exists(store, nested_ranges((columns.loop,), scope.ranges), scope.buffers)
        and _trips(inside, columns.scope) >= FEWEST_WAITING
    )


def _factors(columns: _Columns, loop: For, scope: Scope) -> set[Factor]:
    """Returns the factors whose elements are apart; see `_is_strided`."""
    update = update_of(columns.store)
    assert update
    changing = stored_in(loop.body) | declared_in(loop.body)
    steps = {
        load: stride(load, columns.loop.var, columns.scope.buffers)
        for load in loads(update.term)
        if load.buffer not in changing
    }
    found = {factor_of(load, columns.loop) for load, step in steps.items() if step not in (0, 1)}
    reads = _trips(columns.scope.loops, columns.scope) * (fixed_trips(columns.loop) or 0)
    return {
        factor
        for factor in found
        if factor and reads >= FEWEST_READS * factor.elements(scope.buffers)
    }


def _trips(loops: Sequence[For], scope: Scope) -> float:
    """Returns about how many iterations loops inside of each other have."""
    return math.prod(mean_trips(loop, scope.ranges) for loop in loops)
