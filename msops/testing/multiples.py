"""Results of inputs that are repeated whole, a few times and many times.

There a mean is the same, a sum so many times as large, and each rank the
same part of all. What holds for a few repetitions has to hold for many: there a count of 8 or 16
bits overflows, and what is summed in blocks has a rest.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from msops.testing.guarded import HangError
from msops.testing.other_inputs import is_real, other_elements, wrapped
from msops.testing.subject import Subject
from msops.testing.tolerances import close, largest
from msops.testing.trials import Arrays, results_of

# Numbers for which what holds has to hold: the given ones, and others; and for how many factors.
_DRAWS, _ALIKE = 4, 2
# How often inputs are repeated before what holds is taken for a rule; how long an axis is then, and
# how many axes are tried.
_FEW, _LENGTHS, _AXES = (2, 3, 5), (130, 260, 1030), 3
# And elements of the largest array: more than 16 bits count.
_MANY = 70_000
# Results may grow with the factor to such a power.
_POWERS = (0, 1, -1, 0.5, -0.5, 2)

Law: TypeAlias = tuple[float, bool]
"""To which power of the factor results grow, and whether each element is repeated in its place."""


def unlike_multiples(subject: Subject, fits: Callable[[Arrays], bool], is_safe: bool) -> list[str]:
    """Reports results of inputs that are repeated whole, often, that are not as those of a few.

    Args:
      subject: the op.
      fits: whether arrays are few enough.
      is_safe: whether the op may run in this process.
    """
    extents = sorted({n for array in subject.flat if array.size for n in array.shape if n > 1})
    if subject.options.stateful or not extents:
        return []
    least = _MANY // max(array.size for array in subject.flat)
    lines = []
    for extent in extents[-_AXES:]:
        # A kernel that does not end on so many elements ends on fewer.
        for lengths in (_LENGTHS, (least * extent,)):
            factors = dict.fromkeys([*_FEW, *(-(-length // extent) for length in lengths)])
            taken = [n for n in factors if n > 1 and _is_few(subject.flat, extent, n, fits)]
            with contextlib.suppress(HangError):
                lines += _unlike_multiples(subject.impatient(), extent, taken, is_safe)
    return lines


def _unlike_multiples(
    subject: Subject, extent: int, factors: Sequence[int], is_safe: bool
) -> list[str]:
    unlike = _unlawful(subject, subject.flat, extent, factors, is_safe)
    # By chance few numbers may follow a law, as the median of two of them.
    for flat in list(zip(*(other_elements(a, _DRAWS) for a in subject.flat), strict=True))[1:]:
        unlike &= _unlawful(subject, flat, extent, factors, is_safe) if unlike else set()
    return [
        f"{extent} -> {factor * extent}: output {index} of the same numbers {factor} times is not "
        "as that of a few times"
        for factor, index in sorted(unlike)
    ]


def _unlawful(
    subject: Subject, flat: Arrays, extent: int, factors: Sequence[int], is_safe: bool
) -> set[tuple[int, int]]:
    """Returns factors, and outputs that do not follow there what they do for the first ones."""
    cases = [flat, *(_times(flat, extent, n) for n in factors)]
    once, *found = results_of(subject, cases, is_safe)
    taken = {n: results for n, results in zip(factors, found, strict=True) if results}
    few = [n for n in _FEW if n in taken]
    if once is None or len(few) < _ALIKE:
        return set()
    # Of squares that cancel, rounding grows with the numbers; that of a few is none to speak of.
    most = max(1.0, *map(largest, flat)) ** 2
    unlawful = set()
    for index, result in enumerate(once):
        laws = [
            law
            for law in itertools.product(_POWERS, (False, True))
            if all(_follows(law, result, taken[n][index], n) for n in few)
        ]
        for n in taken.keys() - few if laws else ():
            if not any(_follows(law, result, taken[n][index], n, most) for law in laws):
                unlawful.add((n, index))
    return unlawful


def _is_few(flat: Arrays, extent: int, factor: int, fits: Callable[[Arrays], bool]) -> bool:
    sizes = [array.size * factor ** array.shape.count(extent) for array in flat]
    return max(sizes) <= 2 * _MANY and fits(_times(flat, extent, factor))


def _times(flat: Arrays, extent: int, factor: int) -> Arrays:
    """Returns arrays of which each axis of an extent is repeated whole, so many times."""
    return tuple(
        wrapped(array, [factor * n if n == extent else n for n in array.shape]) for array in flat
    )


def _follows(law: Law, once: np.ndarray, got: np.ndarray, factor: int, scale: float = 0.0) -> bool:
    """Returns whether a result of inputs that are repeated whole is as a law says."""
    power, in_place = law
    axes = [axis for axis in range(once.ndim) if once.shape[axis] != got.shape[axis]]
    if any(got.shape[axis] != factor * once.shape[axis] for axis in axes):
        return False
    expected = wrapped(once, got.shape)
    if in_place:
        expected = once
        for axis in axes:
            expected = np.repeat(expected, factor, axis)
    if not power:
        return bool(close(expected, got, scale, got.size).all())
    if not is_real(once) and once.dtype.kind not in "iu":
        return False
    grown = expected.astype(np.float64) * float(factor) ** power
    if not is_real(once):
        return bool((grown == got).all())
    with np.errstate(over="ignore"):
        return bool(close(grown.astype(got.dtype), got, scale, got.size).all())
