"""Functions that a kernel registers by name, as ``tvm.register_func`` does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msops._loops.frontends.tvm.tracing import wrong_value

_functions: dict[str, Callable[..., Any]] = {}


def register_func(
    func_name: Any, f: Callable[..., Any] | None = None, override: bool = False
) -> Any:
    """Registers a function under a name; a decorator if only the name, or nothing, is given.

    Args:
      func_name: the name; or the function, which is then registered under its own.
      f: the function.
      override: whether it may replace another one of that name.
    """
    if callable(func_name):
        return register_func(func_name.__name__, func_name, override)
    if f is None:
        return lambda function: register_func(func_name, function, override)
    known = _functions.get(func_name)
    # A kernel is read for each shape it is called with, so it registers its function again.
    if known is not None and not override and known.__code__ is not f.__code__:
        raise wrong_value(
            f"there is a function {func_name!r} already",
            "Choose another name, or pass override=True.",
        )
    _functions[func_name] = f
    return f


def get_global_func(name: str, allow_missing: bool = False) -> Callable[..., Any] | None:
    """Returns the function that is registered under a name.

    Args:
      name: the name.
      allow_missing: whether None is returned if there is none.
    """
    if name not in _functions and not allow_missing:
        raise wrong_value(
            f"there is no function {name!r}; msops has none of TVM's own",
            "Register it with tvm.register_func, or call Python.",
        )
    return _functions.get(name)
