"""Rows that each run in order go into the lanes of vectors.

    parallel i in 0 .. 512 {              parallel i_block in 0 .. 16 {
      local m: float32[] {                  local m: float32[32] {
        serial j in 0 .. 512 {                serial j in 0 .. 512 {
          m[] = f(m[], a[i, j])    ->           parallel lane in 0 .. 32 {
        }                                         m[lane] = f(m[lane], a[i_block * 32 + lane, j])
        ...                                     }
                                              }
                                              parallel lane_1 in 0 .. 32 { ... }

Each row keeps its order; 32 of them take a step at once. So do sums over what is the same for all
rows and lies apart, such as coordinates of points: no lanes are added up in the end. An element of
each row is fetched by itself, so this is for rows that compute more than they fetch. Values that
every step would fetch again are copied once before the row: the coordinates of a point that is
compared with many others. Rows may add to elements that they share, as the gradients of shared
coefficients do: what the lanes of a step add is summed at once. This is the outer-loop
vectorisation of D. Nuzman and A. Zaks, "Outer-Loop Vectorization - Revisited for Short SIMD
Architectures", PACT 2008.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set

from msops._loops.analysis.costs import fixed_trips, mean_trips
from msops._loops.analysis.updates import update_of
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import For, If, Kernel, Load, Local, Stmt, Store
from msops._loops.ir.operators import itemsize, size_bytes
from msops._loops.ir.ranges import Ranges, loop_range
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    accesses_of,
    bodies,
    buffers_of,
    declared_in,
    loads,
    loads_in,
    rewrite_loops,
    statements,
    stored_in,
    with_parts,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.clean.promoting import keep_in_variables
from msops._loops.to_c.clean.reductions import SUMMED_IN_FLOAT32
from msops._loops.to_c.facts.blocks import can_swap, from_zero
from msops._loops.to_c.facts.strides import is_of_its_own, step, stride
from msops._loops.to_c.facts.work import LEAST_WORK, work, work_in_loops
from msops._loops.to_c.lanes.copying import may_be_copied, with_copies
from msops._loops.to_c.lanes.diagonals import in_diagonals
from msops._loops.to_c.lanes.lane_groups import (
    FEWEST_LANES,
    around_lanes,
    in_lanes,
    may_be_in_lanes,
)

_FEWEST_TRIPS = 8
_MOST_BYTES = 1 << 14
"""Bytes of a local array of one row: the array of all lanes stays in the second-level cache."""
_MOST_COPIED_BYTES = 1 << 10
"""Bytes of a copy for one row: the copy for all lanes stays in the first-level cache."""


def put_rows_in_lanes(kernel: Kernel) -> Kernel:
    """Returns the kernel with rows in the lanes of vectors: beside each other, or on diagonals."""
    changed = _with_lanes(kernel)
    if changed is kernel:
        kept = keep_in_variables(kernel)
        changed = kept if kept is kernel else _with_lanes(kept)
        if changed is kept:
            return kernel
    return unique_names(simplify(changed))


def _with_lanes(kernel: Kernel) -> Kernel:
    return rewrite_loops(kernel, _Lanes(kernel).loop)


class _Lanes:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._names = Names(kernel)
        self._buffers = buffers_of(kernel)

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None if its rows stay as they are."""
        if loop.kind == "serial":
            return in_diagonals(self._kernel, loop, scope, self._buffers, self._names)
        shared = self._shared(loop, scope)
        if shared is None:
            return None
        # A block of a reduction has a length, too.
        loop = from_zero(loop, scope.ranges) if shared else loop
        trips = fixed_trips(loop)
        if trips is None or trips < 2 * FEWEST_LANES:
            return None
        (inside,) = scope.inside(loop)
        around: list[For | If] = []
        body = self._prepared(loop.body, loop, inside, around)
        if not around or not self._pays(body, around, inside.ranges):
            return None
        updates = _updates(body, shared, {id(part) for part in around})
        if updates is None:
            return None
        return in_lanes(loop, body, (*around, *updates), scope, self._names)

    def _shared(self, loop: For, scope: Scope) -> set[str] | None:
        """Returns the buffers of sums that all rows share; None if rows meet in another way."""
        if loop.kind == "parallel":
            return set()
        names = stored_in(loop.body) - declared_in(loop.body)
        shared = {name for name in names if not is_of_its_own(name, loop)}
        accesses = [access for access in accesses_in(loop.body) if access.buffer in shared]
        stores = [access for access in accesses if isinstance(access, Store)]
        updates = [(store.buffer, update_of(store)) for store in stores]
        ops = {(name, update and update.op) for name, update in updates}
        dtypes = {self._buffers[name].dtype for name in shared}
        are_sums = (
            # A store and a load for each update, and no load beside them.
            len(accesses) == 2 * len(stores)
            and len(ops) == len(shared)
            and all(op is not None for _, op in ops)
            and all(step(access, loop, self._buffers) == 0 for access in accesses)
            and dtypes.isdisjoint(SUMMED_IN_FLOAT32)
        )
        return shared if are_sums else None

    def _prepared(
        self, body: tuple[Stmt, ...], loop: For, scope: Scope, around: list[For | If]
    ) -> tuple[Stmt, ...]:
        """Returns a body in which the rows for lanes read copies of elements that they read often.

        Nothing but local variables of an iteration, and loops that are no rows themselves, may
        surround such a row. The loops around and inside of a row, and conditions that are the same
        in all rows, go around the lanes, and are added to `around`.
        """
        prepared: list[Stmt] = []
        for stmt in body:
            match stmt:
                case Local(buffer=buffer) if size_bytes(buffer) <= _MOST_BYTES:
                    (inside,) = scope.inside(stmt)
                    inner = self._prepared(stmt.body, loop, inside, around)
                    prepared.append(with_parts(stmt, body=inner))
                case For() if self._is_row(stmt, loop, scope):
                    row = with_copies(stmt, self._repeated(stmt, loop, scope), self._names)
                    around += around_lanes(row, loop)
                    prepared += row
                case For(kind="serial" | "reduction") if can_swap(loop, stmt):
                    (inside,) = scope.inside(stmt)
                    rows: list[For | If] = []
                    inner = self._prepared(stmt.body, loop, inside, rows)
                    outer = with_parts(stmt, body=inner)
                    around += [outer, *rows] if rows else []
                    prepared.append(outer)
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
            and stride(load, loop.var, self._buffers) not in (0, 1)
            and may_be_copied(load, row, scope, _MOST_COPIED_BYTES)
        ]

    def _is_row(self, row: For, loop: For, scope: Scope) -> bool:
        """Returns whether a loop carries values in variables, and mostly computes with them."""
        if row.kind == "parallel" or row.hint == "serial" or not can_swap(loop, row):
            return False
        depth = _depth(loop, scope)
        steps_of_row = (mean_trips(part, scope.ranges) for part in (*scope.loops[depth:], row))
        if math.prod(steps_of_row) < _FEWEST_TRIPS:
            return False
        inside = statements(row.body)
        own = {stmt.buffer.name for stmt in inside if isinstance(stmt, Local)}
        if not all(_may_be_in_row(stmt, loop) for stmt in inside):
            return False
        accesses = accesses_in(row.body)
        variables = {name for name in scope.depths if scope.depths[name] >= depth}
        handed_on = {
            name
            for name in stored_in(row.body) & variables
            if any(isinstance(a, Load) and a.buffer == name for a in accesses)
        }
        arrays = {a for a in accesses if a.buffer not in own | variables}
        steps = [stride(access, loop.var, self._buffers) for access in arrays]
        if not handed_on or None in steps:
            return False
        copied = self._repeated(row, loop, scope)
        picked = {access for access in arrays if _is_picked(access, own | variables)}
        fetched = sum(self._is_fetched(access, loop, picked) for access in arrays) - len(copied)
        if row.kind == "reduction":
            # Neighbours along the row make vectors of their own.
            along = {stride(access, row.var, self._buffers) for access in arrays}
            if fetched or along <= {0, 1}:
                return False
        if any(isinstance(stmt, For) for stmt in inside):
            # Such loops may run in vectors of their own, and sum in more digits.
            dtypes = {stmt.value.dtype for stmt in inside if isinstance(stmt, Store)}
            return fetched == 0 and dtypes.isdisjoint(SUMMED_IN_FLOAT32)
        return work(inside) >= LEAST_WORK * max(fetched, bool(picked))

    @staticmethod
    def _pays(body: tuple[Stmt, ...], around: Sequence[For | If], ranges: Ranges) -> bool:
        """Returns whether rows compute more than is picked from their arrays beside them.

        Elements that data pick are far apart where those of all lanes lie beside each other.
        """
        rows = {id(row) for row in around}
        kept = {
            part.buffer.name
            for part in statements(body)
            if isinstance(part, Local) and part.buffer.shape
        }

        def gain(part: tuple[Stmt, ...], ranges: Ranges) -> float:
            total = 0.0
            for stmt in part:
                if id(stmt) in rows:
                    total += work_in_loops((stmt,), ranges)
                elif isinstance(stmt, For):
                    within = {**ranges, stmt.var: loop_range(stmt, ranges)}
                    total += mean_trips(stmt, ranges) * gain(stmt.body, within)
                else:
                    total += sum(gain(inner, ranges) for inner in bodies(stmt))
                    total -= sum(
                        access.buffer in kept and any(map(loads, access.indices))
                        for access in accesses_of(stmt)
                    )
            return total

        return gain(body, ranges) >= 0

    def _is_fetched(self, access: Load | Store, loop: For, picked: Set[Load | Store]) -> bool:
        """Returns whether an access takes longer for each lane than it took in a row by itself.

        Elements that rows pick from anywhere take as long, if those of all lanes are near.
        """
        step = stride(access, loop.var, self._buffers)
        assert step is not None
        nearest = itemsize(self._buffers[access.buffer].dtype) * abs(step) <= _MOST_COPIED_BYTES
        return step not in (0, 1) and not (access in picked and nearest)


def _updates(body: tuple[Stmt, ...], shared: Set[str], around: Set[int]) -> list[Store] | None:
    """Returns the updates of shared elements; None if one is in a part that goes into lanes.

    Args:
      body: a part of the body of a loop over rows.
      shared: the names of their buffers.
      around: ids of the loops and conditions that go around the lanes.
    """
    found: list[Store] = []
    for stmt in body:
        if isinstance(stmt, Store):
            found += [stmt] if stmt.buffer in shared else []
            continue
        if not shared & stored_in((stmt,)):
            continue
        if isinstance(stmt, For | If) and id(stmt) not in around:
            return None
        for inner in bodies(stmt):
            updates = _updates(inner, shared, around)
            if updates is None:
                return None
            found += updates
    return found


def _may_be_in_row(stmt: Stmt, loop: For) -> bool:
    """Returns whether a statement of a row can run in lanes, or around them."""
    match stmt:
        case For(kind=kind):
            trips = fixed_trips(stmt)
            is_short = trips is not None and trips < _FEWEST_TRIPS
            return (kind != "parallel" or is_short) and can_swap(loop, stmt)
        case Local(buffer=buffer):
            return not buffer.shape
        case If():
            return may_be_in_lanes(stmt, loop)
    return isinstance(stmt, Store)


def _depth(loop: For, scope: Scope) -> int:
    """Returns how many loops are around the body of a loop, from a scope in it."""
    return 1 + [part.var for part in scope.loops].index(loop.var)


def _is_picked(access: Load | Store, names: Set[str]) -> bool:
    """Returns whether an access has an index that a row computes, in some variables."""
    return any(load.buffer in names for index in access.indices for load in loads(index))
