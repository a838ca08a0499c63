"""Rows that read the row before go into the lanes of vectors, along diagonals.

    serial i in 0 .. 512 {                     serial i_block in 0 .. 32 {
      serial j in 0 .. 512 {                     ... the first iterations ...
        d[i + 1, j + 1] = f(d[i, j + 1],         serial j in 15 .. 512 {
                            d[i + 1, j])   ->      parallel lane in 0 .. 16 {
      }                                              d[..., j - lane + 1] = f(d[..., j - lane + 1],
    }                                                                         d[..., j - lane])
                                                   }
                                                 }
                                                 ... the last iterations ...

Each row is delayed against the row before it until the iterations that run together are
independent. A vector then holds one element of each row, from a diagonal of the array (M. Wolfe,
"Loop skewing: the wavefront method revisited", 1986). Elements on a diagonal are fetched and stored
one by one, so this pays for rows whose arithmetic takes longer than that, for example exponentials.
"""

from __future__ import annotations

from collections.abc import Mapping

from msops._loops.analysis.costs import fixed_trips
from msops._loops.ir.algebra import integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Expr, For, Kernel, Stmt, Var
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    declared_in,
    is_innermost,
    statements,
    stored_in,
    with_parts,
    with_value,
)
from msops._loops.to_c.facts.blocks import can_swap, in_groups, index
from msops._loops.to_c.facts.skewing import Skew, before, find_lag
from msops._loops.to_c.facts.strides import stride
from msops._loops.to_c.facts.work import LEAST_WORK, work

LANES = 16
"""Rows that take a step together: the float32 elements of a vector of 512 bits."""
_FEWEST_TRIPS = 2 * LANES
"""Iterations of a row for each iteration of its lag: some of them do not run in vectors."""


def in_diagonals(
    kernel: Kernel, loop: For, scope: Scope, buffers: Mapping[str, Buffer], names: Names
) -> tuple[Stmt, ...] | None:
    """Returns the loop over groups of rows, and the remaining rows; None if they stay as they are.

    Args:
      kernel: the kernel.
      loop: a serial loop of it.
      scope: the scope around the loop.
      buffers: the buffers of the kernel, locals too, by name.
      names: the names of the kernel.
    """
    match loop:
        case For(body=(For(kind="serial") as row,)) if is_innermost(row) and can_swap(loop, row):
            trips = fixed_trips(loop)
        case _:
            return None
    if trips is None or trips < LANES or work(statements(row.body)) < LEAST_WORK:
        return None
    lag = find_lag(kernel, loop, row, scope, _FEWEST_TRIPS, apart=True)
    if not lag or not _pays(loop, row, lag, buffers):
        return None

    def inside(first: Expr) -> tuple[Stmt, ...]:
        skew = Skew(row, loop.var, first, LANES, lag)
        return skew.around(names, _together(skew, names))

    return in_groups(loop, LANES, names.fresh(f"{loop.var}_block"), scope.ranges, inside)


def _pays(loop: For, row: For, lag: int, buffers: Mapping[str, Buffer]) -> bool:
    """Returns whether rows compute more than lanes fetch and store one by one."""
    own = declared_in(row.body)
    changing = stored_in(row.body)
    apart = 0
    for access in {a for a in accesses_in(row.body) if a.buffer not in own}:
        down, along = (stride(access, var, buffers) for var in (loop.var, row.var))
        is_beside = down is not None and along is not None and abs(down - lag * along) <= 1
        apart += access.buffer in changing or not is_beside
    return work(statements(row.body)) >= LEAST_WORK * apart


def _together(skew: Skew, names: Names) -> For:
    """Returns the loop in which all rows run."""
    row, lane, at = skew.row, Var(names.fresh("lane")), Var(names.fresh(skew.row.var))
    column = before(at, index("mul", integer(skew.lag), lane))
    body = with_value(row.body, row.var, column)
    body = with_value(body, skew.outer, index("add", skew.first, lane))
    lanes = For(lane.name, integer(0), integer(LANES), body, "parallel", location=row.location)
    return with_parts(row, var=at.name, begin=skew.first_together(), body=(lanes,))
