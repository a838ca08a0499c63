"""Results that are NaN for one place along an axis, of a function that is linear.

A slope over one place is 0 divided by 0, and so is a position on an axis of n - 1 steps. What a
linear function makes of one number is a multiple of it, and nothing about that is undefined. Where
results have fewer places than inputs, as a variance has, and where they do not grow with the
inputs, as those that are divided by it, NaN may be meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from msops.testing.finite_differences import REAL
from msops.testing.other_inputs import other_elements, resized
from msops.testing.subject import Subject
from msops.testing.tolerances import close, largest
from msops.testing.trials import Arrays, Trial, results_of

# The sizes beside that given at which the function has to be linear.
_OTHERS = ("one more", "odd")


def undefined_lines(subject: Subject, trials: Sequence[Trial], is_safe: bool) -> list[str]:
    """Reports results at an extent of 1 that are NaN, where those of other extents are linear.

    Raises:
      HangError: a call did not end in time.
    """
    if subject.options.stateful or not all(map(_is_finite, subject.flat)):
        return []
    by_name = {trial.inputs: trial for trial in trials if trial.results}
    others = [by_name[name].flat for name in _OTHERS if name in by_name]
    if len(others) < len(_OTHERS):
        return []
    lines = []
    for name, flat, results in _at_one(subject, by_name, is_safe):
        for index, result in enumerate(results):
            lost = np.isnan(result) if result.dtype in REAL else np.zeros(0, bool)
            alike = [i for i, a in enumerate(flat) if a.dtype in REAL and a.shape == result.shape]
            if lost.any() and any(
                all(_is_linear(subject, own, i, index, is_safe) for own in (subject.flat, *others))
                for i in alike
            ):
                lines.append(
                    f"{name}: output {index}: {lost.sum()} of {lost.size} elements are NaN, of a "
                    "function that is linear at other sizes"
                )
    return lines


def _is_finite(array: np.ndarray) -> bool:
    return array.dtype not in REAL or bool(np.isfinite(array).all())


def _at_one(
    subject: Subject, by_name: dict[str, Trial], is_safe: bool
) -> Iterator[tuple[str, Arrays, Arrays]]:
    """Yields what comes of arrays of extents of 1, or where that is refused, of one such extent."""
    if "all 1" in by_name:
        yield "all 1", by_name["all 1"].flat, by_name["all 1"].results
        return
    extents = sorted({n for array in subject.flat for n in array.shape if n > 1})
    cases = [tuple(resized(array, {n: 1}) for array in subject.flat) for n in extents]
    for extent, flat, found in zip(
        extents, cases, results_of(subject, cases, is_safe), strict=True
    ):
        if found:
            yield f"{extent} -> 1", flat, found


def _is_linear(subject: Subject, flat: Arrays, position: int, index: int, is_safe: bool) -> bool:
    """Returns whether an output is linear in an input, and not the same for all of them."""
    one, other = other_elements(flat[position], 2)
    inputs = (one, other, one + other, 2 * one)
    cases = [(*flat[:position], np.asarray(x, one.dtype), *flat[position + 1 :]) for x in inputs]
    found = [results[index] for results in results_of(subject, cases, is_safe) if results]
    if len(found) < len(inputs) or found[0].shape != one.shape:
        return False
    of_one, of_other, of_both, of_twice = found
    scale = max(largest(one), largest(of_twice))
    return (
        bool(np.isfinite(of_both).all() and of_one.any())
        and bool(close(of_one + of_other, of_both, scale).all())
        and bool(close(2 * of_one, of_twice, scale).all())
    )
