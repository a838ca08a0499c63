"""The first and the last result along an axis, and the inputs that they depend on.

The last number of a running sum is that of all inputs, in any order; the first one of a reversed
array is the last input, whatever the others are. What holds so at the size given and at other small
ones has to hold at all: a kernel that works in blocks, or on no more than so many elements, is
another kernel beyond them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from msops.testing.orders import Case, Reordering
from msops.testing.other_inputs import is_real
from msops.testing.subject import Subject
from msops.testing.tolerances import close, largest
from msops.testing.trials import results_of

# Fewer places have no order but for one that is kept.
_LEAST = 3
# Places from which on a size is large. A window that is that long is an attribute, not a habit.
_LARGE = 64
# At how many small sizes beside the given one it has to hold.
_ALIKE = 2
# Results of fewer values may be equal by chance.
_VALUES = 3
# Two orders: one may leave a result as it was by chance.
_SEEDS = (0, 1)

Corner: TypeAlias = tuple[int, int]
"""A result by its number, and a place along the axis: 0 or -1."""

_KEPT = {None: "the order of inputs", 0: "inputs but the first", -1: "inputs but the last"}
_NAMES = {0: "first", -1: "last"}


def changed_corners(subject: Subject, cases: Sequence[Case], is_safe: bool) -> list[str]:
    """Reports corners that depend on other inputs at a large size than at small ones.

    Raises:
      HangError: a call did not end in time.
    """
    lines = []
    for places in cases[0].ordered if cases else ():
        own = [case for case in cases if not any(case.more) and places in case.ordered]
        if not places.extent or not places.is_single or places.extent < _LEAST:
            continue
        small = [case for case in own[1:] if _LEAST <= _count(case, places) < _LARGE]
        large = [case for case in own if _count(case, places) >= _LARGE]
        if len(small) < _ALIKE or own[0] in large:
            continue
        for kept, what in _KEPT.items():
            holding = _holding(subject, own[0], places, kept, is_safe, set())
            for case in large if holding else ():
                broken = holding - _holding(subject, case, places, kept, is_safe, holding)
                for other in small if broken else ():
                    broken &= _holding(subject, other, places, kept, is_safe, set())
                lines += [
                    f"{case.name}: the {_NAMES[place]} place of output {index} along {places} "
                    f"depends on {what}, and not so at smaller sizes"
                    for index, place in sorted(broken)
                ]
    return lines


def _count(case: Case, places: Reordering) -> int:
    return next(
        array.shape[axis]
        for array, axes in zip(case.flat, places.axes, strict=True)
        for axis in axes
    )


def _holding(
    subject: Subject,
    case: Case,
    places: Reordering,
    kept: int | None,
    is_safe: bool,
    unknown: set[Corner],
) -> set[Corner]:
    """Returns the corners that stay as they are where inputs but the one that is kept move.

    Where the op does not take these, or has few values, what holds is unknown, as the caller says.
    """
    orders = [dataclasses.replace(places, seed=seed) for seed in _SEEDS]
    moved = [order.inputs(case.flat, kept=kept) for order in orders]
    found = results_of(subject, moved, is_safe)
    if not all(found):
        return unknown
    holding: set[Corner] = set()
    for index, (result, axes) in enumerate(zip(case.results, places.axes_of_results, strict=True)):
        if not is_real(result) or np.unique(result).size < _VALUES:
            holding.update(corner for corner in unknown if corner[0] == index)
            continue
        for place in _NAMES:
            own = result.take(place, axes[0])
            if all(
                close(own, other[index].take(place, axes[0]), largest(result), case.size).all()
                for other in found
                if other
            ):
                holding.add((index, place))
    return holding
