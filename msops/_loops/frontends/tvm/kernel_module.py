"""Modules as kernels see them, made from tables of names."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any

from msops._loops.frontends.tvm.tensor import as_tensor
from msops._loops.frontends.tvm.tracing import UnknownNameError, call_error, calling


class KernelModule(types.ModuleType):
    """A module of which unknown names are explained."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        names = sorted(known for known in vars(self) if not known.startswith("_"))
        raise call_error(
            UnknownNameError,
            f"{self.__name__}.{name}",
            "there is no such name",
            f"{self.__name__} has {', '.join(names)}.",
        )


def new_module(name: str, names: Mapping[str, Any]) -> KernelModule:
    """Returns a module of which unknown names are explained.

    Errors of its functions call them by the name that they have in it. What a function declares as
    a `Tensor` must be one.

    Args:
      name: its dotted name.
      names: what it holds; modules among these are its parts.
    """
    module = KernelModule(name)
    functions = {
        own: _called(f"{name}.{own}", value)
        for own, value in names.items()
        if isinstance(value, types.FunctionType)
    }
    # A path is what makes `import name.part` look for parts.
    module.__dict__.update({**names, **functions}, __path__=[])
    return module


def _called(name: str, function: types.FunctionType) -> Callable[..., Any]:
    parameters = list(inspect.signature(function).parameters)
    kinds = function.__annotations__

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        with calling(name):
            for parameter, value in (*zip(parameters, args, strict=False), *options.items()):
                kind = kinds.get(parameter)
                if kind == "Tensor" or (kind == "Tensor | None" and value is not None):
                    as_tensor(value)
            return function(*args, **options)

    return call


def functions_of(module: types.ModuleType) -> dict[str, Any]:
    """Returns the public functions and classes that a module defines, by their own names.

    A name such as `sum_over` is that of a function whose own name, "sum", is Python's, too.
    """
    return {
        value.__name__: value
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", "") == module.__name__
        if not name.startswith("_")
    }
