"""The globals and closures that a function refers to, and which of them are constants."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from msops._base.dtypes import DType


def global_names(code: types.CodeType) -> Iterator[str]:
    """Yields the names that code looks up outside itself, attributes included, nested code too."""
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from global_names(const)


def references(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yields the global names and closure variables of a function that have a value, with it."""
    for name in global_names(function.__code__):
        if name in function.__globals__:
            yield name, function.__globals__[name]
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in cells:
        if is_filled(cell):
            yield name, cell.cell_contents


def reachable(function: types.FunctionType) -> Iterator[types.FunctionType]:
    """Yields a function and all functions it refers to, directly or not, each once."""
    seen = {function}
    waiting = [function]
    while waiting:
        current = waiting.pop()
        yield current
        for _, value in references(current):
            if isinstance(value, types.FunctionType) and value not in seen:
                seen.add(value)
                waiting.append(value)


def is_filled(cell: types.CellType) -> bool:
    """Returns whether a closure variable has a value yet."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


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
