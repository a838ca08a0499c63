"""The globals and closures that a function refers to."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any


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
