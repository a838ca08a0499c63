"""Scalars that are read above their first assignment: their type is further down in the text.

    serial i in 0 .. 8 {
      if i > 0 { y[i] = x[i] - before[] }     <- of which type?
      before[] = x[i]                         <- of that of x
    }

A first translation leaves out the statements that it cannot translate yet, and finds the types of
what the others assign; the next one knows these. It ends when nothing is left out, or when a
translation has found no new type: then each value of a scalar is made of itself.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from msops._loops.frontends.hybrid.kept import unbound
from msops._loops.frontends.hybrid.names import ScopedName
from msops._loops.frontends.hybrid.syntax import stored_names
from msops._loops.frontends.hybrid.translation import Again, Translation
from msops._loops.frontends.hybrid.typing import Retype
from msops._loops.frontends.hybrid.values import Value, WholeTensor
from msops._loops.ir.nodes import Expr, Var
from msops.errors import BuildError


class Untyped(Exception):
    """A scalar is read whose type is not known yet."""

    def __init__(self, symbol: ScopedName, node: ast.Name):
        super().__init__()
        self.symbol = symbol
        self.node = node


def read(t: Translation, node: ast.Name) -> Value:
    """Returns what a name is bound to where it is read."""
    symbol = t.symbol(node)
    if symbol not in t.values:
        if symbol.kind != "scalar":
            raise _not_assigned(t, node)
        found = t.known.retyped.get(symbol) or t.known.early.get(symbol)
        if found is None:
            raise Untyped(symbol, node)
        t.declare_scalar(symbol, found.dtype, not found.is_final, node)
    return t.values[symbol]


def typed(
    t: Translation, nodes: list[ast.expr], translate: Callable[[Translation, ast.expr], Expr]
) -> list[Expr]:
    """Returns expressions of one type, but for those whose type is not known yet."""
    found, untyped = [], None
    for node in nodes:
        try:
            found.append(translate(t, node))
        except Untyped as error:
            untyped = error
            t.unread.setdefault(error.symbol, error.node)
    if untyped and not found:
        raise untyped
    return found


def attempt(
    t: Translation,
    node: ast.stmt,
    translate: Callable[[Translation, ast.stmt], None],
    block: Callable[[Translation, list[ast.stmt]], object],
) -> None:
    """Translates a statement, or leaves it out if it reads a scalar whose type is not known yet.

    Args:
      t: the translation.
      node: the statement.
      translate: translates it.
      block: translates a body of it, whose assignments may have the type.
    """
    try:
        translate(t, node)
        return
    except Untyped as error:
        t.unread.setdefault(error.symbol, error.node)
    except BuildError as error:
        # What was left out may have made it right.
        if not t.unread:
            raise
        t.refused.append(error)
    t.left_out |= stored_names([node])
    if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
        t.values.setdefault(t.names.symbols[node.target], Var(t.fresh(node.target.id)))
    if isinstance(node, ast.If | ast.For):
        block(t, node.body)
        block(t, node.orelse)


def check_types(t: Translation) -> None:
    """Ends a translation that left something out.

    Raises:
      Again: it has found types of scalars that it could not read.
      BuildError: it has found no more than the one before.
    """
    if not t.unread:
        return
    new = set(t.unread) - set(t.known.kept)
    types = {
        symbol: Retype(frozenset([symbol]), value.buffer.dtype, is_final)
        for symbol in t.unread
        if isinstance(value := t.values.get(symbol), WholeTensor)
        for is_final in [value.buffer.name not in t.typing.untyped]
    }
    # A constant takes the type of what it meets, which may be one of the others.
    final = {symbol: found for symbol, found in types.items() if found.is_final}
    if new or types:
        t.known.keep(t.names, new)
        t.known.early |= final or types
        raise Again
    if t.refused:
        raise t.refused[0]
    symbol, node = next(iter(t.unread.items()))
    if symbol.name in t.left_out:
        raise unbound(t, symbol, t.report.source.location(node))
    raise _not_assigned(t, node)


def _not_assigned(t: Translation, node: ast.Name) -> BuildError:
    return t.report.build_error(
        node,
        f"'{node.id}' is assigned only in a branch that is not taken here",
        "Assign it before.",
    )
