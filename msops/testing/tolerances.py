"""How far two ways to compute the same may lie apart."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from msops.testing.guarded import show

# Two lowerings of one op differ in the order of sums, which costs a few hundred units at most.
_UNITS = 256


def disagreements(expected: Sequence[np.ndarray], got: Sequence[np.ndarray]) -> list[str]:
    """Reports per output where results differ by more than rounding; equal bytes always agree."""
    if len(expected) != len(got):
        return [f"{len(got)} results instead of {len(expected)}"]
    lines = []
    for index, (left, right) in enumerate(zip(expected, got, strict=True)):
        if left.shape != right.shape or left.dtype != right.dtype:
            lines.append(f"output {index}: {show(right)} instead of {show(left)}")
            continue
        elements = np.flatnonzero(~_close(left, right))
        if elements.size:
            first = np.unravel_index(elements[0], left.shape)
            lines.append(
                f"output {index}, {show(left)}: {elements.size} of {left.size} elements differ, "
                f"the first [{', '.join(str(int(i)) for i in first)}]: "
                f"{right[first]} instead of {left[first]}"
            )
    return lines


def _close(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    if not jnp.issubdtype(left.dtype, jnp.inexact):
        return left == right
    unit = float(jnp.finfo(left.dtype).eps)
    wide = np.complex128 if jnp.issubdtype(left.dtype, jnp.complexfloating) else np.float64
    left, right = left.astype(wide), right.astype(wide)
    finite = np.abs(left[np.isfinite(left)])
    scale = float(finite.max()) if finite.size else 0.0
    # Of the largest element, as sums cancel.
    return np.isclose(right, left, rtol=_UNITS * unit, atol=_UNITS * unit * scale, equal_nan=True)


def far_apart_as_numbers(usual: np.ndarray, got: np.ndarray, floats: np.ndarray) -> np.ndarray:
    """Returns which results of equal whole numbers in two dtypes differ by more than a cut.

    Integers are cut off, by a kernel's divisions too, so that half of a number may be missing.

    Args:
      usual, got: the results, as float64.
      floats: those of the two that are of a float dtype, as integers may wrap around; where such a
        number is large, nothing is known.
    """
    with np.errstate(invalid="ignore"):
        return ~(abs(usual - got) <= 2 + abs(floats) / 2) & (abs(floats) < 1 << 20)


def unequal(expected: Sequence[np.ndarray], got: Sequence[np.ndarray]) -> bool:
    """Returns whether results differ in any bit."""
    return [(x.dtype, x.shape, x.tobytes()) for x in expected] != [
        (x.dtype, x.shape, x.tobytes()) for x in got
    ]
