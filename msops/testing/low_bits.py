"""Large integers whose results have lost their last bits: they went by way of floats.

A float32 has 24 bits, and a float64 53. Results that all have no more, where the inputs have more,
and where results of smaller inputs are odd, too, were rounded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

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
