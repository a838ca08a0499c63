"""Dtypes that op info has rows for, and in which a number on the way may be none.

A difference of unsigned numbers wraps around where it is negative, and a square of a float16 is
infinite from 256 on. Where the dtype given has the same numbers, its results are those to expect,
if the narrower dtype has them, too. Where it has not, results are compared with those of other
numbers: where results of a few multiples are so many times as large, those of a large one have to
be, and a difference of a whole range says that a number has wrapped around.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from msops._op_info.model import Row
from msops.testing.guarded import HangError
from msops.testing.low_bits import is_quick
from msops.testing.subject import Subject
from msops.testing.trials import Arrays, results_of

# Small numbers; and large ones of a float16, whose squares it does not have.
_SMALL, _LARGE_HALVES = (1, 10), (600, 1000)
# So many draws, as an op may be given few numbers.
_DRAWS = 4
# How far equal numbers may lie apart, by a cut, and the rounding of a float16.
_CUT, _PART = 2, 2.0**-6
# Which part of results has to agree before the others are a fault, and how far, in parts of the
# range, these are apart. Pixels may lie between 0 and 1 in one dtype, and up to 255 in another:
# numbers that agree have to be larger, and integers that do not agree are no single value.
_AGREE, _APART, _VALUES = 1 / 4, 1 / 2, 2
# Results of halves that are 0 instead of such a number, at least, are lost.
_LOST = 1 / 8
# Multiples for which results have to be as many times as large before it is taken for a rule, and
# such parts of the largest power of two for which they have to be at all.
_FEW, _PARTS = (2, 4), (1.0, 1.5)
# Numbers of which these are multiples, one for each input in turn: of both signs, or of one.
_SIGNED, _UNSIGNED = (1, -1), (1, 0)


def lines_of_rows(subject: Subject, is_safe: bool) -> list[str]:
    """Reports results of other dtypes of op info that are far from those of the dtype given."""
    if len({array.dtype for array in subject.flat}) != 1 or subject.options.stateful:
        return []
    own = subject.flat[0].dtype
    if own.kind == "b" or not any(array.size for array in subject.flat):
        return []
    lines = []
    with contextlib.suppress(HangError), jax.enable_x64(True):
        dtypes = list(_dtypes_of_rows(subject))
        for dtype in dtypes:
            if dtype.kind == "f" and dtype != np.float16:
                continue
            wider = next((w for w in (own, *dtypes) if w != dtype and np.can_cast(dtype, w)), None)
            # Two rows that the author did not give are not compared.
            if wider is not None and own in (dtype, wider):
                lines += _unlike_own(_as(subject.impatient(), wider), dtype, is_safe)
            if dtype.kind in "iu" and dtype.itemsize < 4 and not lines:
                lines += _wrapped_multiples(subject.impatient(), dtype, is_safe)
    return lines


def _dtypes_of_rows(subject: Subject) -> Iterator[np.dtype]:
    """Yields dtypes of integers and floats that op info has for all inputs alike."""
    rows = [row for info in subject.definition.infos for row in info.rows]
    for name in dict.fromkeys(names.pop() for row in rows if len(names := _names(row)) == 1):
        with contextlib.suppress(TypeError):  # one that NumPy has not
            dtype = np.dtype(name)
            if dtype.kind in "iuf":
                yield dtype


def _names(row: Row) -> set[str]:
    return {name for name, _ in row.inputs}


def _unlike_own(subject: Subject, dtype: np.dtype, is_safe: bool) -> list[str]:
    """Reports results that are no numbers of a narrower dtype, though it has those to expect."""
    agree, apart = _agreement(subject, dtype, _SMALL, is_safe)
    if apart:
        return [f"small whole numbers as {line}" for line in apart if agree >= _AGREE]
    if agree < 1:
        return []
    large = _LARGE_HALVES
    if dtype.kind in "iu":
        most = int(np.iinfo(dtype).max)
        large = (most // 2, most)
        if not is_quick(_as(subject, dtype), is_safe):
            return []
    return [
        f"large whole numbers as {line}" for line in _agreement(subject, dtype, large, is_safe)[1]
    ]


def _as(subject: Subject, dtype: np.dtype) -> Subject:
    return subject.on(tuple(np.ones_like(array, dtype) for array in subject.flat))


def _agreement(
    subject: Subject, dtype: np.dtype, ends: tuple[int, int], is_safe: bool
) -> tuple[float, list[str]]:
    """Returns which part of results of whole numbers agrees, and lines on those that are far off.

    Results that the narrower dtype does not have count as neither.
    """
    rng = np.random.default_rng(0)
    own = [
        tuple(
            np.asarray(rng.integers(*_between(ends, draw, index), a.shape), a.dtype)
            for index, a in enumerate(subject.flat)
        )
        for draw in range(_DRAWS)
    ]
    narrow = [tuple(array.astype(dtype) for array in flat) for flat in own]
    drawn = results_of(subject, [*own, *narrow], is_safe)
    if not all(drawn):
        return 0.0, []
    expected, found = (
        [np.stack(outputs) for outputs in zip(*(results or () for results in half), strict=True)]
        for half in (drawn[:_DRAWS], drawn[_DRAWS:])
    )
    known, agree, size, lines = 0, 0, 0.0, []
    for index, (right, left) in enumerate(zip(expected, found, strict=False)):
        if left.shape != right.shape or not {left.dtype.kind, right.dtype.kind} <= set("iuf"):
            return 0.0, []
        one, other = left.astype(np.float64), right.astype(np.float64)
        least, most = _range(left.dtype)
        fits = np.isfinite(other) & (least <= other) & (other <= most)
        with np.errstate(invalid="ignore"):
            off = np.where(np.isfinite(one), np.abs(one - other), np.inf)
        cut = _CUT if dtype.kind in "iu" else _PART
        alike = fits & (off <= cut + _PART * np.abs(other))
        known, agree = known + int(fits.sum()), agree + int(alike.sum())
        size = max(size, float(np.max(np.abs(other[alike]), initial=0)))
        far = fits & (off >= _APART * (_range(dtype)[1] - _range(dtype)[0]))
        if dtype.kind == "f":
            # What is divided by infinity is 0.
            far |= fits & (one == 0) & (np.abs(other) >= _LOST)
        if np.unique(one[far]).size >= (_VALUES if dtype.kind in "iu" else 1):
            lines.append(
                f"{dtype}: output {index}: {far.sum()} of {far.size} elements are far from those "
                f"of {subject.flat[0].dtype}, the first {one[far][0]:g} instead of "
                f"{other[far][0]:g}"
            )
    return agree / known if size > (_CUT if dtype.kind in "iu" else 0) else 0.0, lines


def _between(ends: tuple[int, int], draw: int, index: int) -> tuple[int, int]:
    """Returns the ends of the numbers of an input: the first one is larger, smaller, or neither."""
    low, high = ends
    middle = (low + high) // 2
    if draw > 1:
        return ends
    return (middle, high) if (index == 0) == (draw == 0) else (low, middle)


def _range(dtype: np.dtype) -> tuple[float, float]:
    """Returns between which numbers results may lie; of floats half, as they may be added."""
    if dtype.kind in "iu":
        return float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)
    most = float(jnp.finfo(dtype).max) / 2
    return -most, most


def _wrapped_multiples(subject: Subject, dtype: np.dtype, is_safe: bool) -> list[str]:
    """Reports results of large numbers that are a multiple of the dtype's range off.

    They are to be expected where all numbers of an input are one, and results of small ones so many
    times as large as it.
    """
    bits = 8 * dtype.itemsize
    largest = 1 << bits - (2 if dtype.kind == "i" else 1)
    factors = [1, *_FEW, *(int(part * largest) for part in _PARTS)]
    lines = []
    if not is_quick(_as(subject, dtype), is_safe):
        return []
    signs = _SIGNED if dtype.kind == "i" else _UNSIGNED
    cases = [_multiples(subject.flat, signs, factor, dtype) for factor in factors]
    once, *found = results_of(subject, cases, is_safe)
    if once is None or any(results is None for results in found):
        return []
    for index, result in enumerate(once):
        outputs = [results[index] for results in found if results]
        if result.dtype.kind not in "iuf" or any(o.shape != result.shape for o in outputs):
            continue
        one = result.astype(np.float64)
        off = [o.astype(np.float64) - n * one for n, o in zip(factors[1:], outputs, strict=True)]
        least, most = _range(result.dtype)
        is_rule = (one != 0) & np.all([o == 0 for o in off[: len(_FEW)]], axis=0)
        for factor, far in zip(factors[1 + len(_FEW) :], off[len(_FEW) :], strict=True):
            fits = (least <= factor * one) & (factor * one <= most)
            wrapped = is_rule & fits & (far != 0) & (far % (1 << bits) == 0)
            if wrapped.any():
                lines.append(
                    f"numbers of {dtype}, {factor} times as large: output {index}: "
                    f"{wrapped.sum()} of {wrapped.size} elements are {far[wrapped][0]:g} off, as "
                    "numbers that have wrapped around"
                )
                break
    return lines


def _multiples(flat: Arrays, signs: tuple[int, int], factor: int, dtype: np.dtype) -> Arrays:
    return tuple(
        np.full(array.shape, factor * signs[index % 2], dtype) for index, array in enumerate(flat)
    )
