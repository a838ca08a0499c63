"""Parallel nests as grids of points, each of which is the work of one thread."""

from __future__ import annotations

import math
from dataclasses import dataclass

from msops._loops.analysis.costs import mean_trips
from msops._loops.ir.nodes import For, Kernel, Stmt
from msops._loops.ir.ranges import Range, loop_range, range_of
from msops._loops.ir.walk import loads, visit, with_body

_MAX_COUNT = 1 << 40
# A loop whose bounds depend on others stays inside a thread if it runs for fewer of its points.
_LEAST_SHARE = 0.25
_WARP = 32


@dataclass(frozen=True)
class GridAxis:
    """One loop of a grid.

    Attributes:
      loop: the loop.
      first: the least value of its variable.
      size: number of values from there on.
      is_exact: it runs for each of them, whatever the other variables are.
    """

    loop: For
    first: int
    size: int
    is_exact: bool


@dataclass(frozen=True)
class Grid:
    """A perfect nest of parallel loops.

    Attributes:
      axes: its loops, outermost first; neighbouring points differ in the last one.
      body: what a thread runs at a point.
      ranges: of the variables of the loops.
    """

    axes: tuple[GridAxis, ...]
    body: tuple[Stmt, ...]
    ranges: dict[str, Range]

    @property
    def count(self) -> int:
        """Number of points."""
        return math.prod(axis.size for axis in self.axes)


def grid_of(stmt: Stmt) -> Grid | None:
    """Returns the grid of a statement that no loop is around.

    Args:
      stmt: any statement.

    Returns:
      As many of its loops as fit; None if it is no parallel loop, or the bounds of the outermost
      one are data.
    """
    axes: list[GridAxis] = []
    ranges: dict[str, Range] = {}
    body: tuple[Stmt, ...] = (stmt,)
    while len(body) == 1 and isinstance(body[0], For) and body[0].kind == "parallel":
        axis = _axis(body[0], ranges)
        if axis is None or math.prod(a.size for a in axes) * axis.size > _MAX_COUNT:
            break
        axes.append(axis)
        ranges[axis.loop.var] = (axis.first, axis.first + axis.size - 1)
        body = axis.loop.body
    return Grid(tuple(axes), body, ranges) if axes else None


def _axis(loop: For, ranges: dict[str, Range]) -> GridAxis | None:
    """Returns a loop as an axis, if its bounds are known beforehand and fill most of it."""
    if any(True for bound in (loop.begin, loop.end) for _ in loads(bound)):
        return None
    low, high = loop_range(loop, ranges)
    size = max(0, high - low + 1)
    if mean_trips(loop, ranges) < _LEAST_SHARE * size:
        return None
    begin, end = range_of(loop.begin, ranges), range_of(loop.end, ranges)
    is_exact = begin[0] == begin[1] and end[0] == end[1]
    return GridAxis(loop, low, size, is_exact)


def loop_of_one_thread(kernel: Kernel) -> For | None:
    """Returns a wide parallel loop that is in no grid, so that one thread runs it; None if none.

    Args:
      kernel: as it is printed as CUDA C.
    """
    alone = tuple(stmt for stmt in kernel.body if grid_of(stmt) is None)
    wide = (
        stmt
        for stmt, scope in visit(with_body(kernel, alone))
        if isinstance(stmt, For)
        and stmt.kind == "parallel"
        and mean_trips(stmt, scope.ranges) >= _WARP
    )
    return next(wide, None)
