"""Keys that compare functions by what they do, so that equal ops share one compiled program.

A re-run notebook cell, or a Cell built in a loop, defines its lambdas anew; by identity each would
cost a primitive and a compilation. `by_value` compares code, defaults and everything the code can
see (closure and globals); what has no value of its own compares by identity and is kept alive by
the key. A function's surroundings may change later, so a holder of a key checks `is_current`
before it lets another op share.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import numpy as np

from msops._base.dtypes import DType

T = TypeVar("T")

_SCALARS = (int, float, complex, str, bytes, bool, type(None), type(...))


class ByIdentity(Generic[T]):
    """Compares by identity of `value`, which it keeps alive so that the id is not reused."""

    __slots__ = ("value",)

    def __init__(self, value: T):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class ByValue:
    """A function with the key it had when it was read; compares and hashes by the key."""

    __slots__ = ("function", "key")

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self.key = by_value(function)

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByValue) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> tuple[Any, ...]:
        # The key is of this process: it has identities.
        return type(self), (as_travelling(self.function),)

    def read_again(self) -> ByValue:
        """Returns the function as later calls compare it; itself, as its globals were read once."""
        return self

    def is_current(self) -> bool:
        """Returns whether the function still sees what it saw when it was read."""
        return by_value(self.function) == self.key


class RunPerShape(ByValue):
    """A function that runs whenever shapes are new, and sees what its globals are by then."""

    __slots__ = ("_has_strayed",)

    def __init__(self, function: Callable[..., Any]):
        super().__init__(function)
        self._has_strayed = False

    def read_again(self) -> ByValue:
        """Returns the function by what it sees now, before it runs."""
        now = ByValue(self.function)
        self._has_strayed |= now != self
        return now

    def is_current(self) -> bool:
        """Returns whether it sees what it saw when it was read, and did so each time it ran."""
        return not self._has_strayed and super().is_current()


class LiveFunction:
    """A function that runs again and again; equal to another if both behave alike at every call."""

    __slots__ = ("_key", "function")

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self._key = by_live_value(function)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LiveFunction) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (as_travelling(self.function),)


def layers_at_name(module: str | None, name: str) -> list[Any]:
    """Returns what a dotted name of a module is, and what is below each of its decorators."""
    # A function that exec made has no module.
    found: Any = module and (sys.modules.get(module) or importlib.import_module(module))
    for part in name.split("."):
        found = getattr(found, part, None)
    layers: list[Any] = []
    if found is not None:
        layers.append(inspect.unwrap(found, stop=layers.append))  # appended last
    return layers


def find_at_name(module: str | None, name: str) -> Any:
    """Returns what a dotted name of a module is, below its decorators; None if there is nothing."""
    layers = layers_at_name(module, name)
    return layers[-1] if layers else None


class _AtName:
    """Pickled, a function that its decorator has replaced at its name, by an op say."""

    def __init__(self, function: types.FunctionType):
        self._place = function.__module__, function.__qualname__

    def __reduce__(self) -> tuple[Any, ...]:
        return find_at_name, self._place


def as_travelling(function: Any) -> Any:
    """Returns what pickle is to take for a function, so that the function comes out."""
    if isinstance(function, types.FunctionType) and "<" not in function.__qualname__:
        found: Any = sys.modules.get(function.__module__ or "")
        for part in function.__qualname__.split("."):
            found = getattr(found, part, None)
        if found is not function and found is not None and inspect.unwrap(found) is function:
            return _AtName(function)
    return function


def by_value(value: Any) -> Hashable:
    """Returns a key, equal for values that behave alike when a trace reads them now."""
    return _key(value, {})


def by_live_value(function: Callable[..., Any]) -> Hashable:
    """Returns a key, equal only for functions that behave alike at every future call.

    For kernels that run again and again: globals may differ over time but are the same dict, and
    closures share the very cells, since a counter in a closure belongs to one function. So do
    defaults and attributes, which may be assigned to.
    """
    if (
        not isinstance(function, types.FunctionType)
        or function.__dict__
        or function.__defaults__
        or function.__kwdefaults__
    ):
        return ByIdentity(function)
    return (
        function.__code__,
        ByIdentity(function.__globals__),
        tuple(ByIdentity(cell) for cell in function.__closure__ or ()),
    )


def _key(value: Any, seen: dict[int, int]) -> Hashable:
    """Returns the key of `value`.

    `seen` numbers the functions met so far: meeting one again gives its number, which ends cycles
    and keeps the walk linear. What can change in place (a list, a Cell) is what it is by identity;
    `Operator.is_current` looks at what infer functions make of it.
    """
    if isinstance(value, float):  # numpy's float64 is one, which JAX promotes otherwise
        return (type(value), float(value).hex())
    if isinstance(value, complex):
        return (type(value), value.real.hex(), value.imag.hex())
    if isinstance(value, _SCALARS):
        return (type(value), value)
    if isinstance(value, (DType, np.dtype, np.generic)):
        return (type(value), str(value))
    if isinstance(value, tuple):
        return (type(value), tuple(_key(item, seen) for item in value))
    if isinstance(value, types.MethodType):
        return ("method", _key(value.__func__, seen), _key(value.__self__, seen))
    if isinstance(value, functools.partial):
        keywords = tuple(sorted(value.keywords.items()))
        return ("partial", *(_key(part, seen) for part in (value.func, value.args, keywords)))
    if id(value) in seen:
        return ("seen", seen[id(value)])
    if isinstance(value, types.FunctionType):
        seen[id(value)] = len(seen)
        return _function_key(value, seen)
    own = getattr(type(value), "__msops_key__", None)
    return ByIdentity(value) if own is None else own(value)


def _function_key(function: types.FunctionType, seen: dict[int, int]) -> Hashable:
    scope = function.__globals__
    cells = []
    for cell in function.__closure__ or ():
        try:
            cells.append(_key(cell.cell_contents, seen))
        except ValueError:  # not assigned yet, as in a function that refers to itself
            cells.append(ByIdentity(cell))
    names = []
    for name in sorted(names_in(function.__code__)):
        if name in scope:
            value = scope[name]
            # Functions of other modules are not defined anew while a program runs.
            foreign = isinstance(value, types.FunctionType) and value.__globals__ is not scope
            names.append((name, ByIdentity(value) if foreign else _key(value, seen)))
    return (
        function.__code__,
        ByIdentity(scope),
        _key(function.__defaults__, seen),
        _key(_keyword_defaults(function), seen),
        tuple(cells),
        tuple(names),
    )


def _keyword_defaults(function: types.FunctionType) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((function.__kwdefaults__ or {}).items()))


@functools.lru_cache(maxsize=1024)
def names_in(code: types.CodeType) -> frozenset[str]:
    """Returns every global or attribute name that `code`, or code nested in it, mentions."""
    nested = (item for item in code.co_consts if isinstance(item, types.CodeType))
    return frozenset(code.co_names).union(*(names_in(item) for item in nested))
