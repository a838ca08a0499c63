"""Rows that each run in order go into the lanes of vectors.

    parallel i in 0 .. 512 {              parallel i_block in 0 .. 32 {
      local m: float32[] {                  local m: float32[16] {
        serial j in 0 .. 512 {                serial j in 0 .. 512 {
          m[] = f(m[], a[i, j])    ->           parallel lane in 0 .. 16 {
        }                                         m[lane] = f(m[lane], a[i_block * 16 + lane, j])
        ...                                     }
                                              }
                                              parallel lane_1 in 0 .. 16 { ... }

A small local array of a row gets the lanes as its last axis. Each row keeps its order; 16 of them
take a step at once. An element of each row is fetched by itself, so this is for rows that compute
more than they fetch. Values that every step would fetch again are copied once before the row: for
example the coordinates of a point that is compared with many others. The loop over these
coordinates then goes around the lanes, too. This is the outer-loop vectorisation of D. Nuzman and
A. Zaks, "Outer-Loop Vectorization - Revisited for Short SIMD Architectures", PACT 2008.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Set

from msops._loops.analysis.costs import fixed_trips, mean_trips
from msops._loops.ir.building import integer
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import (
    Buffer,
    Expr,
    For,
    Kernel,
    Load,
    Local,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.operators import is_float
from msops._loops.ir.sizes import size_bytes
from msops._loops.ir.walk import (
    A,
    Scope,
    accesses_in,
    buffers_of,
    loads_in,
    map_accesses,
    rewrite_loops,
    statements,
    stored_in,
    with_parts,
    with_value,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.blocks import can_swap, in_groups, index
from msops._loops.to_c.choosing import with_choices
from msops._loops.to_c.copying import may_be_copied, with_copies
from msops._loops.to_c.reductions import SUMMED_IN_FLOAT32
from msops._loops.to_c.strides import stride
from msops._loops.to_c.work import LEAST_WORK, work

LANES = 16
"""Rows that take a step together: the float32 elements of a vector of 512 bits."""
_FEWEST_TRIPS = 8
_MOST_BYTES = 1 << 14
"""Bytes of a local array of one row: the array of all lanes stays in the second-level cache."""
_MOST_COPIED_BYTES = 1 << 10
"""Bytes of a copy for one row: the copy for all lanes stays in the first-level cache."""


def put_rows_in_lanes(kernel: Kernel) -> Kernel:
    """Returns the kernel with the rows of parallel loops in the lanes of vectors."""
    changed = rewrite_loops(kernel, _Lanes(kernel).loop, "parallel")
    return kernel if changed is kernel else unique_names(simplify(changed))


class _Lanes:
    def __init__(self, kernel: Kernel) -> None:
        self._names = Names(kernel)
        self._buffers = buffers_of(kernel)

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None if its rows stay as they are."""
        trips = fixed_trips(loop)
        if trips is None or trips < 2 * LANES:
            return None
        chosen = with_choices(loop, scope, self._buffers, self._names)
        around: list[For] = []
        (inside,) = scope.inside(chosen)
        body = self._prepared(chosen.body, chosen, inside, around)
        return self._in_lanes(loop, body, around, scope) if around else None

    # Legality.

    def _prepared(
        self, body: tuple[Stmt, ...], loop: For, scope: Scope, around: list[For]
    ) -> tuple[Stmt, ...]:
        """Returns a body in which the rows for lanes read copies of elements that they read often.

        Nothing but local variables of an iteration may surround such a row. The loops of the rows
        go around the lanes, and are added to `around`.
        """
        prepared: list[Stmt] = []
        for stmt in body:
            match stmt:
                case Local(buffer=buffer) if size_bytes(buffer) <= _MOST_BYTES:
                    (inside,) = scope.inside(stmt)
                    inner = self._prepared(stmt.body, loop, inside, around)
                    prepared.append(with_parts(stmt, body=inner))
                case For() if self._is_row(stmt, loop, scope):
                    row = with_copies(stmt, self._repeated(stmt, loop, scope), scope, self._names)
                    around += [part for part in statements(row) if isinstance(part, For)]
                    prepared += row
                case _:
                    prepared.append(stmt)
        return tuple(prepared)

    def _repeated(self, row: For, loop: For, scope: Scope) -> list[Load]:
        """Returns the loads worth a copy: all iterations repeat them, and their lanes are apart."""
        stored = stored_in(loop.body)
        return [
            load
            for load in dict.fromkeys(loads_in(row.body))
            if load.buffer not in stored
            and scope.depths.get(load.buffer, 0) < len(scope.loops)
            and stride(load, loop.var, self._buffers) not in (0, 1)
            and may_be_copied(load, row, scope, _MOST_COPIED_BYTES)
        ]

    def _is_row(self, row: For, loop: For, scope: Scope) -> bool:
        """Returns whether a loop carries floats in variables, and mostly computes with them."""
        if row.kind != "serial" or not can_swap(loop, row):
            return False
        if mean_trips(row, scope.ranges) < _FEWEST_TRIPS:
            return False
        inside = statements(row.body)
        own = {stmt.buffer.name for stmt in inside if isinstance(stmt, Local)}
        if not all(_may_be_in_row(stmt, loop) for stmt in inside):
            return False
        accesses = accesses_in(row.body)
        variables = {name for name in scope.depths if scope.depths[name] > len(scope.loops) - 1}
        handed_on = {
            name
            for name in stored_in(row.body) & variables
            if is_float(self._buffers[name].dtype)
            and any(isinstance(a, Load) and a.buffer == name for a in accesses)
        }
        arrays = {a for a in accesses if a.buffer not in own | variables}
        steps = [stride(access, loop.var, self._buffers) for access in arrays]
        if not handed_on or None in steps:
            return False
        copied = self._repeated(row, loop, scope)
        fetched = sum(step not in (0, 1) for step in steps) - len(copied)
        if any(isinstance(stmt, For) for stmt in inside):
            # Such loops may run in vectors of their own, and sum in more digits.
            dtypes = {stmt.value.dtype for stmt in inside if isinstance(stmt, Store)}
            return fetched == 0 and dtypes.isdisjoint(SUMMED_IN_FLOAT32)
        return work(inside) >= LEAST_WORK * fetched

    # Rewriting.

    def _in_lanes(
        self, loop: For, prepared: tuple[Stmt, ...], around: list[For], scope: Scope
    ) -> tuple[Stmt, ...]:
        """Returns the loop over groups of rows, and the loop over the remaining rows.

        Args:
          loop: the loop.
          prepared: its body without branches in rows.
          around: the loops in it that go around the lanes.
          scope: the scope around the loop.
        """
        rows = {id(row) for row in around}

        def inside(first: Expr) -> tuple[Stmt, ...]:
            return self._placed(prepared, loop, first, rows, {})

        group = self._names.fresh(f"{loop.var}_block")
        return in_groups(loop, LANES, group, scope.ranges, inside)

    def _placed(
        self,
        body: tuple[Stmt, ...],
        loop: For,
        first: Expr,
        rows: Set[int],
        lanes: dict[str, Buffer],
    ) -> tuple[Stmt, ...]:
        """Returns a body with a loop over lanes around the statements outside of rows.

        Args:
          body: a part of the loop's.
          loop: the loop.
          first: its iteration that the first lane runs.
          rows: ids of the loops of rows.
          lanes: the variables around the rows, with an element for each lane.
        """
        placed: list[Stmt] = []
        alone: list[Stmt] = []

        def flush() -> None:
            if alone:
                placed.append(self._over_lanes(tuple(alone), loop, first, lanes))
                alone.clear()

        for stmt in body:
            if id(stmt) in rows:
                assert isinstance(stmt, For)
                flush()
                inner_body = self._placed(stmt.body, loop, first, rows, lanes)
                placed.append(with_parts(stmt, body=inner_body))
            elif any(id(part) in rows for part in statements((stmt,))):
                assert isinstance(stmt, Local)
                flush()
                wide = dataclasses.replace(stmt.buffer, shape=(*stmt.buffer.shape, LANES))
                inner = {**lanes, wide.name: wide}
                placed.append(
                    with_parts(
                        stmt,
                        buffer=wide,
                        body=self._placed(stmt.body, loop, first, rows, inner),
                    )
                )
            else:
                alone.append(stmt)
        flush()
        return tuple(placed)

    def _over_lanes(
        self, body: tuple[Stmt, ...], loop: For, first: Expr, lanes: dict[str, Buffer]
    ) -> For:
        """Returns the loop over lanes around a part of a body."""
        lane = self._names.fresh("lane")

        def element(access: A) -> A:
            if access.buffer not in lanes:
                return access
            return dataclasses.replace(access, indices=(*access.indices, Var(lane)))

        body = with_value(body, loop.var, index("add", first, Var(lane)))
        return For(
            lane, integer(0), integer(LANES), map_accesses(body, element), "parallel",
            location=loop.location,
        )  # fmt: skip


def _may_be_in_row(stmt: Stmt, loop: For) -> bool:
    """Returns whether a statement of a row can run in lanes, or around them."""
    match stmt:
        case For(kind="serial" | "reduction"):
            return can_swap(loop, stmt)
        case Local(buffer=buffer):
            return not buffer.shape
    return isinstance(stmt, Store)
