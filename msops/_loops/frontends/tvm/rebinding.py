"""Runs a kernel so that names such as `tvm` in it mean modules of msops.

Nothing of the process changes: the function runs as a copy that has its own global names and its
own ``import``. So a real tvm can be installed, imported and used by another thread meanwhile.
"""

from __future__ import annotations

import builtins
import types
from collections.abc import Mapping
from typing import Any

from msops._loops.frontends.references import global_names, is_filled, reachable, references
from msops._loops.frontends.tvm.kernel_module import KernelModule
from msops._loops.frontends.tvm.modules import MODULES


def rebound(function: types.FunctionType) -> types.FunctionType:
    """Returns a copy of a function in which `tvm`, `topi` and `akg` are msops's.

    Functions it refers to are copied likewise, if they use these modules.
    """
    return _Copier(_SCOPE, ambient=MODULES).function(function)


class ModuleScope:
    """The modules that replace real ones of their names.

    Args:
      modules: by name, without dots; others are attributes of these.
    """

    def __init__(self, modules: Mapping[str, KernelModule]):
        self.modules = modules

    def rebound(self, function: types.FunctionType) -> types.FunctionType:
        """Returns a copy of a function that imports these modules.

        Functions it refers to are copied likewise, if they use these modules.
        """
        return _Copier(self, ambient={}).function(function)

    def import_module(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: tuple[str, ...] | None = (),
        level: int = 0,
    ) -> Any:
        """Replaces ``__import__`` inside a kernel."""
        try:
            module = self.find(name) if level == 0 else None
        except ModuleNotFoundError as missing:
            # AKG's own operators may be installed, and import one another inside a kernel.
            try:
                return self.import_other(name, globals, locals, fromlist, level)
            except ModuleNotFoundError:
                raise missing from None
        if module is None:
            return self.import_other(name, globals, locals, fromlist, level)
        return module if fromlist else self.modules[name.partition(".")[0]]

    def import_other(
        self,
        name: str,
        globals: Mapping[str, Any] | None,
        locals: Mapping[str, Any] | None,
        fromlist: tuple[str, ...] | None,
        level: int,
    ) -> Any:
        """Imports what is not among these modules."""
        return builtins.__import__(name, globals, locals, fromlist or (), level)

    def find(self, name: str) -> KernelModule | None:
        """Returns one of these modules by its dotted name; None for any other."""
        first, *rest = name.split(".")
        module = self.modules.get(first)
        for part in rest if module is not None else ():
            found = vars(module).get(part)
            if not isinstance(found, KernelModule):
                # The error names what there is.
                raise ModuleNotFoundError(str(_missing(module, part)), name=name)
            module = found
        return module

    def own_module(self, module: types.ModuleType) -> types.ModuleType:
        """Returns the module that replaces a real one of the same name, or the real one."""
        try:
            return self.find(module.__name__) or module
        except ModuleNotFoundError:
            return module

    def is_used_by(self, function: types.FunctionType) -> bool:
        """Returns whether a function names one of the modules, or refers to a real one like it."""
        # What an import statement names has dots.
        names = {name.partition(".")[0] for name in global_names(function.__code__)}
        if not self.modules.keys().isdisjoint(names):
            return True
        values = (value for _, value in references(function))
        return any(
            isinstance(value, types.ModuleType) and self.own_module(value) is not value
            for value in values
        )


_SCOPE = ModuleScope(MODULES)


def _missing(module: Any, part: str) -> Exception:
    try:
        getattr(module, part)
    except AttributeError as error:
        return error
    return ModuleNotFoundError(f"{module.__name__}.{part} is not a module")


class _Copier:
    """Copies functions that refer to one another, each once."""

    def __init__(self, scope: ModuleScope, ambient: Mapping[str, Any]) -> None:
        self._scope = scope
        self._ambient = ambient
        self._functions: dict[types.FunctionType, types.FunctionType] = {}
        self._globals: dict[int, dict[str, Any]] = {}

    def function(self, function: types.FunctionType) -> types.FunctionType:
        if function in self._functions:
            return self._functions[function]
        names = self._names(function.__globals__)
        copy = types.FunctionType(
            function.__code__,
            names,
            function.__name__,
            function.__defaults__,
            tuple(types.CellType() for _ in function.__closure__ or ()),
        )
        copy.__kwdefaults__ = function.__kwdefaults__
        copy.__dict__.update(function.__dict__)
        self._functions[function] = copy
        for cell, original in zip(copy.__closure__ or (), function.__closure__ or (), strict=True):
            if is_filled(original):
                cell.cell_contents = self._value(original.cell_contents)
        for name in global_names(function.__code__):
            if name in function.__globals__:
                names[name] = self._value(function.__globals__[name])
        return copy

    def _names(self, original: dict[str, Any]) -> dict[str, Any]:
        if id(original) not in self._globals:
            own_builtins = {**vars(builtins), "__import__": self._scope.import_module}
            names = {**self._ambient, **original, "__builtins__": own_builtins}
            self._globals[id(original)] = names
        return self._globals[id(original)]

    def _value(self, value: Any) -> Any:
        if isinstance(value, types.FunctionType):
            uses = any(map(self._scope.is_used_by, reachable(value)))
            return self.function(value) if uses else value
        if isinstance(value, types.ModuleType):
            return self._scope.own_module(value)
        return value
