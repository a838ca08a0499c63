"""A zero among other numbers: a function that is defined on both sides of it, and has a limit.

A division by it, as by a pivot of 0, makes that NaN, or infinite, though nothing about the result
is special. Where a function has a pole, results close by are large, and where it ends, there are
none on one side.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from msops.testing.finite_differences import REAL, average_size
from msops.testing.subject import Subject
from msops.testing.trials import Arrays, Trial, results_of

_NAME = "a leading 0 of input "
# Of longer sums, rounding hides how results come closer.
_MOST = 4096
# How far from 0, as parts of the average, results have to come closer to a limit; by how much; and
# how many eps rounding takes.
_STEPS, _CLOSER, _UNITS = (1e-2, 1e-3, 1e-4), 4, 1024


def with_leading_zeros(subject: Subject) -> Iterator[tuple[str, Arrays]]:
    """Yields inputs of which one begins with a 0, and that in words.

    None is 0 else, and no axis has one place: 0 divided by 0 may be meant.
    """
    flat = _without_zeros(subject.flat)
    for index, array in enumerate(flat):
        if array.dtype in REAL and 1 < array.size <= _MOST and 1 not in array.shape:
            yield f"{_NAME}{index}", _with_first(flat, index, 0.0)


def lines_at_zeros(subject: Subject, trials: list[Trial], is_safe: bool) -> list[str]:
    """Reports results at such zeros that are not finite, where those close by have a limit."""
    lines = []
    for trial in trials if not subject.options.stateful else ():
        if not trial.inputs.startswith(_NAME) or not trial.results:
            continue
        holes = [_holes_in(result) for result in trial.results]
        if not any(hole.any() for hole in holes):
            continue
        index = int(trial.inputs.removeprefix(_NAME))
        size = average_size(trial.flat[index])
        places = [sign * step * size for step in _STEPS for sign in (1, -1)]
        cases = [_with_first(trial.flat, index, place) for place in places]
        near = results_of(subject, cases, is_safe)
        if any(found is None for found in near):
            continue
        for output, hole in enumerate(holes):
            values = [found[output][hole].astype(np.float64) for found in near if found]
            if hole.any() and _have_a_limit(values):
                lines.append(
                    f"{trial.inputs}: output {output}: {hole.sum()} of {hole.size} elements are "
                    f"not finite, and close to {values[-1][0]:g} on both sides of 0"
                )
    return lines


def _holes_in(result: np.ndarray) -> np.ndarray:
    return ~np.isfinite(result) if result.dtype in REAL else np.zeros(result.shape, bool)


def _have_a_limit(values: list[np.ndarray]) -> bool:
    """Returns whether numbers, on both sides at each step, come closer to each other."""
    if not all(np.isfinite(value).all() for value in values):
        return False
    largest = max(float(np.max(np.abs(value))) for value in values)
    first, second, last = (np.stack(values[i : i + 2]) for i in (0, 2, 4))
    rounding = _UNITS * float(np.finfo(np.float32).eps) * largest
    before = np.max(np.abs(first - second), 0)
    after = np.maximum(np.max(np.abs(second - last), 0), np.abs(last[0] - last[1]))
    return bool((after <= before / _CLOSER + rounding).all())


def _without_zeros(flat: Arrays) -> Arrays:
    """Returns about the same floats, none of them 0 or equal to another."""
    rng = np.random.default_rng(2)
    arrays = []
    for array in flat:
        if array.dtype in REAL and array.size:
            size = average_size(array) or 1
            sizes = np.where(np.abs(array) > size / 4, np.abs(array), size / 2)
            new = np.where(array < 0, -1, 1) * sizes * rng.uniform(0.9, 1.1, array.shape)
            array = np.asarray(new, array.dtype)
        arrays.append(array)
    return tuple(arrays)


def _with_first(flat: Arrays, index: int, number: float) -> Arrays:
    changed = flat[index].copy()
    changed.reshape(-1)[0] = number
    return (*flat[:index], changed, *flat[index + 1 :])
