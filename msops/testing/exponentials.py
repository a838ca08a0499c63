"""Numbers at which an exponential on the way overflows, or is 0, though the result is neither.

A softmax divides infinity by infinity, or 0 by 0; the logarithm of a sum of exponentials is
infinite where its result is about as large as its inputs. In float64 that happens for larger
numbers only. What ends a function, as the logarithm does at 0, ends it in each dtype, and seldom
just there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import jax
import numpy as np

from msops.testing.subject import Subject
from msops.testing.trials import Arrays, results_of

# The exponential of the second is infinite in float32, and of the third, if it is negative, 0; of
# the first it is neither. So are those of the squares, or of twice the numbers.
_LIMITS = ((86.0, 90.0, 106.0), (43.0, 45.0, 53.0))
# How far numbers of one array lie apart; and how fast results may grow, for twice the numbers.
_SPREAD, _GROWTH = 0.5, 4.0
# Inputs of which each alone is so large.
_INPUTS = 3


def lines_at_exponentials(subject: Subject, is_safe: bool) -> list[str]:
    """Reports results that are not finite where float32 has no exponential, and moderate before."""
    own = [i for i, array in enumerate(subject.flat) if array.dtype == np.float32 and array.size]
    if subject.options.stateful or not own:
        return []
    tried = [
        (what, chosen, [sign * number for number in (before / 2, before, *beyond)])
        for what, chosen in _choices(own)
        for sign in (1, -1)
        for before, *beyond in _LIMITS
    ]
    # All at once: a child for each limit took longer than its calls.
    found = iter(
        results_of(
            subject,
            [_about(subject.flat, chosen, n) for _, chosen, numbers in tried for n in numbers],
            is_safe,
        )
    )
    return [
        f"{what} about {number:g}: {line}"
        for what, chosen, numbers in tried
        for number, line in _lost(
            subject, chosen, numbers, list(itertools.islice(found, len(numbers))), is_safe
        )
    ]


def _choices(own: Sequence[int]) -> Iterator[tuple[str, Sequence[int]]]:
    yield "inputs", own
    for index in own[:_INPUTS] if len(own) > 1 else ():
        yield f"input {index}", [index]


def _lost(
    subject: Subject,
    chosen: Sequence[int],
    numbers: Sequence[float],
    results_at: Sequence[Arrays | None],
    is_safe: bool,
) -> Iterator[tuple[float, str]]:
    """Yields numbers at which results are not finite, and which; the first two are moderate."""
    half, before, *found = results_at
    if half is None or before is None:
        return
    for number, results in zip(numbers[2:], found, strict=True):
        for index, result in enumerate(results or ()):
            if result.dtype != np.float32 or result.shape != before[index].shape:
                continue
            with np.errstate(invalid="ignore"):
                least = np.maximum(np.abs(half[index]), 1)
                is_moderate = np.abs(before[index]) <= _GROWTH * least
            lost = ~np.isfinite(result) & is_moderate & np.isfinite(half[index])
            if lost.any() and _is_finite_if_wide(subject, chosen, number, index, lost, is_safe):
                yield (
                    number,
                    f"output {index}: {lost.sum()} of {lost.size} elements are not finite; about "
                    f"{numbers[1]:g} the first is {before[index][lost][0]:g}",
                )
                return


def _about(flat: Arrays, chosen: Sequence[int], number: float) -> Arrays:
    """Returns arrays of which some hold about one number, in the order of their own."""
    arrays = list(flat)
    for index in chosen:
        ranks = np.argsort(np.argsort(arrays[index], axis=None)).reshape(arrays[index].shape)
        numbers = number + _SPREAD * ranks / max(ranks.size, 1)
        arrays[index] = np.asarray(numbers, arrays[index].dtype)
    return tuple(arrays)


def _is_finite_if_wide(
    subject: Subject,
    chosen: Sequence[int],
    number: float,
    index: int,
    lost: np.ndarray,
    is_safe: bool,
) -> bool:
    """Returns whether results are finite in float64, or the op refuses that."""
    wide = tuple(a.astype(np.float64) if a.dtype == np.float32 else a for a in subject.flat)
    with jax.enable_x64(True):
        (results,) = results_of(subject, [_about(wide, chosen, number)], is_safe)
    if results is None or results[index].dtype != np.float64:
        return True
    return bool(np.isfinite(results[index][lost]).all())
