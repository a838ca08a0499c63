"""Rows that each run in order go into the lanes of vectors.

    parallel i in 0 .. 512 {              parallel i_block in 0 .. 32 {
      local m: float32[] {                  local m: float32[16] {
        serial j in 0 .. 512 {                serial j in 0 .. 512 {
          m[] = f(m[], a[i, j])    ->           parallel lane in 0 .. 16 {
        }                                         m[lane] = f(m[lane], a[i_block * 16 + lane, j])
        ...                                     }
                                              }
                                              parallel lane_1 in 0 .. 16 { ... }

A condition in a row becomes choices of values, as lanes take no branches of their own:

    if (m[] < 4.0) {                       local chosen: bool[] {
      m[] = f(m[])                           chosen[] = m[] < 4.0
      n[] = n[] + 1                 ->       m[] = chosen[] ? f(m[]) : m[]
    }                                        n[] = chosen[] ? (n[] + 1) : n[]
                                           }

A small local array of a row gets the lanes as its last axis. Each row keeps its order, so that
every bit of its results stays; 16 of them take a step at once. An element of each row is fetched by
itself, so this is for rows that compute more than they fetch. It is the outer-loop vectorisation of
D. Nuzman and A. Zaks, "Outer-Loop Vectorization - Revisited for Short SIMD Architectures", PACT
2008.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Set

from msops._loops.analysis.costs import computed, fixed_trips, mean_trips
from msops._loops.ir.building import integer
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Cast,
    Expr,
    For,
    FunctionCall,
    If,
    Kernel,
    Load,
    Local,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
)
from msops._loops.ir.operators import is_float
from msops._loops.ir.sizes import size_bytes
from msops._loops.ir.walk import (
    A,
    Scope,
    accesses_in,
    buffers_of,
    map_accesses,
    rewrite_loops,
    rewrite_statements,
    statements,
    stored_in,
    with_parts,
    with_value,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.blocks import can_swap, index
from msops._loops.to_c.strides import stride

LANES = 16
"""Rows that take a step together: what a vector of 512 bits holds of float32."""
_FEWEST_TRIPS = 8
_MOST_BYTES = 1 << 14
"""Of a local array that each row has: that of all lanes stays in the second-level cache."""
LEAST_WORK = 4
"""Operations for each element that is fetched from a row, from which on vectors win."""
_LONG = 8
# What takes a processor as long as some operations.
_LONG_OPERATORS = ("div", "floordiv", "mod", "pow")


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
        chosen = with_parts(loop, body=rewrite_statements(loop.body, self._without_branches, For))
        rows = self._rows(chosen.body, chosen, *scope.inside(chosen))
        return self._in_lanes(loop, chosen.body, rows, trips // LANES) if rows else None

    # Whether.

    def _rows(self, body: tuple[Stmt, ...], loop: For, scope: Scope) -> list[For]:
        """Returns the rows that go into lanes, under nothing but variables of an iteration."""
        found = []
        for stmt in body:
            match stmt:
                case Local(buffer=buffer) if size_bytes(buffer) <= _MOST_BYTES:
                    found += self._rows(stmt.body, loop, *scope.inside(stmt))
                case For() if self._is_row(stmt, loop, scope):
                    found.append(stmt)
        return found

    def _is_row(self, row: For, loop: For, scope: Scope) -> bool:
        """Returns whether a loop hands floats on in variables, and computes much with them."""
        if row.kind != "serial" or not can_swap(loop, row):
            return False
        if mean_trips(row, scope.ranges) < _FEWEST_TRIPS:
            return False
        inside = statements(row.body)
        own = {stmt.buffer.name for stmt in inside if isinstance(stmt, Local)}
        if not all(isinstance(s, Store) or (isinstance(s, Local) and not s.buffer.shape)
                   for s in inside):  # fmt: skip
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
        fetched = sum(step not in (0, 1) for step in steps)
        return work(inside) >= LEAST_WORK * fetched

    def _without_branches(self, loop: For) -> tuple[Stmt, ...]:
        """Returns a loop in order with choices of values in place of its conditions."""
        if loop.kind != "serial":
            return (loop,)
        return (with_parts(loop, body=rewrite_statements(loop.body, self._choices, If)),)

    def _choices(self, stmt: If) -> tuple[Stmt, ...]:
        """Returns a condition's stores as stores of chosen values, if all are to variables."""
        stores = [inner for inner in statements(stmt.then) if not isinstance(inner, Local)]
        if stmt.otherwise or not all(
            isinstance(inner, Store) and not inner.indices for inner in stores
        ):
            return (stmt,)
        name = self._names.fresh("chosen")
        # The stores may change what the condition reads.
        condition = Load(name, (), "bool")

        def choose(store: Store) -> tuple[Stmt, ...]:
            old = Load(store.buffer, (), store.value.dtype)
            value = Select(condition, store.value, old, store.value.dtype)
            return (dataclasses.replace(store, value=value),)

        body = rewrite_statements(stmt.then, choose, Store)
        return (Local(Buffer(name, (), "bool"), (Store(name, (), stmt.condition), *body)),)

    # How.

    def _in_lanes(
        self, loop: For, chosen: tuple[Stmt, ...], rows: list[For], count: int
    ) -> tuple[Stmt, ...]:
        """Returns the loop over groups of rows, and that over the rows that are left.

        Args:
          loop: the loop.
          chosen: its body without branches in rows.
          rows: those that go into lanes.
          count: of groups.
        """
        group = self._names.fresh(f"{loop.var}_block")
        first = index("add", loop.begin, index("mul", Var(group), integer(LANES)))
        body = self._placed(chosen, loop, first, {id(row) for row in rows}, {})
        groups = For(group, integer(0), integer(count), body, "parallel", location=loop.location)
        if fixed_trips(loop) == count * LANES:
            return (groups,)
        rest = index("add", loop.begin, integer(count * LANES))
        return (groups, with_parts(loop, begin=rest))

    def _placed(
        self,
        body: tuple[Stmt, ...],
        loop: For,
        first: Expr,
        rows: Set[int],
        lanes: dict[str, Buffer],
    ) -> tuple[Stmt, ...]:
        """Returns a body with a loop over lanes around all that is in no row.

        Args:
          body: a part of the loop's.
          loop: the loop.
          first: its iteration that the first lane runs.
          rows: ids of the rows.
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
                placed.append(
                    with_parts(stmt, body=(self._over_lanes(stmt.body, loop, first, lanes),))
                )
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


def work(inside: list[Stmt]) -> int:
    """Returns about how many operations the statements of a row take."""
    parts = [part for s in inside if isinstance(s, Store) for part in computed(s.value)]
    return sum(map(_operations, parts))


def _operations(part: Expr) -> int:
    match part:
        case FunctionCall(function=function):
            return 1 if FUNCTIONS[function].is_instruction else _LONG
        case Binary(op=op):
            return _LONG if op in _LONG_OPERATORS else 1
    return int(isinstance(part, Cast | Select | Unary))
