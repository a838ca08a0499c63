"""How often loops run."""

from __future__ import annotations

from msops._loops.ir import For
from msops._loops.ranges import Ranges, range_of

UNKNOWN_TRIPS = 1024
"""Iterations that estimates take for a loop whose bounds are data."""


def mean_trips(loop: For, ranges: Ranges) -> float:
    """Returns about how many iterations a loop runs; half of the square for a triangle.

    Args:
      loop: the loop.
      ranges: of the variables of the loops around it.
    """
    begin, end = range_of(loop.begin, ranges), range_of(loop.end, ranges)
    return max(0.0, (end[0] + end[1] - begin[0] - begin[1]) / 2)
