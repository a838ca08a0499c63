"""Syntax trees that the front end makes itself, each part with the location of the author's."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from msops._loops.frontends.hybrid.language import INTRINSICS
from msops._loops.frontends.source import Source

N = TypeVar("N", bound=ast.AST)

Replace = Callable[[ast.AST], "ast.AST | None"]
"""Returns what replaces a node; None where it is copied."""


class EarlyName(ast.stmt):
    """Names that live from here on, though their first assignment may be inside a loop."""

    _fields = ("targets",)
    targets: list[ast.Name]

    def __init__(self, targets: list[ast.Name]):
        super().__init__()
        self.targets = targets


class OwnNames(ast.stmt):
    """The names of a helper's call, none of which has a value yet, not even of an earlier call."""

    _fields = ("names",)
    names: list[str]

    def __init__(self, names: list[str]):
        super().__init__()
        self.names = names


def copied(
    node: N,
    replace: Replace | None = None,
    kinds: tuple[type[ast.AST], ...] = (),
    source: Source | None = None,
) -> N:
    """Returns a copy of a syntax tree.

    Args:
      node: the tree.
      replace: returns what some of its nodes become.
      kinds: the classes of the nodes that it is called with.
      source: where its text is, if that is not the kernel's own.
    """
    new = replace(node) if replace is not None and isinstance(node, kinds) else None
    if new is None:
        fields = ast.iter_fields(node)
        new = type(node)(**{name: _field(value, replace, kinds, source) for name, value in fields})
        ast.copy_location(new, node)
        _set_origin(new, getattr(node, "origin", source))
    return new  # type: ignore[return-value]


def _field(
    value: Any,
    replace: Replace | None,
    kinds: tuple[type[ast.AST], ...],
    source: Source | None,
) -> Any:
    if isinstance(value, list):
        return [_field(each, replace, kinds, source) for each in value]
    return copied(value, replace, kinds, source) if isinstance(value, ast.AST) else value


def _set_origin(node: ast.AST, origin: Source | None) -> None:
    if origin is not None:
        node.origin = origin  # type: ignore[attr-defined]


def placed(node: N, like: ast.AST) -> N:
    """Returns a new node; the parts of it that have no location get that of the author's node."""
    for part in ast.walk(node):
        if isinstance(part, (ast.expr, ast.stmt)) and not hasattr(part, "lineno"):
            ast.copy_location(part, like)
            _set_origin(part, getattr(like, "origin", None))
    return node


def load(name: str) -> ast.Name:
    """Returns a name that is read."""
    return ast.Name(name, ast.Load())


def store(name: str, value: ast.expr, like: ast.AST) -> ast.Assign:
    """Returns ``name = value``."""
    return placed(ast.Assign([ast.Name(name, ast.Store())], value), like)


def negated(parts: Iterable[ast.expr], like: ast.AST) -> ast.expr:
    """Returns the condition that none of some conditions holds."""
    found = list(parts)
    whole = found[0] if len(found) == 1 else ast.BoolOp(ast.Or(), found)
    return placed(ast.UnaryOp(ast.Not(), whole), like)


def stored_names(body: Iterable[ast.AST]) -> set[str]:
    """Returns the names that statements assign, whole or in part, or pass to a procedure."""
    found = set()
    for node in (part for statement in body for part in ast.walk(statement)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                found.add(name)
            case ast.Expr(value=ast.Call() as call) | ast.Assign(value=ast.Call() as call):
                # A helper may assign to elements of what it is given.
                if ast.unparse(call.func) not in INTRINSICS:
                    given = [*call.args, *(keyword.value for keyword in call.keywords)]
                    found |= {arg.id for arg in given if isinstance(arg, ast.Name)}
    return found


def read_names(node: ast.AST) -> set[str]:
    """Returns the names in a tree, those of functions too."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
