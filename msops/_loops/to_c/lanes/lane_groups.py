"""Groups of rows: each step of a row, for one row in each lane of a vector.

A loop over the lanes stands around each part of a row without loops; loops, and conditions that are
the same for all rows, go around the lanes. What a row keeps in a variable or an array gets the
lanes as its last axis, but for variables that hold the same in all rows, such as the number of a
row of a small matrix.

    local d: float32[] {                    local d: float32[32] {
      serial k in 0 .. 9 {                    serial k in 0 .. 9 {
        d[] = f(d[], b[i])          ->          parallel lane in 0 .. 32 {
      }                                           d[lane] = f(d[lane], b[i_block * 32 + lane])
      a[i] = d[]                                }
    }                                         }
                                              parallel lane_1 in 0 .. 32 { ... }

A loop that does nothing more once its condition is false is left when it is false in all lanes:

    serial k in 0 .. 9 {                    left[] = 1
      if (d[] < 4) { d[] = f(d[]) }         serial k in 0 .. 9 {
    }                               ->        if (left[] > 0) {
                                                parallel lane in 0 .. 32 { ... }
                                                left[] = 0
                                                reduction lane_1 in 0 .. 32 {
                                                  left[] = left[] + ((d[lane_1] < 4) ? 1 : 0)
                                                }
                                            } }
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from msops._loops.analysis.conditions import ends_early
from msops._loops.analysis.costs import fixed_trips
from msops._loops.ir.algebra import binary, integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Buffer,
    Expr,
    For,
    If,
    Load,
    Local,
    LoopKind,
    Select,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.walk import (
    A,
    Scope,
    bodies,
    expressions,
    map_accesses,
    map_bodies,
    statements,
    with_parts,
    with_value,
)
from msops._loops.to_c.facts.blocks import in_groups, index, is_alike

LANES = 32
"""Rows that take a step together: the float32 elements of two vectors of 512 bits, as each step of
a row waits for the one before."""
FEWEST_LANES = 16
"""Rows that take a step together if they are too few for more."""
_FEWEST_LEFT = 8
"""Rows left over by whole groups that are worth a group of their own."""


def in_lanes(
    loop: For,
    prepared: tuple[Stmt, ...],
    around: Sequence[For | If | Store],
    scope: Scope,
    names: Names,
) -> tuple[Stmt, ...]:
    """Returns the loop over groups of rows, and the remaining rows: a group, or a loop.

    Args:
      loop: the loop over rows.
      prepared: its body, with copies.
      around: the loops and conditions in it that go around the lanes, and updates of elements that
        all rows share.
      scope: the scope around the loop.
      names: the names of the kernel.
    """
    rows = {id(row) for row in around}
    alike = _alike(prepared, loop, rows)
    trips = fixed_trips(loop)
    assert trips is not None
    lanes = LANES if trips >= 2 * LANES else FEWEST_LANES

    def groups(part: For, size: int) -> tuple[Stmt, ...]:
        def inside(first: Expr) -> tuple[Stmt, ...]:
            return _Group(names, part, first, size, rows, alike).placed(prepared, {})

        return in_groups(part, size, names.fresh(f"{loop.var}_block"), scope.ranges, inside)

    whole, *left = groups(loop, lanes)
    if trips % lanes >= _FEWEST_LEFT:
        (rest,) = left
        assert isinstance(rest, For)
        left = list(groups(rest, trips % lanes))
    return (whole, *left)


@dataclass(frozen=True)
class _Group:
    """Rows that take each step together.

    Attributes:
      names: the names of the kernel.
      loop: the loop over the rows.
      first: its iteration that the first lane runs.
      size: how many rows there are.
      rows: ids of the loops and conditions that go around the lanes, and of updates of elements
        that all rows share.
      alike: the variables that hold the same in all lanes, and go around them, too.
    """

    names: Names
    loop: For
    first: Expr
    size: int
    rows: Set[int]
    alike: Set[str]

    def placed(self, body: tuple[Stmt, ...], wide: Mapping[str, Buffer]) -> tuple[Stmt, ...]:
        """Returns a body with a loop over lanes around the statements outside of rows.

        Args:
          body: a part of the loop's.
          wide: the variables around the rows, with an element for each lane.
        """
        placed: list[Stmt] = []
        alone: list[Stmt] = []

        def flush() -> None:
            if alone:
                placed.append(self._over_lanes(tuple(alone), wide))
                alone.clear()

        for stmt in body:
            if not _has_rows(stmt, self.rows):
                if isinstance(stmt, Store) and stmt.buffer in self.alike:
                    flush()
                    placed.append(stmt)
                else:
                    alone.append(stmt)
                continue
            flush()
            if isinstance(stmt, Local) and stmt.buffer.name in self.alike:
                placed.append(with_parts(stmt, body=self.placed(stmt.body, wide)))
            elif isinstance(stmt, Local):
                shape = (*stmt.buffer.shape, self.size)
                buffer = dataclasses.replace(stmt.buffer, shape=shape)
                inner = self.placed(stmt.body, {**wide, buffer.name: buffer})
                placed.append(with_parts(stmt, buffer=buffer, body=inner))
            elif isinstance(stmt, Store):
                placed.append(self._over_lanes((stmt,), wide, "reduction"))
            else:
                assert id(stmt) in self.rows
                row = map_bodies(stmt, lambda inner: self.placed(inner, wide))
                match stmt, row:
                    case For(body=(If(condition=condition),)), For() if ends_early(stmt):
                        row = self._while_any_goes_on(row, condition, wide)
                placed.append(row)
        flush()
        return tuple(placed)

    def _while_any_goes_on(self, row: For, condition: Expr, wide: Mapping[str, Buffer]) -> Stmt:
        """Returns a loop that is left once a condition holds in none of the lanes."""
        left = self.names.fresh("left")
        number = Load(left, (), INDEX_DTYPE)
        one_more = Select(condition, integer(1), integer(0), INDEX_DTYPE)
        count = Store(left, (), binary("add", number, one_more))
        body = (
            *row.body,
            Store(left, (), integer(0)),
            self._over_lanes((count,), wide, "reduction"),
        )
        step = If(binary("gt", number, integer(0)), body, location=row.location)
        around = (Store(left, (), integer(1)), with_parts(row, body=(step,)))
        return Local(Buffer(left, (), INDEX_DTYPE), around, location=row.location)

    def _over_lanes(
        self, body: tuple[Stmt, ...], wide: Mapping[str, Buffer], kind: LoopKind = "parallel"
    ) -> For:
        """Returns the loop over lanes around a part of a body."""
        lane = self.names.fresh("lane")

        def element(access: A) -> A:
            if access.buffer not in wide:
                return access
            return dataclasses.replace(access, indices=(*access.indices, Var(lane)))

        body = with_value(body, self.loop.var, index("add", self.first, Var(lane)))
        return For(
            lane, integer(0), integer(self.size), map_accesses(body, element), kind,
            location=self.loop.location,
        )  # fmt: skip


def around_lanes(body: tuple[Stmt, ...], loop: For) -> list[For | If]:
    """Returns the loops in a part of a loop's body, and conditions that are the same in all rows.

    Other conditions are masks in the lanes, with all that is under them.
    """
    found: list[For | If] = []
    for stmt in body:
        if isinstance(stmt, If) and not is_alike(stmt.condition, loop):
            continue
        found += [stmt] if isinstance(stmt, For | If) else []
        found += [part for inner in bodies(stmt) for part in around_lanes(inner, loop)]
    return found


def may_be_in_lanes(branch: If, loop: For) -> bool:
    """Returns whether a condition is the same in all rows, or has no loops inside."""
    inside = statements((branch,))
    return is_alike(branch.condition, loop) or not any(isinstance(s, For) for s in inside)


def _has_rows(stmt: Stmt, rows: Set[int]) -> bool:
    return any(id(part) in rows for part in statements((stmt,)))


def _alike(body: tuple[Stmt, ...], loop: For, rows: Set[int]) -> set[str]:
    """Returns the variables around rows that hold the same in all iterations of a loop.

    Args:
      body: the body of the loop.
      loop: the loop.
      rows: ids of the loops and conditions in it that go around the lanes.
    """
    variables: set[str] = set()
    around: list[Store] = []

    def look(part: tuple[Stmt, ...]) -> None:
        for stmt in part:
            if isinstance(stmt, Store):
                around.append(stmt)
            elif _has_rows(stmt, rows):
                if isinstance(stmt, Local) and not stmt.buffer.shape:
                    variables.add(stmt.buffer.name)
                for inner in bodies(stmt):
                    look(inner)

    look(body)
    ids = {id(store) for store in around}
    stores = [stmt for stmt in statements(body) if isinstance(stmt, Store)]
    found = variables - {store.buffer for store in stores if id(store) not in ids}
    while True:
        differing = {
            store.buffer
            for store in around
            if store.buffer in found
            and not all(
                part.buffer in found if isinstance(part, Load) else part != Var(loop.var)
                for part in expressions(store.value)
            )
        }
        if not differing:
            return found
        found -= differing
