"""Large integers whose results have lost their last bits, or their first ones.

They lose the last bits by way of floats. A float32 has 24 bits, and a float64 53. Results that all
have no more, where the inputs have more, and where results of smaller inputs are odd, too, were
rounded.

They lose the first ones where a sum or a product on the way is no number of their dtype. In a wider
one, which the op takes, too, it is one, and the results would all be numbers of the narrower dtype.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from msops.testing.guarded import HangError
from msops.testing.subject import Subject
from msops.testing.trials import Arrays, results_of

# Draws of numbers, and from which range: one that counts what lies between them needs no memory.
_DRAWS, _RANGE = 6, 1 << 12
_SMALL = 1 << 18
# Results that count, and how many of them are no constant.
_LEAST, _VALUES = 12, 3
# The floats that integers are compared with, by their sizes in bytes, and the bits of both.
_FLOATS = {4: (np.float32, 24), 8: (np.float64, 53)}
# The dtypes that may be wider, and how much longer a call may take on numbers of so many bits: one
# that counts up to them takes as much memory as they are large.
_WIDER, _COUNTED_BITS, _QUICK_S = ("int32", "int64", "float32", "float64"), 24, 0.02
# How far whole numbers may lie apart: by a cut, and the rounding of a float32.
_CUT, _PART = 2, 1e-6
# More bits than the float: one in eight of all numbers would have no more.
_MORE_BITS = 3


def rounded_lines(subject: Subject, is_safe: bool) -> list[str]:
    """Reports results of large integers that all have only as many bits as a float."""
    dtypes = {array.dtype for array in subject.flat}
    if len(dtypes) != 1 or not _is_wide(next(iter(dtypes))) or subject.options.stateful:
        return []
    # Of a factor that is a float, the product is one.
    if any(isinstance(value, float) for value in _numbers(subject.call.given)):
        return []
    bits = 8 * next(iter(dtypes)).itemsize
    cases = [
        _drawn(subject, start, seed) for start in (_SMALL, 1 << bits - 3) for seed in range(_DRAWS)
    ]
    with contextlib.suppress(HangError):
        found = results_of(subject.impatient(), cases, is_safe)
        if all(found):
            small, large = ([r for r in found[i : i + _DRAWS] if r] for i in (0, _DRAWS))
            return [
                f"large odd integers: output {index}: all results are those of {name}, rounded"
                for index, result in enumerate(large[0])
                if (name := _rounded(*(_joined(draws, index) for draws in (small, large))))
                and result.dtype.kind in "iu"
            ]
    return []


def _is_wide(dtype: np.dtype) -> bool:
    return dtype.kind in "iu" and dtype.itemsize in _FLOATS


def _numbers(values: Any) -> Iterator[Any]:
    for value in values:
        yield from _numbers(value) if isinstance(value, tuple) else (value,)


def _drawn(subject: Subject, start: int, seed: int) -> Arrays:
    rng = np.random.default_rng(seed)
    return tuple(
        np.asarray(start + rng.integers(_RANGE, size=a.shape) | 1, a.dtype) for a in subject.flat
    )


def _joined(draws: list[Arrays], index: int) -> np.ndarray:
    return np.concatenate([results[index].reshape(-1) for results in draws])


def _rounded(small: np.ndarray, large: np.ndarray) -> str:
    """Returns the dtype that large results were rounded to, if the small ones were not."""
    if not _is_wide(large.dtype) or large.size < _LEAST or not (small & 1).any():
        return ""
    kind, bits = _FLOATS[large.dtype.itemsize]
    if len(np.unique(large)) < _VALUES or (large >> (bits + _MORE_BITS - 1) == 0).any():
        return ""
    return np.dtype(kind).name if (large.astype(kind).astype(large.dtype) == large).all() else ""


def overflow_lines(subject: Subject, is_safe: bool) -> list[str]:
    """Reports results of large integers that are others in a wider dtype, and of small ones not."""
    own = subject.flat[0].dtype
    if {array.dtype for array in subject.flat} != {own} or own.kind not in "iu":
        return []
    if subject.options.stateful or subject.is_of_xla:
        return []
    most = int(np.iinfo(own).max)
    with contextlib.suppress(HangError), jax.enable_x64(True):
        for wider in _WIDER if is_quick(subject, is_safe) else ():
            if np.can_cast(own, wider) and own != wider:
                small, large = (
                    _apart(subject, least, end, wider, is_safe)
                    for least, end in ((1, 10), (most // 2, most))
                )
                if small == [] and large:
                    return [f"large integers: {line}" for line in large]
    return []


def is_quick(subject: Subject, is_safe: bool) -> bool:
    """Returns whether calls on large numbers take about as long as on small ones."""
    bits = min(_COUNTED_BITS, 8 * subject.flat[0].dtype.itemsize - 2)
    spent_s = []
    for number in (1, 1, 1 << bits):  # the first call of a dtype takes longer
        start_s = time.process_time()
        case = tuple(np.full_like(array, number) for array in subject.flat)
        (results,) = results_of(subject.impatient(), [case], is_safe)
        spent_s.append(time.process_time() - start_s)
    return results is not None and spent_s[-1] - spent_s[-2] < _QUICK_S


def _apart(subject: Subject, least: int, end: int, wider: str, is_safe: bool) -> list[str] | None:
    """Reports results of integers in a range that are others in a wider dtype; None if refused.

    Those of a result that is no number of the narrower dtype do not count.
    """
    rng = np.random.default_rng(0)
    case = tuple(rng.integers(least, end, a.shape).astype(a.dtype) for a in subject.flat)
    wide_case = tuple(array.astype(wider) for array in case)
    own, wide = results_of(subject.impatient(), [case, wide_case], is_safe)
    if own is None or wide is None:
        return None
    lines = []
    for index, (left, right) in enumerate(zip(own, wide, strict=True)):
        if left.shape != right.shape or not {left.dtype.kind, right.dtype.kind} <= set("iuf"):
            continue
        one, other = left.astype(np.float64), right.astype(np.float64)
        has_wide = left.dtype.kind == "f" or (
            np.iinfo(left.dtype).min <= np.min(other, initial=0)
            and np.max(other, initial=0) <= np.iinfo(left.dtype).max
        )
        far = np.abs(one - other) > _CUT + _PART * np.abs(other)
        if has_wide and far.any():
            lines.append(
                f"output {index}: {far.sum()} of {far.size} elements are not those of {wider}, the "
                f"first {one[far][0]:g} instead of {other[far][0]:g}"
            )
    return lines
