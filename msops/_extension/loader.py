"""From the library of an extension module to the module, with functions of Tensors and arrays."""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import threading
import types
from pathlib import Path
from typing import Any

from msops._extension import verbs
from msops._extension.calls import Module, as_function
from msops._toolchain import check_dependencies, find_dependencies, open_in_child, read_elf
from msops.errors import BuildError

# Of the headers, in a module that includes them.
_WHEN_LOADED = "msops_extension_loaded"


class TypeTakenError(BuildError):
    """A module binds a C++ class of a name that another module has bound already."""


_loaded: dict[tuple[Module, Path], types.ModuleType] = {}
_lock = threading.Lock()


def load_module(module: Module, path: Path) -> types.ModuleType:
    """Returns the module in a library; the same one each time.

    Args:
      module: what it is called, and what is in it.
      path: the library, whose content never changes.

    Raises:
      TypeTakenError: another module has bound a class of the same name.
      BuildError: the library does not load otherwise.
    """
    verbs.serve()
    who = f"CustomOpBuilder '{module.name}'"
    info = read_elf(path, who)
    check_dependencies(find_dependencies(path, info), path.name, who)
    with _lock:
        if (module, path) not in _loaded:
            if info.has_constructors:
                open_in_child(path, path.name, who)
            native = _import(module, path, who)
            if _WHEN_LOADED in info.functions:
                getattr(ctypes.PyDLL(str(path)), _WHEN_LOADED)()
            _loaded[module, path] = _with_functions(module, native)
        return _loaded[module, path]


def _import(module: Module, path: Path, who: str) -> types.ModuleType:
    # pybind11 and Python both keep modules by name, and would give the first of a name again.
    name = f"msops_extension_{module.hash[:16]}.{module.name}"
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, str(path), loader=loader)
    assert spec is not None
    try:
        native = importlib.util.module_from_spec(spec)
        loader.exec_module(native)
    except ImportError as error:
        family = TypeTakenError if "is already registered" in str(error) else BuildError
        raise family.explained(
            who,
            "the module was built but does not load",
            "Its source needs PYBIND11_MODULE(MS_EXTENSION_NAME, m); libraries it needs are "
            "named in ldflags, with -Wl,-rpath for their folders.",
            [str(error)],
        ) from error
    return native


def _with_functions(module: Module, native: types.ModuleType) -> types.ModuleType:
    """Returns a module like `native` whose functions take Tensors and arrays."""
    result = types.ModuleType(native.__name__.rpartition(".")[2], native.__doc__)
    for name, entry in vars(native).items():
        if name not in ("__name__", "__spec__", "__loader__", "__package__"):
            setattr(result, name, _as_public(module, entry))
    return result


def _as_public(module: Module, entry: Any) -> Any:
    if isinstance(entry, types.BuiltinFunctionType):
        return as_function(module, entry)
    if isinstance(entry, types.ModuleType):
        return _with_functions(module, entry)
    if isinstance(entry, type):
        _open_methods(module, entry)
    return entry


def _open_methods(module: Module, kind: type) -> None:
    """Lets the methods of a class that C++ bound take Tensors and arrays."""
    for name, entry in list(vars(kind).items()):
        if type(entry).__name__ == "instancemethod":
            setattr(kind, name, as_function(module, entry))
        elif isinstance(entry, staticmethod):
            setattr(kind, name, staticmethod(as_function(module, entry.__func__)))
