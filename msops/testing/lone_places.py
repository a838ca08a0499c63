"""One place that has another result than all others have for the same inputs.

A kernel that is wrong at its last element, or at one in the middle, is so at every size: no other
size tells it from one that is right.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from msops.testing.orders import Axes, Case, Reordering
from msops.testing.subject import Subject
from msops.testing.tolerances import close
from msops.testing.trials import Arrays, results_of

# Fewer places have no rule to which one is an exception.
_LEAST = 8


def one_alone(subject: Subject, cases: Sequence[Case], is_safe: bool) -> list[str]:
    """Reports a place that has another result than all others have for the same inputs.

    Inputs in another order show it at two places: where it is, and where its input went. At a
    border of a stencil they show more, as each result depends on others. The first place of an axis
    may be meant, as the start of a recurrence, or the mean of a spectrum.

    Raises:
      HangError: a call did not end in time.
    """
    lines = []
    for places in cases[0].ordered if cases else ():
        own = [case for case in cases if not case.more and places in case.ordered]
        if places.is_single:
            case = max(own, key=lambda case: case.size)
            lines += _alone_in(subject, places, case, is_safe)
    return lines


def _alone_in(subject: Subject, places: Reordering, case: Case, is_safe: bool) -> list[str]:
    count = _rows(case.results[0], places, places.axes_of_results, 0).shape[0]
    once = _unlike(places, case, case.ordered[places])
    if count < _LEAST or not 0 < len(once) <= 2:
        return []
    other = dataclasses.replace(places, seed=1)
    (again,) = results_of(subject, [other.inputs(case.flat)], is_safe)
    both = once & _unlike(other, case, again) if again else set()
    if len(both) != 1 or (0 in both and places.extent):
        return []
    return [
        f"{case.name}: place {both.pop()} of {count} along {places} has another result than all "
        "others have for the same inputs"
    ]


def _unlike(places: Reordering, case: Case, got: Arrays) -> set[int]:
    """Returns the places whose results are not those of the inputs that are there now."""
    unlike: set[int] = set()
    for index, expected in enumerate(places.results(case.results)):
        differ = ~close(expected, got[index])
        rows = _rows(differ, places, places.axes_of_results, index)
        unlike.update(np.flatnonzero(rows.any(1)).tolist())
    return unlike


def _rows(array: np.ndarray, places: Reordering, axes: Axes, index: int) -> np.ndarray:
    """Returns an array with a row for each place."""
    if not places.extent:
        return array.reshape(-1, 1)
    moved = np.moveaxis(array, axes[index][0], 0)
    return moved.reshape(moved.shape[0], -1)
