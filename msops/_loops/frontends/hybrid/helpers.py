"""A helper function of a kernel: found by the name it is called by, checked and simplified."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msops._loops.frontends.hybrid.language import INTRINSICS
from msops._loops.frontends.hybrid.statement_forms import parameter_names
from msops._loops.frontends.references import as_constant, references
from msops._loops.frontends.source import Source


@dataclass(frozen=True, eq=False)
class Helper:
    """A helper function.

    Attributes:
      source: its text.
      outside: what it sees outside itself, by name.
      defaults: values of parameters that need not be given.
      body: its statements, without jumps.
      value: what it returns; None for nothing.
      has_effect: it assigns to elements of a tensor.
    """

    source: Source
    outside: Mapping[str, Any]
    defaults: Mapping[str, Any]
    body: list[ast.stmt]
    value: ast.expr | None
    has_effect: bool
    locals: set[str] = field(init=False)
    stored: set[str] = field(init=False)
    uses: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        parts = [*self.body, *([self.value] if self.value else [])]
        names = [n for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)]
        stored = {name.id for name in names if isinstance(name.ctx, ast.Store)}
        parameters = set(parameter_names(self.source.definition))
        uses: dict[str, int] = {}
        for name in names:
            uses[name.id] = uses.get(name.id, 0) + 1
        object.__setattr__(self, "locals", stored | parameters)
        object.__setattr__(self, "stored", stored)
        object.__setattr__(self, "uses", uses)

    @property
    def is_expression(self) -> bool:
        """Whether all it does is compute its value."""
        return not self.body


def called_helper(node: ast.expr, outside: Mapping[str, Any]) -> types.FunctionType | None:
    """Returns the helper that a call calls, if it does.

    The names of the language come first, as they do when a kernel runs as Python.
    """
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return None
    found = None if node.func.id in INTRINSICS else outside.get(node.func.id)
    return found if isinstance(found, types.FunctionType) else None


def constant_of(node: ast.AST, outside: Mapping[str, Any]) -> Any:
    """Returns the constant outside a function that a name or a dotted name is; None for others."""
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
        return None
    value = outside.get(node.id)
    for name in reversed(path):
        value = getattr(value, name, None)
    return as_constant(value)


def outside_of(function: types.FunctionType) -> dict[str, Any]:
    """Returns what a function sees outside itself, by name."""
    code = function.__code__
    own = {*code.co_varnames, *code.co_cellvars}
    return {name: value for name, value in references(function) if name not in own}


def defaults_of(function: types.FunctionType) -> dict[str, Any]:
    """Returns the default values of a function's parameters."""
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not each.empty}


def assigns_elements(body: list[ast.stmt]) -> bool:
    """Returns whether statements assign to elements, themselves or through a helper."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    return any(
        isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) for node in nodes
    ) or any(isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) for node in nodes)
