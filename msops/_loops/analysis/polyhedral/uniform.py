"""Accesses about which isl need not be asked: variables plus constants, in loops of fixed bounds.

    parallel i in 0 .. 4 {
      b[i + 1] = b[i]       ->   the load is at the element of the store one iteration later
    }

Most accesses are such. No bound depends on another variable, so each dimension says alone how far
apart two of them meet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from msops._loops.ir.nodes import Binary, Const, Expr, Load, Store, Var
from msops._loops.ir.ranges import Range, is_within

Meeting: TypeAlias = tuple[str | None, bool, bool]
"""A loop that may be the outermost one in which two iterations differ (None: they are the same),
and whether the second access may be in the later, and in the earlier one."""


@dataclass(frozen=True)
class UniformAccess:
    """Such an access.

    Attributes:
      spans: by variable, the first and last iteration of the loops around; each runs.
      places: by dimension, the variable ("" if there is none) and what is added to it.
    """

    spans: Mapping[str, Range]
    places: tuple[tuple[str, int], ...]

    @cached_property
    def intervals(self) -> tuple[Range, ...]:
        """The elements that are touched, by dimension."""
        spans = ((self.spans.get(var, (0, 0)), offset) for var, offset in self.places)
        return tuple((low + offset, high + offset) for (low, high), offset in spans)

    @cached_property
    def _uses(self) -> Counter[str]:
        return Counter(var for var, _ in self.places)

    def moves_alone(self, var: str) -> bool:
        """Returns whether no other dimension has the variable of a dimension, if it has one."""
        return not var or self._uses[var] == 1

    def fills(self, shape: Sequence[int]) -> bool:
        """Returns whether each element of an array is touched."""
        return self.intervals == tuple((0, size - 1) for size in shape) and all(
            self.moves_alone(var) for var, _ in self.places
        )


def uniform(
    access: Load | Store, shape: Sequence[int], spans: Mapping[str, Range] | None
) -> UniformAccess | None:
    """Returns an access of an array in loops, if it is of this kind and within the array."""
    if spans is None:
        return None
    places = tuple(place for index in access.indices if (place := _place(index)))
    if len(places) < len(access.indices):
        return None
    found = UniformAccess(spans, places)
    axes = zip(found.intervals, shape, strict=True)
    return found if all(low >= 0 and high < size for (low, high), size in axes) else None


def _place(index: Expr) -> tuple[str, int] | None:
    match index:
        case Const(value=value):
            return "", int(value)
        case Var(name=name):
            return name, 0
        case Binary(op="add", left=Var(name=name), right=Const(value=value)):
            return name, int(value)
        case Binary(op="sub", left=Var(name=name), right=Const(value=value)):
            return name, -int(value)
    return None


def meetings(
    first: UniformAccess, second: UniformAccess, common: Sequence[str], private: int
) -> list[Meeting] | None:
    """Returns when two accesses of one buffer are at the same element; None if that is not known.

    Args:
      first: an access.
      second: an access.
      common: the variables of the loops around both.
      private: the number of loops each of whose iterations has a buffer of its own.
    """
    later = dict.fromkeys(common[:private], 0)
    for axis, ((var, offset), (other, other_offset)) in enumerate(
        zip(first.places, second.places, strict=True)
    ):
        if var == other and var in common:
            if later.setdefault(var, offset - other_offset) != offset - other_offset:
                return []
        elif {var, other}.intersection(common) or not (
            first.moves_alone(var) and second.moves_alone(other)
        ):
            return None
        elif not _overlap(first.intervals[axis], second.intervals[axis]):
            return []
    longest = {var: high - low for var, (low, high) in first.spans.items()}
    if any(abs(distance) > longest[var] for var, distance in later.items()):
        return []
    found: list[Meeting] = []
    for var in common:
        distance = later.get(var, 0)
        is_free = var not in later and longest[var] > 0
        found.append((var, is_free or distance > 0, is_free or distance < 0))
        if distance:
            return found
    return [*found, (None, True, False)]


def _overlap(one: Range, other: Range) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def covers(write: UniformAccess, read: UniformAccess, common: Sequence[str]) -> bool:
    """Returns whether a write sets what a read is at, in the same iteration of common loops."""
    return all(
        place == at if place[0] in common else write.moves_alone(place[0]) and is_within(own, other)
        for place, at, own, other in zip(
            write.places, read.places, read.intervals, write.intervals, strict=True
        )
    )
