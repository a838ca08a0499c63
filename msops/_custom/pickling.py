"""Pickling of ops: their definitions travel to another process, compiled code does not.

Functions travel as Python's pickle does it, by the module and name they are found at, or by value
if cloudpickle runs. The kernel is read again there, so a loop kernel travels by its source.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from types import FunctionType
from typing import Any

from msops._op.identity import ByValue, LiveFunction, find_at_name
from msops.errors import ArgumentTypeError

# What is of this process, or read again from the rest.
_LEFT_BEHIND = ("_backend", "_programs", "_of_arrays", "_of_tensors", "_signature", "__wrapped__")


def travelling_state(state: Mapping[str, Any], who: str) -> dict[str, Any]:
    """Returns what pickle takes of an op's attributes.

    Raises:
      ArgumentTypeError: a function of the op is found at no name, and pickle takes it by name.
    """
    if not _is_taken_by_value():
        for what, function in _functions(state):
            _check_importable(function, what, who)
    return {name: value for name, value in state.items() if name not in _LEFT_BEHIND}


def kernel_function(source: Any) -> Any:
    """Returns the Python function of a kernel that was read, None if it has none."""
    function = source if isinstance(source, LiveFunction) else getattr(source, "function", None)
    return function.function if isinstance(function, (ByValue, LiveFunction)) else None


def _functions(state: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields the functions of an op, with what each is to it."""
    yield "its kernel", kernel_function(state["_source"])
    yield "its bprop", state["_bprop"]
    for function in state["_vjp"] or ():
        yield "a rule of def_vjp", function
    for part in (state["_inference"], state["_options"]):
        for field in dataclasses.fields(part):
            value = getattr(part, field.name)
            if isinstance(value, ByValue):
                yield f"its {field.name}", value.function


def _check_importable(function: Any, what: str, who: str) -> None:
    if isinstance(function, partial):
        for part in (function.func, *function.args):
            _check_importable(part, what, who)
    function = inspect.unwrap(function) if isinstance(function, FunctionType) else function
    if not isinstance(function, FunctionType):
        return  # None, or an object that pickle knows how to take
    if find_at_name(function.__module__, function.__qualname__) is not function:
        raise ArgumentTypeError.explained(
            who,
            f"it cannot be pickled: {what} is {function.__qualname__}, and pickle takes "
            f"functions by the name at which they are found in a module",
            "Define it by def at the top of a module that the other process can import; or use "
            "cloudpickle, which takes any function.",
        )


def _is_taken_by_value() -> bool:
    """Returns whether cloudpickle, under whatever name it is installed, is pickling."""
    frame = sys._getframe(1)
    while frame is not None:
        if "cloudpickle" in frame.f_globals.get("__name__", ""):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
