"""Data for random programs: integers of all sizes, floats with NaN, infinities and subnormals."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
from loop_program_expressions import INTEGERS, Tensor


def values(
    numbers: np.random.Generator, tensor: Tensor, is_wild: bool, is_smooth: bool
) -> np.ndarray:
    """Returns an array for a tensor; see `Program` of loop_programs.py for kinds of programs."""
    shape, name = tensor.shape, tensor.dtype
    if tensor.bound:
        edge = 2 if is_wild else 0
        low = 0 if name.startswith("u") else -edge
        return numbers.integers(low, tensor.bound + edge, shape).astype(name)
    if name == "bool":
        return numbers.integers(0, 2, shape).astype(bool)
    if name in INTEGERS:
        return _integers(numbers, shape, np.dtype(name))
    if is_smooth:
        return numbers.uniform(-2, 2, shape).astype(name)
    return _floats(numbers, shape, name)


def _integers(numbers: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Returns small integers, some of any size, and those at the ends of the range."""
    info = np.iinfo(dtype)
    small = numbers.integers(0 if info.min == 0 else -9, 10, shape).astype(dtype)
    whole = numbers.integers(info.min, info.max, shape, dtype, endpoint=True)
    ends = numbers.choice(np.array([info.min, info.max, info.max - 1], dtype), shape)
    kind = numbers.random(shape)
    return np.where(kind < 0.6, small, np.where(kind < 0.9, whole, ends))


def _floats(numbers: np.random.Generator, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Returns floats: mostly of the size of 1, some special ones at a rate of the array's own."""
    dtype = np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)
    info = ml_dtypes.finfo(dtype)
    coarse = numbers.integers(-12, 13, shape) / 4
    plain = np.where(numbers.random(shape) < 0.4, coarse, numbers.normal(0, 2, shape))
    special = np.array(
        [
            *(math.nan, math.inf, -math.inf, -0.0, 0.0, info.smallest_subnormal),
            *(-info.tiny / 4, info.max, -info.max, info.tiny, 1 / 3, 0.99999999, 1e4),
        ],
        np.float64,
    )
    if numbers.random() < 0.15:
        # Extremes are zeros of both signs.
        plain = numbers.choice([0.0, -0.0, 0.0, -0.0, numbers.choice([-1.0, 1.0])], shape)
    rate = numbers.choice([0.0, 0.02, 0.1, 0.4])
    some = numbers.random(shape) < rate
    return np.where(some, numbers.choice(special, shape), plain).astype(dtype)
