"""What a function reads, to notice that it has changed.

An infer function runs when shapes are new. A variable of a module or a closure that it reads, an
attribute of an object there, or what a list, a dict, a set or an array there holds may be another
at the next call, and then it is asked again.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from msops._base.dtypes import DType
from msops._op.identity import ByIdentity, names_in

# These do not change in place, or not to something else while a program runs.
_FIXED = (types.BuiltinFunctionType, DType, np.dtype, np.ufunc, np.generic)
_PACKAGES = {"jax", "jaxlib", "msops", "numpy", "ml_dtypes"}
_HOLDERS = (list, dict, set, collections.deque, bytearray, np.ndarray)
_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_MOST = 1000
"""Elements that are compared; what holds more counts as changed if their number changes."""
_DEEPEST = 4


@dataclasses.dataclass(frozen=True)
class Variables:
    """Variables and what they held when they were read.

    Attributes:
      cells: those of closures.
      names: those of modules, and attributes.
      contents: objects and what they held in turn.
    """

    cells: tuple[tuple[types.CellType, Any], ...]
    names: tuple[tuple[Mapping[str, Any], str, Any], ...]
    contents: tuple[tuple[Any, Any], ...]

    def are_same(self) -> bool:
        """Returns whether all hold what they held; each eager call of some ops asks it."""
        try:
            for cell, value in self.cells:
                if cell.cell_contents is not value:
                    return False
        except ValueError:  # it was deleted
            return False
        for scope, name, value in self.names:
            if scope.get(name) is not value:
                return False
        return all(_contents(holder) == held for holder, held in self.contents)


def read_variables(functions: Iterable[Callable[..., Any]]) -> Variables | None:
    """Returns what functions read, and functions beside them; None if that is nothing."""
    reader = _Reader()
    for function in functions:
        reader.add_callable(function)
    found = Variables(tuple(reader.cells), tuple(reader.names), tuple(reader.contents))
    return found if found.cells or found.names or found.contents else None


class _Reader:
    """Collects what functions read, each object once."""

    def __init__(self) -> None:
        self.cells: list[tuple[types.CellType, Any]] = []
        self.names: list[tuple[Mapping[str, Any], str, Any]] = []
        self.contents: list[tuple[Any, Any]] = []
        self._seen: set[int] = set()

    def add_callable(self, function: Any) -> None:
        """Adds what a function reads, also one that is bound to arguments or is an object."""
        if isinstance(function, types.FunctionType):
            self._add_function(function)
        elif isinstance(function, types.MethodType):
            self.add_callable(function.__func__)
            self._add_value(function.__self__, _names(function.__func__))
        elif isinstance(function, functools.partial):
            self.add_callable(function.func)
            for value in (*function.args, *function.keywords.values()):
                self._add_value(value, _names(function.func))
        elif not _is_foreign(function) and (call := _own_call(function)):
            self._add_function(call)
            self._add_value(function, _names(call))

    def _add_function(self, function: types.FunctionType) -> None:
        if id(function) in self._seen:
            return
        self._seen.add(id(function))
        names = names_in(function.__code__)
        scope = function.__globals__
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._add_value(value, names)
        for cell, value in _assigned(function.__closure__ or ()):
            if _may_be_assigned(value):
                self.cells.append((cell, value))
            self._add_read(value, names, scope)
        for name in names & scope.keys():
            self._add_variable(scope, name, names)
            self._add_read(scope[name], names, scope)

    def _add_read(self, value: Any, names: Collection[str], scope: dict[str, Any]) -> None:
        # A function of another module reads its own variables, which are that module's business.
        if not isinstance(value, types.FunctionType):
            self._add_value(value, names)
        elif value.__globals__ is scope:
            self._add_function(value)

    def _add_variable(self, scope: Mapping[str, Any], name: str, names: Collection[str]) -> None:
        value = scope[name]
        if _may_be_assigned(value):
            self.names.append((scope, name, value))
        if not isinstance(value, types.FunctionType):
            self._add_value(value, names)

    def _add_value(self, value: Any, names: Collection[str]) -> None:
        """Adds what an object holds: elements, or the attributes that have one of the names."""
        if isinstance(value, (*_PLAIN, *_FIXED)) or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, _HOLDERS):
            self.contents.append((value, _contents(value)))
        elif isinstance(value, tuple):
            for item in value:
                self._add_value(item, names)
        elif not _is_foreign(value):
            attributes: Mapping[str, Any] = getattr(value, "__dict__", {})
            for name in names & attributes.keys():
                self._add_variable(attributes, name, names)


def _assigned(cells: Iterable[types.CellType]) -> Iterator[tuple[types.CellType, Any]]:
    for cell in cells:
        try:
            yield cell, cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def _may_be_assigned(value: Any) -> bool:
    """Returns whether a variable with this value is one that programs assign anew."""
    return not isinstance(value, (types.ModuleType, types.FunctionType, type, *_FIXED))


def _names(function: Any) -> frozenset[str]:
    code = getattr(function, "__code__", None)
    return frozenset() if code is None else names_in(code)


def _own_call(value: Any) -> types.FunctionType | None:
    """Returns the method that calls an object, if it is one of Python."""
    call = getattr(type(value), "__call__", None)  # noqa: B004
    return call if isinstance(call, types.FunctionType) else None


def _is_foreign(value: Any) -> bool:
    """Returns whether a module, a class or an object is of a package that does not change."""
    if isinstance(value, types.ModuleType):
        package = value.__name__.partition(".")[0]
        return package in _PACKAGES or package in sys.stdlib_module_names
    name = getattr(value if isinstance(value, type) else type(value), "__module__", None)
    return str(name).partition(".")[0] in _PACKAGES


def _contents(value: Any, depth: int = _DEEPEST) -> Any:
    """Returns what a value holds as something that can be compared later."""
    if isinstance(value, _PLAIN):
        return type(value), repr(value)  # 1 and True are equal, NaN is not
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, value.tobytes() if value.size <= _MOST else None
    if not isinstance(value, (tuple, *_HOLDERS)) or not depth:
        return ByIdentity(value)
    if len(value) > _MOST:
        return type(value), len(value)
    if isinstance(value, bytearray):
        return type(value), bytes(value)
    items: Iterable[Any] = value.items() if isinstance(value, dict) else value
    held = tuple(_contents(item, depth - 1) for item in items)
    return type(value), frozenset(held) if isinstance(value, set) else held
