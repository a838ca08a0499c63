"""Rows that read the row before go into the lanes of vectors, along diagonals.

    serial i in 0 .. 512 {                     serial i_block in 0 .. 32 {
      serial j in 0 .. 512 {                     ... the first iterations ...
        d[i + 1, j + 1] = f(d[i, j + 1],         local up: float32[16] {
                            d[i + 1, j])    ->   local left: float32[16] {
      }                                          local new: float32[16] {
    }                                              serial j in 15 .. 512 {
                                                     parallel lane in 0 .. 16 {
                                                       up[lane] = d[..., j - lane + 1]
                                                     }
                                                     ...
                                                     parallel lane_2 in 0 .. 16 {
                                                       new[lane_2] = f(up[lane_2], left[lane_2])
                                                     }
                                                     parallel lane_3 in 0 .. 16 {
                                                       d[..., j - lane_3 + 1] = new[lane_3]
                                                     }
                                                   }
                                                 ... the last iterations ...

Each row is delayed against the row before it until the iterations that run together are
independent. A vector then holds one element of each row, from a diagonal of the array (M. Wolfe,
"Loop skewing: the wavefront method revisited", 1986). Elements on a diagonal are fetched and stored
one by one, so this pays for rows whose arithmetic takes longer than that, for example exponentials.
Compilers do not vectorise a loop that fetches and computes, so each step has a loop of its own.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

from msops._loops.analysis.costs import fixed_trips
from msops._loops.ir.building import integer
from msops._loops.ir.elements import exists
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import Buffer, Expr, For, Kernel, Load, Local, Stmt, Store, Var
from msops._loops.ir.ranges import Ranges
from msops._loops.ir.walk import (
    A,
    Scope,
    accesses_in,
    buffers_of,
    loads,
    map_accesses,
    rewrite_loops,
    statements,
    stored_in,
    with_parts,
    with_value,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.clean.reductions import Element
from msops._loops.to_c.facts.apart import are_apart
from msops._loops.to_c.facts.blocks import can_swap, in_groups, index
from msops._loops.to_c.facts.skewing import Skew, before, find_lag
from msops._loops.to_c.facts.strides import stride
from msops._loops.to_c.facts.work import LEAST_WORK, work

LANES = 16
"""Rows that take a step together: the float32 elements of a vector of 512 bits."""
_FEWEST_TRIPS = 2 * LANES
"""Iterations of a row for each iteration of its lag: some of them do not run in vectors."""


def put_diagonals_in_lanes(kernel: Kernel) -> Kernel:
    """Returns the kernel with rows that follow one another in the lanes of vectors."""
    changed = rewrite_loops(kernel, _Diagonals(kernel).loop, "serial")
    return kernel if changed is kernel else unique_names(simplify(changed))


class _Diagonals:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._names = Names(kernel)
        self._buffers = buffers_of(kernel)

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None if its rows stay as they are."""
        match loop:
            case For(body=(For(kind="serial") as row,)) if can_swap(loop, row):
                trips = fixed_trips(loop)
            case _:
                return None
        if trips is None or trips < LANES:
            return None
        if work(statements(row.body)) < LEAST_WORK:
            return None
        lag = find_lag(self._kernel, loop, row, scope, _FEWEST_TRIPS, apart=True)
        if not lag:
            return None
        (inside,) = scope.inside(loop)
        (inside,) = inside.inside(row)
        alone = self._alone(loop, row, lag, inside)
        return None if alone is None else self._in_lanes(loop, row, lag, alone, scope)

    # Legality.

    def _alone(self, loop: For, row: For, lag: int, inside: Scope) -> list[Element] | None:
        """Returns the elements that lanes fetch or store one by one; None if rows stay."""
        parts = statements(row.body)
        if not all(
            isinstance(part, Store) or (isinstance(part, Local) and not part.buffer.shape)
            for part in parts
        ):
            return None
        own = {part.buffer.name for part in parts if isinstance(part, Local)}
        stored = stored_in(row.body) - own
        accesses = [a for a in dict.fromkeys(accesses_in(row.body)) if a.buffer not in own]
        apart = [a for a in accesses if a.buffer in stored or self._jumps(a, loop, row, lag)]
        if work(parts) < LEAST_WORK * len(apart) or not _differ(apart, inside.ranges):
            return None
        changing = own | stored
        alone = [
            a
            for a in apart
            if exists(a, inside.ranges, inside.buffers)
            and not any(load.buffer in changing for i in a.indices for load in loads(i))
        ]
        if any(a.buffer in stored for a in apart if a not in alone):
            return None
        return list(dict.fromkeys((a.buffer, a.indices) for a in alone))

    def _jumps(self, access: Load | Store, loop: For, row: For, lag: int) -> bool:
        """Returns whether the elements of neighbouring lanes are apart in memory."""
        down, along = (stride(access, var, self._buffers) for var in (loop.var, row.var))
        return down is None or along is None or abs(down - lag * along) > 1

    # Rewriting.

    def _in_lanes(
        self, loop: For, row: For, lag: int, alone: list[Element], scope: Scope
    ) -> tuple[Stmt, ...]:
        """Returns the loop over groups of rows, and the loop over the remaining rows."""
        arrays = {
            (name, indices): Buffer(
                self._names.fresh("diagonal"), (LANES,), self._buffers[name].dtype
            )
            for name, indices in alone
        }

        def inside(first: Expr) -> tuple[Stmt, ...]:
            skew = Skew(row, loop.var, first, LANES, lag)
            body = skew.around(self._names, self._together(skew, arrays))
            for array in arrays.values():
                body = (Local(array, body, location=loop.location),)
            return body

        group = self._names.fresh(f"{loop.var}_block")
        return in_groups(loop, LANES, group, scope.ranges, inside)

    def _together(self, skew: Skew, arrays: Mapping[Element, Buffer]) -> For:
        """Returns the loop in which all rows run; arrays hold the elements of the lanes."""
        row, lane = skew.row, Var(self._names.fresh("lane"))
        at = Var(self._names.fresh(row.var))

        def over_lanes(*body: Stmt) -> For:
            column = before(at, index("mul", integer(skew.lag), lane))
            line = index("add", skew.first, lane)
            body = with_value(with_value(body, row.var, column), skew.outer, line)
            return For(
                lane.name, integer(0), integer(LANES), body, "parallel", location=row.location
            )

        def in_lane(access: A) -> A:
            array = arrays.get((access.buffer, access.indices))
            if array is None:
                return access
            return dataclasses.replace(access, buffer=array.name, indices=(lane,))

        accesses = set(accesses_in(row.body))
        body: list[Stmt] = []
        for element, array in arrays.items():
            load = Load(*element, array.dtype)
            if load in accesses:
                body.append(over_lanes(Store(array.name, (lane,), load)))
        body.append(over_lanes(*map_accesses(row.body, in_lane)))
        stored = {(a.buffer, a.indices) for a in accesses if isinstance(a, Store)}
        for element, array in arrays.items():
            if element in stored:
                new = Load(array.name, (lane,), array.dtype)
                body.append(over_lanes(Store(*element, new)))
        return with_parts(row, var=at.name, begin=skew.first_together(), body=tuple(body))


def _differ(accesses: Sequence[Load | Store], ranges: Ranges) -> bool:
    """Returns whether each element that an iteration stores differs from all others it touches."""
    return all(
        one.indices == other.indices or are_apart(one.indices, other.indices, ranges)
        for one, other in itertools.combinations(accesses, 2)
        if one.buffer == other.buffer and isinstance(one, Store) | isinstance(other, Store)
    )
