"""Nests of loops as boxes of iterations, which threads or blocks share out among themselves.

A loop whose bounds depend on outer ones is boxed in one of two ways: by all values that its
variable takes (the columns of a triangle), or by its longest trip from a begin that moves (the
columns of a band). What of the box is no iteration is left out by a condition.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from msops._loops.analysis.ranges import Range, Ranges, loop_range
from msops._loops.ir.nodes import Binary, Expr, For, Stmt
from msops._loops.ir.walk import loads
from msops._loops.passes.simplify_expressions import difference

_MAX_COUNT = 2**40


@dataclass(frozen=True)
class Axis:
    """One loop of a box.

    Attributes:
      loop: the loop.
      range: the least and greatest value of its variable.
      size: number of points.
      is_moving: points are counted from the loop's begin, else from its variable's least value.
      is_exact: each point is an iteration, whatever the other variables are.
    """

    loop: For
    range: Range
    size: int
    is_moving: bool
    is_exact: bool


@dataclass(frozen=True)
class Box:
    """A perfect nest of loops.

    Attributes:
      axes: its loops, outermost first.
      body: what is inside the innermost.
      order: positions of the axes from that along which neighbouring points lie farthest apart in
        the numbering of points to that along which they follow each other.
    """

    axes: tuple[Axis, ...]
    body: tuple[Stmt, ...]
    order: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of points of the box."""
        return math.prod(axis.size for axis in self.axes)

    @property
    def fastest(self) -> Axis:
        """The axis along which points follow each other."""
        return self.axes[self.order[-1]]

    def ranges(self, outer: Ranges) -> dict[str, Range]:
        """Returns the ranges of variables inside the box."""
        return dict(outer) | {axis.loop.var: axis.range for axis in self.axes}


def box_of(loop: For, kinds: Collection[str], outer: Ranges) -> Box | None:
    """Returns as much as fits into a box of the nest that starts with a loop.

    Args:
      loop: the outermost loop.
      kinds: the kinds that the loops of the box have.
      outer: the ranges of the variables around the loop.

    Returns:
      The box, or None if not even the outermost loop has bounds that are known beforehand.
    """
    axes: list[Axis] = []
    ranges = dict(outer)
    body: tuple[Stmt, ...] = (loop,)
    while len(body) == 1 and isinstance(body[0], For) and body[0].kind in kinds:
        axis = _axis(body[0], ranges)
        if axis is None or math.prod(a.size for a in axes) * axis.size > _MAX_COUNT:
            break
        axes.append(axis)
        ranges[axis.loop.var] = axis.range
        body = axis.loop.body
    return Box(tuple(axes), body, tuple(range(len(axes)))) if axes else None


def _axis(loop: For, ranges: Mapping[str, Range]) -> Axis | None:
    if any(True for bound in (loop.begin, loop.end) for _ in loads(bound)):
        return None
    low, high = loop_range(loop, ranges)
    size = max(0, high - low + 1)
    trip = _longest_trip(loop.begin, loop.end, ranges)
    is_moving = trip is not None and trip < size
    size = trip if trip is not None and trip < size else size
    is_exact = difference(loop.end, loop.begin, ranges) == (size, size)
    return Axis(loop, (low, high), size, is_moving, is_exact)


def _longest_trip(begin: Expr, end: Expr, ranges: Ranges) -> int | None:
    """Returns a bound of the number of trips; None if nothing is known of the difference."""
    known = [
        spread[1]
        for first in _arms("max", begin)
        for last in _arms("min", end)
        if (spread := difference(last, first, ranges)) is not None
    ]
    return max(0, min(known)) if known else None


def _arms(op: str, bound: Expr) -> list[Expr]:
    """Returns the operands of a minimum or maximum, itself if it is none."""
    if isinstance(bound, Binary) and bound.op == op:
        return [*_arms(op, bound.left), *_arms(op, bound.right)]
    return [bound]
