"""The table of aclnn operators by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

OPERATORS: dict[str, Callable[..., Any]] = {}
"""The functions of this package by aclnn's name, without the prefix; importing a file fills it."""


def aclnn(*names: str) -> Callable[[_Function], _Function]:
    """Returns a decorator that enters a function under aclnn's names for it."""

    def enter(function: _Function) -> _Function:
        for name in names:
            OPERATORS[name] = function
        return function

    return enter
