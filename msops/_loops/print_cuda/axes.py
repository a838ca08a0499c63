"""Nests of loops as boxes of iterations, which threads or blocks share out among themselves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from msops._loops.ir import Expr, For, Stmt, Var
from msops._loops.ranges import Range, Ranges, loop_range, range_of
from msops._loops.walk import expressions, loads

_MAX_COUNT = 2**40
# A box is taken where at least this part of it is iterations: a triangle is half of its box.
_LEAST_USE = 0.2
_MAX_CORNERS = 64


@dataclass(frozen=True)
class Axis:
    """One loop of a box.

    Attributes:
      loop: the loop.
      begin: the least value of its variable.
      size: number of values.
      is_exact: each of them is an iteration, whatever the other variables are.
    """

    loop: For
    begin: int
    size: int
    is_exact: bool


@dataclass(frozen=True)
class Box:
    """A perfect nest of loops.

    Attributes:
      axes: its loops, outermost first.
      body: what is inside the innermost.
    """

    axes: tuple[Axis, ...]
    body: tuple[Stmt, ...]

    @property
    def count(self) -> int:
        """Number of points of the box."""
        return math.prod(axis.size for axis in self.axes)

    def ranges(self, outer: Ranges) -> dict[str, Range]:
        """Returns the ranges of variables inside the box."""
        return dict(outer) | {
            axis.loop.var: (axis.begin, axis.begin + axis.size - 1) for axis in self.axes
        }


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
        ranges[axis.loop.var] = (axis.begin, axis.begin + axis.size - 1)
        body = axis.loop.body
    return Box(tuple(axes), body) if axes else None


def _axis(loop: For, ranges: Mapping[str, Range]) -> Axis | None:
    if any(True for bound in (loop.begin, loop.end) for _ in loads(bound)):
        return None
    low, high = loop_range(loop, ranges)
    size = max(0, high - low + 1)
    used = sorted(_variables(loop.begin) | _variables(loop.end))
    if not used:
        return Axis(loop, low, size, is_exact=True)
    corners = list(itertools.islice(itertools.product(*(ranges[v] for v in used)), _MAX_CORNERS))
    trips = sum(_trip_count(loop, dict(zip(used, corner, strict=True))) for corner in corners)
    return (
        Axis(loop, low, size, is_exact=False) if trips >= _LEAST_USE * size * len(corners) else None
    )


def _trip_count(loop: For, point: dict[str, int]) -> int:
    """Returns how often a loop runs for values of the variables around it."""
    ranges = {name: (value, value) for name, value in point.items()}
    return max(0, range_of(loop.end, ranges)[0] - range_of(loop.begin, ranges)[0])


def _variables(expr: Expr) -> set[str]:
    return {part.name for part in expressions(expr) if isinstance(part, Var)}
