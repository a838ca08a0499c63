"""What all estimates of costs count: how often loops run, what they compute, what caches hold."""

from __future__ import annotations

from collections.abc import Iterator

from msops._loops.ir.nodes import Binary, Cast, Const, Expr, For, Load, Select, Unary
from msops._loops.ir.ranges import Range, Ranges, range_of
from msops._loops.ir.walk import operands

CACHE_BYTES = 1 << 20
"""The size of the largest arrays that a cache near the processor holds."""

UNKNOWN_TRIPS = 1024
"""Iterations that estimates take for a loop whose bounds are data."""
# A bound whose range goes beyond this is data, or computed from data.
_FARTHEST_BOUND = 1 << 30


def mean_trips(loop: For, ranges: Ranges) -> float:
    """Returns about how many iterations a loop runs; half of the square for a triangle.

    Args:
      loop: the loop.
      ranges: of the variables of the loops around it.
    """
    return _mean(range_of(loop.begin, ranges), range_of(loop.end, ranges))


def estimated_trips(loop: For, ranges: Ranges) -> float:
    """Returns what `mean_trips` does; `UNKNOWN_TRIPS` for a loop whose bounds are data."""
    begin, end = range_of(loop.begin, ranges), range_of(loop.end, ranges)
    is_known = all(max(-low, high) < _FARTHEST_BOUND for low, high in (begin, end))
    return _mean(begin, end) if is_known else UNKNOWN_TRIPS


def _mean(begin: Range, end: Range) -> float:
    return max(0.0, (end[0] + end[1] - begin[0] - begin[1]) / 2)


def fixed_trips(loop: For) -> int | None:
    """Returns how many iterations a loop runs; None if its bounds are not constants."""
    if isinstance(loop.begin, Const) and isinstance(loop.end, Const):
        return max(0, int(loop.end.value - loop.begin.value))
    return None


def arithmetic(expr: Expr) -> int:
    """Returns how many operations there are in an expression; calls of functions are none."""
    return sum(isinstance(part, Binary | Cast | Select | Unary) for part in computed(expr))


def computed(expr: Expr) -> Iterator[Expr]:
    """Yields what is computed for an expression; indices are not, where they are slices."""
    yield expr
    for part in operands(expr) if not isinstance(expr, Load) else ():
        yield from computed(part)
