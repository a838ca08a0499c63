"""Results that have to repeat themselves where inputs do.

Inputs of other sizes repeat the given ones, or are their first elements. Where results do the same
at two sizes close to the given one, the op works on each element alone. Then they have to at all
sizes, and at other ranks.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from msops.testing.other_inputs import (
    is_real,
    other_elements,
    with_many_rows,
    with_other_ranks,
    wrapped,
)
from msops.testing.subject import Subject
from msops.testing.tolerances import disagreements
from msops.testing.trials import Trial, results_of

# At how many sizes results have to repeat themselves before it is taken for a rule.
_ALIKE = 2
# Numbers for which they have to: the given ones, and others.
_DRAWS = 4


def unrepeated(
    subject: Subject, trials: Sequence[Trial], is_of_elements: bool, is_safe: bool
) -> list[str]:
    """Reports where results of one size, or of one rank of an op of elements, are not of others.

    Raises:
      HangError: a call did not end in time.
    """
    shapes = [struct.shape for struct in subject.outputs().structs]
    if subject.options.stateful or not shapes or not all(map(math.prod, shapes)):
        return []
    resized = [trial for trial in trials if _repeats(subject.flat, trial) and not _is_single(trial)]
    resized.sort(key=lambda trial: max(a.size for a in trial.flat))
    blocks = _blocks(subject.flat, shapes, resized[:_ALIKE])
    if len(resized) < _ALIKE or not blocks:
        return []
    lines = []
    is_shown = False
    for index, trial in enumerate(resized):
        if [result.ndim for result in trial.results] != list(map(len, shapes)):
            return []
        expected = [wrapped(b, r.shape) for b, r in zip(blocks, trial.results, strict=True)]
        unlike = disagreements(expected, trial.results)
        # Results that are no longer than those given repeat nothing.
        if unlike and (index < _ALIKE or not is_shown):
            return []
        is_shown |= any(
            result.size > block.size for result, block in zip(trial.results, blocks, strict=True)
        )
        lines += [f"{trial.inputs}: {line}; at other sizes results repeat" for line in unlike]
    if lines and not _repeat_elsewhere(subject, resized[:_ALIKE], shapes, is_safe):
        return []
    return [*lines, *(_unlike_ranks(subject, trials, blocks) if is_of_elements else ())]


def _repeats(own: Sequence[np.ndarray], trial: Trial) -> bool:
    """Returns whether arrays repeat others along each axis, or are the first elements of them.

    Integers that are no index of a given axis, and are one of a longer one, mean something else.
    """
    longer = {
        (n, new)
        for array, more in zip(own, trial.flat, strict=True)
        for n, new in zip(array.shape, more.shape, strict=False)
        if n < new
    }
    integers = [array for array in own if array.dtype.kind in "iu"]
    if any(((n <= array) & (array < new)).any() for n, new in longer for array in integers):
        return False
    return bool(trial.results) and all(
        more.size
        and more.ndim == array.ndim
        and np.array_equal(wrapped(array, more.shape), more, equal_nan=is_real(array))
        for array, more in zip(own, trial.flat, strict=True)
    )


def _is_single(trial: Trial) -> bool:
    """Returns whether there is one element: an extreme that repeats elsewhere is another there."""
    return all(array.size == 1 for array in trial.flat)


def _blocks(
    own: Sequence[np.ndarray], shapes: Sequence[tuple[int, ...]], trials: Sequence[Trial]
) -> list[np.ndarray]:
    """Returns the results on the given inputs, as the first larger ones have them at their start.

    Nothing if results are of other shapes, or no trial is larger.
    """
    for trial in trials:
        if all(more.size >= array.size for array, more in zip(own, trial.flat, strict=True)):
            blocks = [r[tuple(map(slice, s))] for r, s in zip(trial.results, shapes, strict=True)]
            return blocks if [block.shape for block in blocks] == list(shapes) else []
    return []


def _repeat_elsewhere(
    subject: Subject, trials: Sequence[Trial], shapes: Sequence[tuple[int, ...]], is_safe: bool
) -> bool:
    """Returns whether results of those sizes repeat for other numbers, too, if the op takes them.

    The median of few numbers may be the first one at two sizes.
    """
    others = list(zip(*(other_elements(a, _DRAWS) for a in subject.flat), strict=True))[1:]
    for own in others:
        cases = [
            tuple(wrapped(array, more.shape) for array, more in zip(own, trial.flat, strict=True))
            for trial in trials
        ]
        results = results_of(subject, cases, is_safe)
        taken = [
            dataclasses.replace(trial, flat=flat, results=result)
            for trial, flat, result in zip(trials, cases, results, strict=True)
            if result
        ]
        blocks = _blocks(own, shapes, taken)
        for trial in taken if blocks else ():
            expected = [wrapped(b, r.shape) for b, r in zip(blocks, trial.results, strict=True)]
            if disagreements(expected, trial.results):
                return False
    return True


def _unlike_ranks(
    subject: Subject, trials: Sequence[Trial], blocks: Sequence[np.ndarray]
) -> list[str]:
    """Reports where results of another rank are not the same elements."""
    if {array.shape for array in (*subject.flat, *blocks)} != {subject.flat[0].shape}:
        return []
    expected = dict([*with_other_ranks(blocks), *with_many_rows(blocks)])
    return [
        f"{trial.inputs}: {line}; each element has another result at the rank given"
        for trial in trials
        if trial.results and trial.inputs in expected
        for line in disagreements(expected[trial.inputs], trial.results)
    ]
