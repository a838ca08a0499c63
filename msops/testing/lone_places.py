"""One place that has another result than all others have for the same inputs.

A kernel that is wrong at its last element, or at one in the middle, is so at every size: no other
size tells it from one that is right.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from msops.testing.orders import Case, Reordering
from msops.testing.subject import Subject
from msops.testing.tolerances import close
from msops.testing.trials import Arrays, results_of

# Fewer places have no rule to which one is an exception.
_LEAST = 8
# Where the one is, and where its input went.
_MOVED = 2


def one_alone(subject: Subject, cases: Sequence[Case], is_safe: bool) -> list[str]:
    """Reports a place that has another result than all others have for the same inputs.

    Inputs in another order show it at two places: where it is, and where its input went. At a
    border of a stencil they show more, as each result depends on others. The first place of an axis
    may be meant, as the start of a recurrence, or the mean of a spectrum. Where each two
    inputs have a result, a place is one of rows and of columns.

    Raises:
      HangError: a call did not end in time.
    """
    lines = []
    for places in cases[0].ordered if cases else ():
        own = [case for case in cases if not any(case.more) and places in case.ordered]
        if places.is_of_single_inputs:
            case = max(own, key=lambda case: case.size)
            lines += _alone_in(subject, places, case, is_safe)
    return lines


def _alone_in(subject: Subject, places: Reordering, case: Case, is_safe: bool) -> list[str]:
    count = len(_by_place(case.results[0], places, 0)[0])
    once = _unlike(places, case, case.ordered[places]) if count >= _LEAST else set()
    if not 0 < len(once) <= _MOVED:
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
    """Returns places whose results are not those of the inputs that are there now.

    They are the fewest that all such results belong to, or some that are too many.
    """
    unlike: set[int] = set()
    for index, expected in enumerate(places.results(case.results)):
        differ = ~close(expected, got[index])
        views = _by_place(differ, places, index)
        while differ.any() and len(unlike) <= _MOVED:
            counts = sum(np.count_nonzero(view.reshape(len(view), -1), axis=1) for view in views)
            worst = int(np.argmax(counts))
            unlike.add(worst)
            for view in views:
                view[worst] = False
    return unlike


def _by_place(array: np.ndarray, places: Reordering, index: int) -> list[np.ndarray]:
    """Returns views of a result, each with one of its axes of places in front."""
    if not places.extent:
        return [array.reshape(-1)]
    return [np.moveaxis(array, axis, 0) for axis in places.axes_of_results[index]]
