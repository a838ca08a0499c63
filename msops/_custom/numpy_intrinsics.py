"""The names of the Hybrid DSL as numpy functions, for kernels that are called as Python.

They follow numpy where it differs from the compiled language: `round` takes halves to the even
number, and conversions happen where an element is stored.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from msops._base.dtypes import as_dtype
from msops._loops.ir.functions import FUNCTIONS


def _allocate(shape: Any, dtype: Any = "float32", scope: str = "global") -> np.ndarray:
    """Returns zeros; the location of a temporary has no effect here."""
    return np.zeros(shape, as_dtype(dtype).dtype)


def _grid(extents: Iterable[int]) -> Iterable[tuple[int, ...]]:
    return itertools.product(*map(range, extents))


def _bind(axis: str, extent: int) -> range:
    """Returns the indices that a thread axis would run over."""
    return range(extent)


@contextlib.contextmanager
def _scope(*args: Any) -> Any:
    """Opens nothing; `attr` and `block_realize` speak to the compiler."""
    yield


def _likely(condition: Any) -> Any:
    return condition


def _least(*values: Any) -> Any:
    return _first_nan(values, min(*values))


def _greatest(*values: Any) -> Any:
    return _first_nan(values, max(*values))


def _first_nan(values: Iterable[Any], otherwise: Any) -> Any:
    """Returns a NaN if there is one: Python's min and max keep one only in front."""
    return next((value for value in values if value != value), otherwise)


def _ceil_div(a: Any, b: Any) -> Any:
    return (a + b - 1) // b


INTRINSICS: dict[str, Any] = {
    "allocate": _allocate,
    "output_tensor": _allocate,
    **dict.fromkeys(
        ("range", "serial", "vectorize", "parallel", "reduce", "unroll", "const_range"), range
    ),
    "grid": _grid,
    "bind": _bind,
    "attr": _scope,
    "block_realize": _scope,
    **{name: row.in_python or row.numpy for name, row in FUNCTIONS.items() if row.hybrid},
    "power": np.power,
    "ceil_div": _ceil_div,
    "min": _least,
    "max": _greatest,
    "len": len,
    "likely": _likely,
    **{
        name: as_dtype(name).dtype.type
        for name in (
            "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
            "float16", "bfloat16", "float32", "float64",
        )
    },
}  # fmt: skip
"""Every name of the language."""
