"""Gradients in a narrower dtype against those of the same numbers in the one given.

Finite differences of 16 bits show little. But a rule that overflows there, or computes with a
constant that is no number there, is far off.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msops.testing.cotangents import rule_of
from msops.testing.finite_differences import REAL
from msops.testing.subject import Subject
from msops.testing.tolerances import largest

_NARROW = "float16"
# Which part of the largest element rounding may cost; and from where on 16 bits may overflow.
_PART, _COUNTED = 0.25, 1e3


def unlike_dtypes(subject: Subject, real: Sequence[int]) -> list[str]:
    """Reports where gradients in float16 are far from those given; nothing if it is refused.

    Args:
      subject: the op.
      real: the inputs that have a gradient.
    """
    with np.errstate(over="ignore"):
        narrow = tuple(x.astype(_NARROW) if x.dtype in REAL else x for x in subject.flat)
    if not all(np.isfinite(narrow[position]).all() for position in real):
        return []  # numbers that it does not have say nothing of the rule
    same = tuple(x.astype(own.dtype) for x, own in zip(narrow, subject.flat, strict=True))
    try:
        if not _is_taken(subject, narrow, same):
            return []
        expected, got = (_gradients(subject.on(flat), real) for flat in (same, narrow))
    except Exception:  # it is not meant for that dtype, and may have no gradient there
        return []
    lines = []
    for position, own, other in zip(real, expected, got, strict=True):
        apart = np.max(np.abs(own - other), initial=0)
        # Not >: a NaN is a difference.
        if _is_moderate(own) and not apart <= _PART * largest(own):
            lines.append(
                f"as {_NARROW}: gradient of input {position} is off by up to {apart:.3g}, and is "
                f"itself up to {largest(own):.3g}"
            )
    return lines


def _is_taken(
    subject: Subject, narrow: tuple[np.ndarray, ...], same: tuple[np.ndarray, ...]
) -> bool:
    """Returns whether the op takes a narrower dtype, and results are no larger than that holds."""
    subject.check_taken(narrow)
    if not subject.stands([narrow]):
        return False
    if any(struct.dtype != _NARROW for struct in subject.outputs(narrow).structs):
        return False
    return all(map(_is_moderate, (*subject.run(narrow), *subject.run(same))))


def _gradients(subject: Subject, real: Sequence[int]) -> list[np.ndarray]:
    pull_back, cotangents = rule_of(subject, real)
    return [gradient.astype(np.float64) for gradient in pull_back(cotangents)]


def _is_moderate(array: np.ndarray) -> bool:
    return bool(np.isfinite(array).all()) and largest(array) < _COUNTED
