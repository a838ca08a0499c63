"""How far two ways to compute the same may lie apart."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from msops.testing.guarded import show

# Two lowerings of one op differ in the order of sums, which costs a few hundred units at most.
_UNITS = 256
# Where a product overflows depends on the order of its factors: in another one, what is infinite
# may be a number that is still larger than this part of the largest.
_OVERFLOWING = 1 / 16
# Numbers that are larger may wrap around, or overflow a float of 16 bits.
_COUNTED = 1 << 15


def disagreements(expected: Sequence[np.ndarray], got: Sequence[np.ndarray]) -> list[str]:
    """Reports per output where results differ by more than rounding; equal bytes always agree."""
    if len(expected) != len(got):
        return [f"{len(got)} results instead of {len(expected)}"]
    lines = []
    for index, (left, right) in enumerate(zip(expected, got, strict=True)):
        if left.shape != right.shape or left.dtype != right.dtype:
            lines.append(f"output {index}: {show(right)} instead of {show(left)}")
            continue
        elements = np.flatnonzero(~close(left, right))
        if elements.size:
            first = np.unravel_index(elements[0], left.shape)
            lines.append(
                f"output {index}, {show(left)}: {elements.size} of {left.size} elements differ, "
                f"the first [{', '.join(str(int(i)) for i in first)}]: "
                f"{right[first]} instead of {left[first]}"
            )
    return lines


def close(
    left: np.ndarray, right: np.ndarray, scale: float = 0.0, terms: int = _UNITS
) -> np.ndarray:
    """Returns which elements of results differ by no more than rounding.

    Args:
      left, right: the results.
      scale: a size that results have elsewhere: of sums that cancel, rounding is a part of it.
      terms: how many numbers are added.
    """
    if not jnp.issubdtype(left.dtype, jnp.inexact):
        return left == right
    info = jnp.finfo(left.dtype)
    unit = float(info.eps)
    wide = np.complex128 if jnp.issubdtype(left.dtype, jnp.complexfloating) else np.float64
    left, right = left.astype(wide), right.astype(wide)
    finite = np.abs(left[np.isfinite(left)])
    # Of the largest element, as sums cancel.
    scale = max(scale, float(finite.max(initial=0)))
    part = max(terms, _UNITS) * unit
    alike = np.isclose(right, left, rtol=part, atol=part * scale, equal_nan=True)
    if np.all(alike):
        return alike
    return np.asarray(alike | _both_overflow(left, right, _OVERFLOWING * float(info.max)))


def _both_overflow(left: np.ndarray, right: np.ndarray, least: float) -> np.ndarray:
    """Returns which real numbers are both so large, of one sign, and at least one infinite."""
    if np.iscomplexobj(left):
        return np.zeros(left.shape, bool)
    is_infinite = np.isinf(left) | np.isinf(right)
    are_large = np.minimum(np.abs(left), np.abs(right)) >= least
    return np.asarray(is_infinite & are_large & ((left < 0) == (right < 0)))


def largest(array: np.ndarray) -> float:
    """Returns the largest magnitude of finite floats; 0 for others."""
    if not jnp.issubdtype(array.dtype, jnp.inexact):
        return 0.0
    sizes = np.abs(array.astype(np.complex128))
    return float(sizes[np.isfinite(sizes)].max(initial=0))


def far_apart_as_numbers(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Returns which results of equal whole numbers in two dtypes differ by more than a cut.

    Floats differ by rounding, also at a step. Integers are cut off, by a kernel's divisions too, so
    that half of a number may be missing. Where a number is large, integers may wrap around.
    """
    one, other = left.astype(np.float64), right.astype(np.float64)
    are_floats = [jnp.issubdtype(array.dtype, jnp.floating) for array in (left, right)]
    # Of two integers, the one of more bits has not wrapped.
    right_counts = are_floats[1] if any(are_floats) else right.itemsize > left.itemsize
    sizes = abs(other if right_counts else one)
    known = (sizes < _COUNTED) & np.isfinite(one) & np.isfinite(other)
    with np.errstate(invalid="ignore"):
        allowed = sizes[known].max(initial=0) / 4 if all(are_floats) else 2 + sizes / 2
        return (abs(one - other) > allowed) & known


def unequal(expected: Sequence[np.ndarray], got: Sequence[np.ndarray]) -> bool:
    """Returns whether results differ in any bit."""
    return [(x.dtype, x.shape, x.tobytes()) for x in expected] != [
        (x.dtype, x.shape, x.tobytes()) for x in got
    ]
