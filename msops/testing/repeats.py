"""Results that have to repeat themselves where inputs do.

Inputs of other sizes repeat the given ones, or are their first elements. Where results do the same
at two sizes close to the given one, the op works on each element alone. Then they have to at all
sizes, and at other ranks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from msops.testing.other_inputs import is_real, with_many_rows, with_other_ranks, wrapped
from msops.testing.subject import Subject
from msops.testing.tolerances import disagreements
from msops.testing.trials import Trial

# At how many sizes results have to repeat themselves before it is taken for a rule.
_ALIKE = 2


def unrepeated(subject: Subject, trials: Sequence[Trial], is_of_elements: bool) -> list[str]:
    """Reports where results of one size, or of one rank of an op of elements, are not of others."""
    shapes = [struct.shape for struct in subject.outputs().structs]
    if subject.options.stateful or not shapes or not all(map(math.prod, shapes)):
        return []
    resized = [trial for trial in trials if _repeats(subject.flat, trial) and not _is_single(trial)]
    resized.sort(key=lambda trial: max(a.size for a in trial.flat))
    blocks = _blocks(subject.flat, shapes, resized[:_ALIKE])
    if len(resized) < _ALIKE or not blocks:
        return []
    lines = []
    for index, trial in enumerate(resized):
        if [result.ndim for result in trial.results] != list(map(len, shapes)):
            return []
        expected = [wrapped(b, r.shape) for b, r in zip(blocks, trial.results, strict=True)]
        unlike = disagreements(expected, trial.results)
        if unlike and index < _ALIKE:
            return []
        lines += [f"{trial.inputs}: {line}; at other sizes results repeat" for line in unlike]
    return [*lines, *(_unlike_ranks(subject, trials, blocks) if is_of_elements else ())]


def _repeats(own: Sequence[np.ndarray], trial: Trial) -> bool:
    """Returns whether arrays repeat others along each axis, or are the first elements of them."""
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
