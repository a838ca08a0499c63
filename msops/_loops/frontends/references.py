"""What a function refers to: globals, closures, constants among them, names of the language."""

from __future__ import annotations

import ast
import copy
import dataclasses
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from msops._base.dtypes import DType
from msops._loops.frontends.source import Source, read_source


def global_names(code: types.CodeType) -> Iterator[str]:
    """Yields the names that code looks up outside itself, attributes included, nested code too."""
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from global_names(const)


def references(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yields the global names and closure variables of a function that have a value, with it."""
    for name in global_names(function.__code__):
        if name in function.__globals__:
            yield name, function.__globals__[name]
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in cells:
        if is_filled(cell):
            yield name, cell.cell_contents


def reachable(function: types.FunctionType) -> Iterator[types.FunctionType]:
    """Yields a function and all functions it refers to, directly or not, each once."""
    seen = {function}
    waiting = [function]
    while waiting:
        current = waiting.pop()
        yield current
        for _, value in references(current):
            if isinstance(value, types.FunctionType) and value not in seen:
                seen.add(value)
                waiting.append(value)


def is_filled(cell: types.CellType) -> bool:
    """Returns whether a closure variable has a value yet."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def as_constant(value: Any) -> Any:
    """Returns a constant as plain Python values; None for what is none.

    Constants are numbers, numpy's too, strings, dtypes (by their names), and tuples of them.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        parts = tuple(map(as_constant, value))
        return None if None in parts else parts
    return _dtype_name(value)


def _dtype_name(value: Any) -> str | None:
    """Returns the name of a dtype as numpy, JAX and MindSpore write it: ``np.float32``."""
    if isinstance(value, type) and issubclass(value, np.generic):
        return np.dtype(value).name
    if isinstance(value, (np.dtype, DType)):
        return value.name
    # jnp.float32 is an object with the dtype.
    dtype = getattr(value, "dtype", None)
    return dtype.name if callable(value) and isinstance(dtype, np.dtype) else None


MODULE = "msops.lang"


def read_with_own_names(function: types.FunctionType, who: str) -> Source:
    """Returns the source of a function, in which the language's functions have its names.

    ``lang.exp(x)``, or ``e(x)`` after ``from msops.lang import exp as e``, becomes ``exp(x)``:
    after that, what a kernel is does not depend on how its file names things.

    See `source.read_source`.
    """
    source = read_source(function, who)
    return dataclasses.replace(source, definition=_with_own_names(function, source.definition))


def _with_own_names(function: types.FunctionType, definition: ast.FunctionDef) -> ast.FunctionDef:
    language = sys.modules.get(MODULE)
    if language is None:
        return definition
    seen = dict(references(function))
    if not any(_is_imported(seen.get(name), language) for name in _names(definition)):
        return definition
    renamed: ast.FunctionDef = _Renaming(seen, language, definition).visit(
        copy.deepcopy(definition)
    )
    return renamed


def assigned_names(tree: ast.AST) -> set[str]:
    """Returns the names that a tree assigns, which Python takes as local in a function."""
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _names(definition: ast.FunctionDef) -> set[str]:
    return {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}


def _is_imported(value: Any, language: types.ModuleType) -> bool:
    """Returns whether a value is `msops.lang`, a package it is in, or something of it."""
    if isinstance(value, types.ModuleType):
        return value.__name__ == MODULE or MODULE.startswith(f"{value.__name__}.")
    return _own_name(value, language) is not None


def _own_name(value: Any, language: types.ModuleType) -> str | None:
    if not callable(value):
        return None
    return next((name for name in language.__all__ if getattr(language, name) is value), None)


class _Renaming(ast.NodeTransformer):
    """Writes the language's own names."""

    def __init__(
        self, seen: dict[str, Any], language: types.ModuleType, definition: ast.FunctionDef
    ):
        arguments = definition.args
        own = {argument.arg for argument in (*arguments.posonlyargs, *arguments.args)}
        own |= assigned_names(definition)
        self._seen = {name: value for name, value in seen.items() if name not in own}
        self._language = language

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if self._module(node.value) == MODULE and node.attr in self._language.__all__:
            return ast.copy_location(ast.Name(node.attr, ast.Load()), node)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.Name:
        # What the language calls by this name has it already.
        if node.id in self._language.__all__:
            return node
        name = _own_name(self._seen.get(node.id), self._language)
        return node if name is None else ast.copy_location(ast.Name(name, node.ctx), node)

    def _module(self, node: ast.expr) -> str:
        """Returns the name of the module that an expression is; "" if it is none."""
        if isinstance(node, ast.Attribute):
            outer = self._module(node.value)
            inner = getattr(sys.modules.get(outer), node.attr, None) if outer else None
            return inner.__name__ if isinstance(inner, types.ModuleType) else ""
        value = self._seen.get(node.id) if isinstance(node, ast.Name) else None
        return value.__name__ if isinstance(value, types.ModuleType) else ""
