"""Names of the language that a kernel's file imports from `msops.lang`, as the language's own.

``lang.exp(x)``, or ``e(x)`` after ``from msops.lang import exp as e``, becomes ``exp(x)``: after
that, what a kernel is does not depend on how its file names things.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import sys
import types
from typing import Any

from msops._loops.frontends.references import references
from msops._loops.frontends.source import Source, read_source

MODULE = "msops.lang"


def read_with_own_names(function: types.FunctionType, who: str) -> Source:
    """Returns the source of a function, in which the language's functions have its names.

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
