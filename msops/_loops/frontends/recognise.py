"""Which of the three languages a kernel of func_type "akg" is written in.

MindSpore looks for the words "ir_builder" and "compute" in the source, comments included. Here it
is what the function calls that counts: names of `tvm` and `topi`, however they were imported.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from typing import Literal

from msops._loops.frontends.references import global_names, references

Kind = Literal["hybrid", "tvm_compute", "ir_builder"]

# What resolves inside a kernel without an import.
_MODULES = {"tvm": "tvm", "topi": "topi", "akg": "akg"}


def recognise(definition: ast.FunctionDef, function: types.FunctionType) -> Kind:
    """Returns the kind of a kernel from what it calls, directly or through other functions."""
    names = _MODULES | _imported(definition)
    called = {
        _path(node.func, names) for node in ast.walk(definition) if isinstance(node, ast.Call)
    }
    if "tvm.ir_builder.create" in called:
        return "ir_builder"
    if any(path.startswith(("tvm.", "topi.")) for path in called) or _calls_tvm(function, set()):
        return "tvm_compute"
    return "hybrid"


def _calls_tvm(function: types.FunctionType, seen: set[types.FunctionType]) -> bool:
    """Returns whether a function, or one that it names, uses the modules of TVM."""
    seen.add(function)
    if not _MODULES.keys().isdisjoint(global_names(function.__code__)):
        return True
    values = [value for _, value in references(function)]
    modules = (value.__name__ for value in values if isinstance(value, types.ModuleType))
    if any(name.partition(".")[0] in _MODULES for name in modules):
        return True
    # This library's functions are no author's.
    return any(
        _calls_tvm(value, seen)
        for value in values
        if isinstance(value, types.FunctionType)
        and not str(value.__module__).startswith("msops.")
        and value not in seen
    )


def _imported(definition: ast.FunctionDef) -> dict[str, str]:
    """Returns the names that imports inside the function bind, with what they mean."""
    return dict(_bindings(definition))


def _bindings(definition: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    for node in ast.walk(definition):
        if isinstance(node, ast.Import):
            for alias in node.names:
                # `import akg.tvm` binds akg; `import akg.tvm as t` binds t to the module.
                top = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _path(func: ast.expr, names: dict[str, str]) -> str:
    """Returns what is called as a dotted path below tvm or topi; "" for anything else."""
    parts: list[str] = []
    while isinstance(func, ast.Attribute):
        parts.append(func.attr)
        func = func.value
    if not isinstance(func, ast.Name) or func.id not in names:
        return ""
    path = ".".join([names[func.id], *reversed(parts)])
    return path.removeprefix("msops.").removeprefix("akg.")
