"""Numbers and tuples that a kernel sees from outside."""

from __future__ import annotations

import ast
import types
from collections.abc import Mapping
from typing import Any

import numpy as np


def captured_values(function: types.FunctionType, definition: ast.FunctionDef) -> Mapping[str, Any]:
    """Returns the constants among the closure and the globals that a kernel names.

    Their values now count: the kernel is compiled with them.
    """
    names = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    found = {}
    for name in names:
        try:
            value = cells[name].cell_contents if name in cells else function.__globals__[name]
        except (KeyError, ValueError):  # not there, or a cell not assigned yet
            continue
        constant = as_constant(value)
        if constant is not None:
            found[name] = constant
    return found


def as_constant(value: Any) -> Any:
    """Returns a number, a string or a tuple of them as plain Python values; None for others."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        parts = tuple(map(as_constant, value))
        return None if None in parts else parts
    return None
