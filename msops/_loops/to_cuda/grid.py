"""Parallel nests as grids of points, each of which is the work of one thread.

    parallel i in 0 .. 8 {                parallel i in 0 .. 8 @grid {
      parallel j in 0 .. 64 { ... }   ->    parallel j in 0 .. 64 @grid { ... }

What is in no grid is run by one thread.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from msops._loops.analysis.costs import mean_trips
from msops._loops.ir.nodes import For, Kernel, Stmt
from msops._loops.ir.ranges import Range, loop_range, range_of
from msops._loops.ir.walk import has_bounds_of_data, statements, visit, with_body, with_parts

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

    @property
    def range(self) -> Range:
        """The range of the loop's variable."""
        return (self.first, self.first + self.size - 1)


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


def mark_grids(kernel: Kernel) -> Kernel:
    """Returns the kernel with marks on the loops of its grids: as many of each nest as fit."""
    return with_body(kernel, tuple(_marked(stmt, {}, 1) for stmt in kernel.body))


def _marked(stmt: Stmt, ranges: Mapping[str, Range], points: int) -> Stmt:
    """Returns a statement as a part of a grid, if it is a parallel loop that may be one.

    Args:
      stmt: the only statement inside of the loops of the grid so far.
      ranges: of the variables of these.
      points: of the grid so far.
    """
    if not isinstance(stmt, For) or stmt.kind != "parallel":
        return stmt
    axis = _axis(stmt, ranges)
    if not _is_filled(axis, ranges) or points * axis.size > _MAX_COUNT:
        return stmt
    body = stmt.body
    if len(body) == 1:
        inside = {**ranges, stmt.var: axis.range}
        body = (_marked(body[0], inside, points * axis.size),)
    return with_parts(stmt, body=body, in_grid=True)


def _is_filled(axis: GridAxis, ranges: Mapping[str, Range]) -> bool:
    """Returns whether the bounds of a loop are known beforehand, and it runs for most points."""
    if has_bounds_of_data(axis.loop):
        return False
    return mean_trips(axis.loop, ranges) >= _LEAST_SHARE * axis.size


def grid_of(stmt: Stmt) -> Grid | None:
    """Returns the grid that a statement of a kernel's body is, by its marks; None if it is none."""
    axes: list[GridAxis] = []
    ranges: dict[str, Range] = {}
    body: tuple[Stmt, ...] = (stmt,)
    while len(body) == 1 and isinstance(body[0], For) and body[0].in_grid:
        axis = _axis(body[0], ranges)
        axes.append(axis)
        ranges[axis.loop.var] = axis.range
        body = axis.loop.body
    return Grid(tuple(axes), body, ranges) if axes else None


def _axis(loop: For, ranges: Mapping[str, Range]) -> GridAxis:
    """Returns a loop as an axis; `ranges` are of the variables of the loops around it."""
    low, high = loop_range(loop, ranges)
    begin, end = range_of(loop.begin, ranges), range_of(loop.end, ranges)
    is_exact = begin[0] == begin[1] and end[0] == end[1]
    return GridAxis(loop, low, max(0, high - low + 1), is_exact)


def loop_of_one_thread(kernel: Kernel) -> For | None:
    """Returns a wide parallel loop that is in no grid, so that one thread runs it; None if none.

    Args:
      kernel: as it is printed as CUDA C.
    """
    alone = statements(tuple(stmt for stmt in kernel.body if grid_of(stmt) is None))
    wide = (
        stmt
        for stmt, scope in visit(kernel)
        if isinstance(stmt, For)
        and any(stmt is part for part in alone)
        and stmt.kind == "parallel"
        and mean_trips(stmt, scope.ranges) >= _WARP
    )
    return next(wide, None)
