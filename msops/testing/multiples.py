"""Results of inputs that are repeated whole, a few times and many times.

There a mean is the same, a sum so many times as large, and each rank the same part of all. What
holds for a few repetitions has to hold for many: there a count of 8 or 16 bits overflows, and what
is summed in blocks has a rest.

Numbers that rise are repeated each in its place, too, and stay in order. And copies that lie far
apart have results of their own, if only neighbours count.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from msops.testing.finite_differences import REAL
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

# How many spans copies lie apart, and how many steps floats have between two of them. The fewest
# numbers that are no longer sorted by chance.
_SPANS, _DIGITS, _LEAST_SORTED = 8, 1 << 12, 4

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
            ways = [way for way in _WAYS if way.fits(subject.flat, extent)]
            with contextlib.suppress(HangError):
                lines += _unlike_multiples(subject.impatient(), extent, ways, taken, is_safe)
    return lines


def _unlike_multiples(
    subject: Subject, extent: int, ways: Sequence[Way], factors: Sequence[int], is_safe: bool
) -> list[str]:
    cases = [(way, n) for way in ways for n in factors if n * extent <= way.most]
    unlike = _unlawful(subject, subject.flat, extent, cases, is_safe)
    # By chance few numbers may follow a law, as the median of two of them.
    for flat in list(zip(*(other_elements(a, _DRAWS) for a in subject.flat), strict=True))[1:]:
        if unlike:
            again = [(way, n) for way, n in cases if any(way is found for found, *_ in unlike)]
            unlike &= _unlawful(subject, flat, extent, again, is_safe)
    return [
        f"{extent} -> {factor * extent}: output {index} of {way.name.format(factor)} is not as "
        "that of a few times"
        for way, factor, index in sorted(unlike, key=lambda found: found[1:])
    ]


def _unlawful(
    subject: Subject,
    flat: Arrays,
    extent: int,
    cases: Sequence[tuple[Way, int]],
    is_safe: bool,
) -> set[tuple[Way, int, int]]:
    """Returns cases, and outputs that do not follow there what they do for the first factors."""
    ways = list(dict.fromkeys(way for way, _ in cases))
    starts = {way: way.start(flat, extent) for way in ways}
    repeated = [way.times(starts[way], extent, n) for way, n in cases]
    found = results_of(subject, [*starts.values(), *repeated], is_safe)
    taken = {case: r for case, r in zip(cases, found[len(ways) :], strict=True) if r}
    unlawful: set[tuple[Way, int, int]] = set()
    for way, once in zip(ways, found, strict=False):
        of_way = {n: results for (other, n), results in taken.items() if other is way}
        unlawful |= {(way, *broken) for broken in _lawless(once, starts[way], of_way)}
    return unlawful


def _lawless(
    once: Arrays | None, flat: Arrays, taken: Mapping[int, Arrays]
) -> Iterator[tuple[int, int]]:
    """Yields factors, and outputs that follow no law there that they do for the first ones."""
    few = [n for n in _FEW if n in taken]
    if once is None or len(few) < _ALIKE:
        return
    # Of squares that cancel, rounding grows with the numbers; that of a few is none to speak of.
    most = max(1.0, *map(largest, flat)) ** 2
    for index, result in enumerate(once):
        laws = [
            law
            for law in itertools.product(_POWERS, (False, True))
            if all(_follows(law, result, taken[n][index], n) for n in few)
        ]
        for n in taken.keys() - few if laws else ():
            if not any(_follows(law, result, taken[n][index], n, most) for law in laws):
                yield n, index


def _is_few(flat: Arrays, extent: int, factor: int, fits: Callable[[Arrays], bool]) -> bool:
    sizes = [array.size * factor ** array.shape.count(extent) for array in flat]
    return max(sizes) <= 2 * _MANY and fits(_times(flat, extent, factor))


def _times(flat: Arrays, extent: int, factor: int) -> Arrays:
    """Returns arrays of which each axis of an extent is repeated whole, so many times."""
    return tuple(
        wrapped(array, [factor * n if n == extent else n for n in array.shape]) for array in flat
    )


def _in_a_row(flat: Arrays, extent: int, factor: int) -> Arrays:
    """Returns arrays of which each place along axes of an extent is there so often in a row."""
    for axis in range(max(array.ndim for array in flat)):
        flat = tuple(
            np.repeat(a, factor, axis) if axis < a.ndim and a.shape[axis] == extent else a
            for a in flat
        )
    return flat


def _far_apart(flat: Arrays, extent: int, factor: int) -> Arrays:
    """Returns arrays that are repeated whole, floats each time larger by more than their span."""
    shifted = []
    for array, more in zip(flat, _times(flat, extent, factor), strict=True):
        if array.dtype in REAL and extent in array.shape:
            axis = array.shape.index(extent)
            copies = np.arange(factor * extent) // extent
            shape = [-1 if other == axis else 1 for other in range(array.ndim)]
            more = (more + copies.reshape(shape) * _distance(array)).astype(array.dtype)
        shifted.append(more)
    return tuple(shifted)


def _distance(array: np.ndarray) -> float:
    """Returns a power of two, some times as large as the span of an array."""
    numbers = array[np.isfinite(array)]
    span = float(np.max(numbers) - np.min(numbers)) if numbers.size else 0.0
    return 2.0 ** math.ceil(math.log2(_SPANS * span)) if span else 1.0


def _rounded(flat: Arrays, extent: int) -> Arrays:
    """Returns floats of so few digits that larger ones have them as well."""
    arrays = []
    for array in flat:
        if array.dtype in REAL:
            step = _distance(array) / _DIGITS
            array = (np.rint(array / step) * step).astype(array.dtype)
        arrays.append(array)
    return tuple(arrays)


def _sorted(flat: Arrays, extent: int) -> Arrays:
    return tuple(np.sort(a) if a.shape == (extent,) else a for a in flat)


def _are_sorted(flat: Arrays, extent: int) -> bool:
    """Returns whether an axis is that of numbers that rise: those of a whole copy would not."""
    arrays = [a for a in flat if a.shape == (extent,) and (is_real(a) or a.dtype.kind in "iu")]
    return extent >= _LEAST_SORTED and any(bool((np.diff(a) > 0).all()) for a in arrays)


def _have_floats(flat: Arrays, extent: int) -> bool:
    return any(a.dtype in REAL and extent in a.shape and np.isfinite(a).all() for a in flat)


@dataclasses.dataclass(frozen=True)
class Way:
    """A way to repeat inputs.

    Attributes:
      name: what comes of it, in words, with a place for the factor.
      times: repeats arrays along axes of an extent.
      start: makes the arrays that are repeated of others.
      fits: whether arrays can be repeated so.
      most: how long an axis may become.
    """

    name: str
    times: Callable[[Arrays, int, int], Arrays]
    start: Callable[[Arrays, int], Arrays] = lambda flat, extent: flat
    fits: Callable[[Arrays, int], bool] = lambda flat, extent: True
    most: int = 2 * _MANY


_WAYS = (
    Way("the same numbers {} times", _times),
    # Of a grid that is searched, or of edges.
    Way("each number {} times in a row", _in_a_row, _sorted, _are_sorted),
    # Of points, those of one copy alone are neighbours.
    Way("{} copies far apart", _far_apart, _rounded, _have_floats, most=2 * _LENGTHS[1]),
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
