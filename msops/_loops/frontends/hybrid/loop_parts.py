"""What all loops of a translation are made of."""

from __future__ import annotations

import ast
from collections.abc import Callable

from msops._loops.frontends.hybrid.language import LOOP_HINTS
from msops._loops.frontends.hybrid.translation import Translation
from msops._loops.ir.nodes import Expr, For, Stmt

Body = Callable[[], tuple[Stmt, ...]]
"""Translates the body of the loop."""


def forget_names(t: Translation, node: ast.For) -> None:
    """Makes the names of a body unbound, for another translation of it."""
    path = t.names.blocks[id(node.body)]
    for symbol in [inner for inner in t.values if t.home(inner)[: len(path)] == path]:
        del t.values[symbol]


def for_loop(
    t: Translation,
    node: ast.For,
    var: str,
    begin: Expr,
    end: Expr,
    body: tuple[Stmt, ...],
    kind: str,
) -> For:
    """Returns a loop of the kind that the author wrote."""
    location = t.report.source.location(node)
    return For(var, begin, end, body, hint=LOOP_HINTS[kind], location=location)


def nonempty(statement: For) -> tuple[Stmt, ...]:
    """Returns a loop, or nothing if its body is nothing."""
    return (statement,) if statement.body else ()


def target_of(node: ast.For) -> ast.Name:
    """Returns the name of the variable."""
    assert isinstance(node.target, ast.Name)
    return node.target
