"""Elements that are 0 whatever the inputs are, at some sizes and not at larger ones.

A kernel that swaps pairs leaves the middle of an odd number of them as it was, and one that takes
four at a time those behind the last four. In a library poison shows it; what loops and JAX
functions make is 0 at first. Beyond a border, results are 0 at all larger sizes, or at the one
given.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msops.testing.other_inputs import is_real
from msops.testing.subject import Subject
from msops.testing.trials import Arrays, Trial, results_of

# Draws of inputs, and the most elements of an array of which there are so many.
_DRAWS, _MOST = 24, 2000
# At how many sizes such elements have to be, and which part of all they are at most.
_SIZES, _PART = 2, 1 / 2


def untouched_lines(subject: Subject, trials: Sequence[Trial], is_safe: bool) -> list[str]:
    """Reports elements that depend on no input, where those of the size given and others do.

    Raises:
      HangError: a call did not end in time.
    """
    if subject.func_type == "aot" or subject.options.stateful:
        return []
    sizes = [trial for trial in trials if _is_resized(subject.flat, trial)]
    if not any((result == 0).any() for trial in sizes for result in trial.results):
        return []
    subject = subject.impatient()
    own = _zeros(subject, subject.flat, is_safe)
    sizes.sort(key=lambda trial: max(array.size for array in trial.flat))
    lines = []
    for index, zeros in enumerate(own or ()):
        if not zeros.size or zeros.any():
            continue
        found = [(trial, _zeros(subject, trial.flat, is_safe)) for trial in sizes]
        of_size = [(trial, masks[index]) for trial, masks in found if masks]
        untouched = [(place, *each) for place, each in enumerate(of_size) if each[1].any()]
        clean = [place for place, (_, mask) in enumerate(of_size) if not mask.any()]
        before = [each for each in untouched if clean and each[0] < clean[-1]]
        if len(before) >= _SIZES and all(mask.mean() <= _PART for _, _, mask in before):
            lines += [
                f"{trial.inputs}: output {index}: {mask.sum()} of {mask.size} elements are 0 "
                "whatever the inputs are, and none at other sizes"
                for _, trial, mask in before
            ]
    return lines


def _is_resized(own: Arrays, trial: Trial) -> bool:
    """Returns whether arrays have as many axes as others, and elements, but not too many."""
    return bool(trial.results) and all(
        1 < more.size <= _MOST and more.ndim == array.ndim if array.ndim else True
        for array, more in zip(own, trial.flat, strict=True)
    )


def _zeros(subject: Subject, flat: Arrays, is_safe: bool) -> list[np.ndarray] | None:
    """Returns per output which elements are 0 for all draws, and for NaN; None if it is refused."""
    cases = [tuple(_drawn(array, seed) for array in flat) for seed in range(_DRAWS)]
    # A difference of one number and itself is 0, too, but not of NaN.
    cases.append(tuple(np.full_like(a, np.nan) if is_real(a) else a for a in flat))
    found = results_of(subject, cases, is_safe)
    if not all(found):
        return None
    masks = []
    for outputs in zip(*(results or () for results in found), strict=True):
        masks.append(np.all([output == 0 for output in outputs], axis=0))
    return masks


def _drawn(array: np.ndarray, seed: int) -> np.ndarray:
    """Returns the same numbers in another order; floats a little smaller."""
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(array.reshape(-1)).reshape(array.shape)
    return (drawn * rng.uniform(0.5, 1)).astype(array.dtype) if is_real(array) else drawn
