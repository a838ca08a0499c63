"""What ``CustomOpBuilder(op_def=).load()`` returns: a module with its graph operators."""

from __future__ import annotations

import ctypes
import difflib
import re
import types
from pathlib import Path
from typing import NoReturn

from msops._extension.calls import Module
from msops._extension.graph.definitions import OperatorDefinition, read_definition
from msops._extension.graph.operators import GraphOperator, implements
from msops._extension.graph.source import ENTRY
from msops._extension.graph.yaml_files import read_files
from msops.errors import BuildError

Docs = tuple[tuple[str, str], ...]


class GraphModule(types.ModuleType):
    """An extension module with the functions of its graph operators.

    As in MindSpore, an operator of op_def is found before a function that the module binds.
    """

    def __getattr__(self, name: str) -> NoReturn:
        known = [entry for entry in vars(self) if not entry.startswith("_")]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else f" It has {', '.join(sorted(known))}."
        raise AttributeError(
            f"Extension module '{self.__name__}' has no operator '{name}': it is neither in its "
            f"op_def nor bound by its PYBIND11_MODULE.{hint}"
        )


def read_definitions(paths: tuple[str, ...], who: str) -> tuple[OperatorDefinition, ...]:
    """Returns the operators of the files of op_def.

    Raises:
      BuildError: a file or an operator in it is malformed.
    """
    found = read_files("op_def", paths, who)
    return tuple(read_definition(name, entry, path) for name, (entry, path) in found.items())


def read_docs(paths: tuple[str, ...], who: str) -> Docs:
    """Returns the texts of the files of op_doc, by operator.

    Raises:
      BuildError: a file is malformed.
    """
    entries = read_files("op_doc", paths, who) if paths else {}
    return tuple(
        (name, entry["description"])
        for name, (entry, _) in entries.items()
        if isinstance(entry, dict) and isinstance(entry.get("description"), str)
    )


_made: dict[tuple[Module, Path, str], GraphModule] = {}


def add_operators(
    native: types.ModuleType,
    module: Module,
    path: Path,
    definitions: tuple[OperatorDefinition, ...],
    docs: Docs,
) -> GraphModule:
    """Returns a module like `native` with the operators; the same one each time."""
    # As text, since a default may be a list, which has no hash.
    key = (module, path, repr((definitions, docs)))
    if key not in _made:
        _made[key] = _add_operators(native, module, path, definitions, dict(docs))
    return _made[key]


def _add_operators(
    native: types.ModuleType,
    module: Module,
    path: Path,
    definitions: tuple[OperatorDefinition, ...],
    docs: dict[str, str],
) -> GraphModule:
    make_entry = getattr(ctypes.PyDLL(str(path)), ENTRY)
    make_entry.restype = ctypes.py_object
    entry = make_entry()
    result = GraphModule(native.__name__, native.__doc__)
    vars(result).update({n: v for n, v in vars(native).items() if not n.startswith("__")})
    for definition in definitions:
        own = getattr(native, definition.name, None)
        operator = GraphOperator(
            module, definition, entry, own if own is not None and implements(own) else None
        )
        if definition.function:
            function = operator.function(docs.get(definition.name))
            setattr(result, definition.function, function)
    return result


def explain_missing(error: BuildError, who: str) -> BuildError:
    """Returns the error for a module that does not load, clearer if an operator is missing."""
    found = re.search(r"gCustom_(\w+)FuncImpl", str(error))
    if not found:
        return error
    name = found[1]
    return BuildError.explained(
        who,
        f"operator '{name}' of op_def has no infer class in the sources",
        f"Write MS_CUSTOM_OPS_REGISTER({name}, its infer class, its kernel class), or "
        f"DECLARE_CUSTOM_OP_IMPL({name}, its infer class) in namespace mindspore::ops.",
        [str(error)],
    )
