"""Innermost sums of floats get a sum for each lane of a few vectors, which are added at the end.

    reduction j in 0 .. 64 {              local part, part_1: float32[16]
      sum[] = sum[] + a[j] * b[j]         reduction j_group in 0 .. 2 {
    }                                       parallel lane in 0 .. 16 {
                                   ->         part[lane] = part[lane] + a[32 * j_group + lane] * ..
                                            parallel lane in 0 .. 16 {
                                              part_1[lane] = part_1[lane] + a[.. + 16 + lane] * ..
                                          parallel lane in 0 .. 16 {
                                            part[lane] = part[lane] + part_1[lane]
                                          local half: float32[8]
                                          parallel lane in 0 .. 8 {
                                            half[lane] = part[lane] + part[8 + lane]
                                          ...

With one vector of sums each addition waits for the one before, and what is left of a row is added
one by one: in a row of 64 elements that takes longer than all else. Here it goes into the halves.

A term that is more than operations on contiguous elements is computed for all lanes first. Two
terms that an iteration adds one after the other are one.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

from msops._base import processor
from msops._loops.analysis.costs import arithmetic, nested_trips
from msops._loops.analysis.updates import sum_of
from msops._loops.ir.building import binary, integer
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import (
    BinaryOp,
    Buffer,
    Expr,
    For,
    FunctionCall,
    Kernel,
    Load,
    Local,
    Location,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.ranges import range_of
from msops._loops.ir.sizes import itemsize
from msops._loops.ir.walk import (
    Scope,
    buffers_of,
    expressions,
    rewrite,
    rewrite_loops,
    rewrite_statements,
    statements,
    with_parts,
    with_value,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.facts.blocks import index, with_buffer, with_index
from msops._loops.to_c.lanes.registers import is_over_lanes
from msops._loops.to_c.lanes.vectors import form_of_reduction

_MOST_VECTORS = 4
"""Vectors of one sum, so that an addition need not wait for the one before."""
_MOST_VECTORS_TOGETHER = 8
"""Vectors of all sums of a loop: half of the registers that every processor has."""
_MOST_OPERATIONS = 8
"""Operations in an iteration for each sum; beside more, the end of the sums takes little time."""
_COPIES = 4
"""Copies of the body of a loop with one vector for each sum: vectors, two halves, what is left."""
_MOST_STATEMENTS = 48
"""Statements in all copies of a body."""


def sum_in_lanes(kernel: Kernel) -> Kernel:
    """Returns the kernel with such sums."""
    names, buffers = Names(kernel), buffers_of(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        scalars = {name for name in scope.depths if not scope.buffers[name].shape}
        if form_of_reduction(loop, scope, buffers, scalars) != "lanes":
            return None
        sums = _LaneSums(loop, scalars, scope, names)
        return sums.in_lanes() if sums.may_be_in_lanes() else None

    summed = rewrite_loops(kernel, change, "reduction")
    return kernel if summed is kernel else simplify(unique_names(summed))


class _LaneSums:
    """A reduction of floats that runs in vectors.

    Args:
      loop: the reduction.
      scalars: the names of the scalars around it.
      scope: that around it.
      names: the names of the kernel.
    """

    def __init__(self, loop: For, scalars: set[str], scope: Scope, names: Names) -> None:
        self._loop = with_parts(loop, body=_merged(loop.body))
        self._scope = scope
        self._names = names
        self._inside = statements(self._loop.body)
        stores = [stmt for stmt in self._inside if isinstance(stmt, Store)]
        self._values = [store.value for store in stores]
        self._updates = [sum_of(store) for store in stores if store.buffer in scalars]
        self._sums = [
            Buffer(update.target.buffer, (), update.target.dtype)
            for update in self._updates
            if update is not None and update.op == "add"
        ]

    def may_be_in_lanes(self) -> bool:
        """Returns whether each iteration adds once to each sum, and all have the same dtype."""
        return (
            len(set(self._sums)) == len(self._updates)
            and len({total.dtype for total in self._sums}) == 1
            and all(isinstance(stmt, Store | Local) for stmt in self._inside)
            and _COPIES * len(self._inside) <= _MOST_STATEMENTS
            and sum(map(arithmetic, self._values)) <= _MOST_OPERATIONS * len(self._sums)
        )

    def in_lanes(self) -> tuple[Stmt, ...]:
        """Returns the sums in lanes."""
        trips = nested_trips(self._loop, self._scope)
        size = itemsize(self._sums[0].dtype)
        width, least = (n // size for n in (processor.vector_bytes(), processor.LEAST_VECTOR_BYTES))
        while width > max(trips, least):
            width //= 2
        count = self._vectors(trips / width)
        body: tuple[Stmt, ...] = ()
        made: list[Buffer] = []
        wider: list[Buffer] = []
        before = 0
        while width >= least:
            parts = [[self._part(total, width) for total in self._sums] for _ in range(count)]
            # Nothing is wider than the first vectors.
            pairs = zip(wider, parts[0], strict=bool(wider))
            body += tuple(self._added(half, wide, wide, width) for wide, half in pairs)
            # Several vectors of each sum at once, then one.
            for together in sorted({count, 1}, reverse=True):
                body = (*body, self._groups(before, width, parts[:together]))
                before = together * width
            for others in parts[1:]:
                body += tuple(map(self._added, parts[0], parts[0], others))
            made += [part for own in parts for part in own]
            wider, width, count = parts[0], width // 2, 1
        rest = with_parts(self._loop, begin=self._first(least), kind="serial")
        body = (*body, *map(lanes_in_total, self._sums, wider), rest)
        for part in made:
            body = (Local(part, body, location=self._loop.location),)
        return body

    def _vectors(self, most: float) -> int:
        """Returns the number of vectors of each sum."""
        most = min(most, _MOST_VECTORS_TOGETHER / len(self._sums))
        parts = [part for value in self._values for part in expressions(value)]
        calls = [part for part in parts if isinstance(part, FunctionCall)]
        if not all(FUNCTIONS[call.function].is_instruction for call in calls):
            # Such a function takes longer than an addition.
            most = 1
        most = min(most, _MOST_STATEMENTS // len(self._inside) - _COPIES + 1)
        count = _MOST_VECTORS
        while count > max(1, most):
            count //= 2
        return count

    def _part(self, total: Buffer, width: int) -> Buffer:
        return Buffer(self._names.fresh("part"), (width,), total.dtype)

    @functools.cached_property
    def _span(self) -> Expr:
        """How many iterations the loop has, not below 0."""
        span = index("sub", self._loop.end, self._loop.begin)
        is_positive = range_of(span, self._scope.ranges)[0] >= 0
        return span if is_positive else index("max", span, integer(0))

    def _first(self, size: int) -> Expr:
        """Returns the first iteration behind those in whole groups of a size; 0 means no groups."""
        if size == 0:
            return self._loop.begin
        done = index("mul", index("floordiv", self._span, integer(size)), integer(size))
        return index("add", self._loop.begin, done)

    def _groups(self, before: int, width: int, parts: Sequence[Sequence[Buffer]]) -> For:
        """Returns a loop over groups of vectors.

        Args:
          before: the size of the groups that have gone before; 0 if there are none.
          width: the lanes of a vector.
          parts: for each vector of a group, the sums that it goes to.
        """
        size = len(parts) * width
        group = Var(self._names.fresh(f"{self._loop.var}_group"))
        first = index("add", self._first(before), index("mul", group, integer(size)))
        body = tuple(
            stmt
            for number, own in enumerate(parts)
            for stmt in self._vector(index("add", first, integer(number * width)), own)
        )
        left = index("mod", self._span, integer(before)) if before else self._span
        count = index("floordiv", left, integer(size))
        return For(group.name, integer(0), count, body, "reduction", location=self._loop.location)

    def _vector(self, first: Expr, parts: Sequence[Buffer]) -> tuple[Stmt, ...]:
        """Returns the iterations of a vector, from the first one on."""
        lane = Var(self._names.fresh("lane"))
        names = [total.name for total in self._sums]
        body = with_value(self._loop.body, self._loop.var, index("add", first, lane))
        added = with_index(body, names, lane)
        for name, part in zip(names, parts, strict=True):
            added = with_buffer(added, name, part.name)
        loop = self._over_lanes(lane, parts[0], *added)
        return (loop,) if is_over_lanes(loop) else self._in_terms(lane, body, parts)

    def _in_terms(
        self, lane: Var, body: tuple[Stmt, ...], parts: Sequence[Buffer]
    ) -> tuple[Stmt, ...]:
        """Returns a loop that computes all terms, and one for each sum that adds them."""
        terms = {
            total.name: dataclasses.replace(part, name=self._names.fresh("term"))
            for total, part in zip(self._sums, parts, strict=True)
        }

        def computed(store: Store) -> tuple[Stmt, ...]:
            if store.buffer not in terms:
                return (store,)
            update = sum_of(store)
            assert update is not None
            return (Store(terms[store.buffer].name, (lane,), update.term, location=store.location),)

        added: tuple[Stmt, ...] = (
            self._over_lanes(lane, parts[0], *rewrite_statements(body, computed, Store)),
        )
        by_name = {update.target.buffer: update for update in self._updates if update}
        for (name, term), part in zip(terms.items(), parts, strict=True):
            op: BinaryOp = "sub" if by_name[name].is_negated else "add"
            added = (*added, self._added(part, part, term, op=op))
        for term in terms.values():
            added = (Local(term, added, location=self._loop.location),)
        return added

    def _added(
        self, total: Buffer, one: Buffer, other: Buffer, first: int = 0, op: BinaryOp = "add"
    ) -> For:
        lane = Var(self._names.fresh("lane"))
        return lanes_added(lane, total, one, other, first, op, self._loop.location)

    def _over_lanes(self, lane: Var, part: Buffer, *body: Stmt) -> For:
        return over_lanes(lane, part, body, self._loop.location)


def _merged(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Returns statements with sums that add to a variable twice in a row doing so once."""
    merged: list[Stmt] = []
    for stmt in body:
        new = with_parts(stmt, body=_merged(stmt.body)) if isinstance(stmt, Local) else stmt
        before = merged[-1] if merged else None
        match before, new:
            case Store(indices=()), Store(indices=()) if before.buffer == new.buffer and all(
                update is not None and update.op == "add" for update in map(sum_of, (before, new))
            ):
                merged[-1] = with_parts(new, value=_after(before, new.value))
            case _:
                merged.append(new)
    return tuple(merged)


def _after(store: Store, value: Expr) -> Expr:
    """Returns what a value is after a store to a variable, in terms of what was before it."""
    total = Load(store.buffer, (), store.value.dtype)
    return rewrite(value, lambda part: store.value if part == total else part)


def over_lanes(lane: Var, part: Buffer, body: tuple[Stmt, ...], location: Location | None) -> For:
    """Returns a loop over the lanes of a vector.

    Args:
      lane: its variable.
      part: the vector.
      body: what it does.
      location: where in the source it comes from.
    """
    return For(lane.name, integer(0), integer(part.shape[0]), body, "parallel", location=location)


def lanes_added(
    lane: Var,
    total: Buffer,
    one: Buffer,
    other: Buffer,
    first: int,
    op: BinaryOp,
    location: Location | None,
) -> For:
    """Returns the sum of two vectors.

    Args:
      lane: the variable of the loop over their lanes.
      total: where it goes.
      one: the first lanes of it are added.
      other: likewise, from another lane on.
      first: that lane.
      op: "add", or "sub" to subtract the other.
      location: where in the source it comes from.
    """
    value = binary(op, _lanes(one, lane), _lanes(other, index("add", lane, integer(first))))
    return over_lanes(lane, total, (Store(total.name, (lane,), value),), location)


def _lanes(part: Buffer, at: Expr) -> Load:
    return Load(part.name, (at,), part.dtype)


def lanes_in_total(total: Buffer, part: Buffer) -> Store:
    """Returns the addition of all lanes of a vector to a variable."""
    values: list[Expr] = [_lanes(part, integer(lane)) for lane in range(part.shape[0])]
    while len(values) > 1:
        half = len(values) // 2
        values = [binary("add", a, b) for a, b in zip(values[:half], values[half:], strict=True)]
    return Store(total.name, (), binary("add", Load(total.name, (), total.dtype), values[0]))
