"""Numbers and tuples that a kernel sees from outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from msops._base.dtypes import DType


def as_constant(value: Any) -> Any:
    """Returns a constant as plain Python values; None for what is none.

    Constants are numbers, numpy's too, strings, dtypes (by their names), and tuples of them.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        parts = tuple(map(as_constant, value))
        return None if None in parts else parts
    return _dtype_name(value)


def _dtype_name(value: Any) -> str | None:
    """Returns the name of a dtype as numpy, JAX and MindSpore write it: ``np.float32``."""
    if isinstance(value, type) and issubclass(value, np.generic):
        return np.dtype(value).name
    if isinstance(value, (np.dtype, DType)):
        return value.name
    # jnp.float32 is an object with the dtype.
    dtype = getattr(value, "dtype", None)
    return dtype.name if callable(value) and isinstance(dtype, np.dtype) else None
