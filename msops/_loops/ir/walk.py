"""Visiting and rewriting the loop IR.

What only reads gets a list, made here in one go: it is quicker than a generator for each node, and
a reader who follows a call stays in one file.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self, TypeVar, overload

from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Cast,
    Expr,
    For,
    FunctionCall,
    If,
    Kernel,
    Load,
    Local,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
)

A = TypeVar("A", Load, Store)
T = TypeVar("T", bound=Stmt)
N = TypeVar("N", bound=Expr | Stmt | Buffer | Kernel)


class ChangeAccess(Protocol):
    """Returns a load for a load, and a store for a store."""

    def __call__(self, access: A, /) -> A: ...


def operands(expr: Expr) -> tuple[Expr, ...]:
    """Returns the direct operands of an expression, in the order of evaluation."""
    match expr:
        case Load(indices=indices):
            return indices
        case Unary(operand=operand) | Cast(operand=operand):
            return (operand,)
        case Binary(left=left, right=right):
            return (left, right)
        case FunctionCall(args=args):
            return args
        case Select(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
    return ()


def expressions(expr: Expr) -> list[Expr]:
    """Returns an expression and everything in it, outermost first."""
    found = [expr]
    for operand in operands(expr):
        found += expressions(operand)
    return found


def loads(expr: Expr) -> list[Load]:
    """Returns the loads in an expression, those in indices too."""
    return [part for part in expressions(expr) if isinstance(part, Load)]


def variables(expr: Expr) -> set[str]:
    """Returns the names of the loop variables in an expression."""
    return {part.name for part in expressions(expr) if isinstance(part, Var)}


def own_expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """Returns the expressions of a statement itself, without those of its bodies."""
    match stmt:
        case Store(indices=indices, value=value):
            return (*indices, value)
        case For(begin=begin, end=end):
            return (begin, end)
        case If(condition=condition):
            return (condition,)
    return ()


def bodies(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """Returns the bodies of a statement."""
    match stmt:
        case For(body=body) | Local(body=body):
            return (body,)
        case If(then=then, otherwise=otherwise):
            return (then, otherwise)
    return ()


def statements(body: tuple[Stmt, ...]) -> list[Stmt]:
    """Returns all statements, each before those inside it."""
    found: list[Stmt] = []
    for stmt in body:
        found.append(stmt)
        for inner in bodies(stmt):
            found += statements(inner)
    return found


def accesses_of(stmt: Stmt) -> list[Load | Store]:
    """Returns the loads of a statement itself, and the statement if it is a store."""
    found: list[Load | Store] = [load for e in own_expressions(stmt) for load in loads(e)]
    return [*found, stmt] if isinstance(stmt, Store) else found


def accesses_in(body: tuple[Stmt, ...]) -> list[Load | Store]:
    """Returns the loads and stores of all statements."""
    return [access for stmt in statements(body) for access in accesses_of(stmt)]


def loads_in(body: tuple[Stmt, ...]) -> list[Load]:
    """Returns the loads of all statements."""
    return [access for access in accesses_in(body) if isinstance(access, Load)]


def stored_in(body: tuple[Stmt, ...]) -> set[str]:
    """Returns the buffers that statements store to."""
    return {stmt.buffer for stmt in statements(body) if isinstance(stmt, Store)}


class Scoped(Protocol):
    """What a walk carries along, such as `analysis.scope.Scope`."""

    def inside(self, stmt: Stmt) -> tuple[Self, ...]:
        """Returns what holds in each body of a statement."""
        ...


class Guarded(Scoped, Protocol):
    """A scope that conditions narrow, such as `analysis.polyhedral.domain.Domain`."""

    def where(self, condition: Expr, negated: bool = False) -> Self:
        """Returns the scope where a condition holds, or does not."""
        ...


S = TypeVar("S", bound=Scoped)
G = TypeVar("G", bound=Guarded)


def visit(body: tuple[Stmt, ...], scope: S) -> list[tuple[Stmt, S]]:
    """Returns all statements with the scope of each, a statement before those inside it.

    Args:
      body: the statements.
      scope: that of the body.
    """
    found: list[tuple[Stmt, S]] = []
    for stmt in body:
        found.append((stmt, scope))
        if inner := bodies(stmt):
            for part, inside in zip(inner, scope.inside(stmt), strict=True):
                found += visit(part, inside)
    return found


def visit_accesses(stmt: Stmt, scope: G) -> list[tuple[Load | Store, G]]:
    """Returns the accesses of a statement itself, in order, each with where it is evaluated."""
    found: list[tuple[Load | Store, G]] = []
    for expr in own_expressions(stmt):
        found += _visit_loads(expr, scope)
    return [*found, (stmt, scope)] if isinstance(stmt, Store) else found


def _visit_loads(expr: Expr, scope: G) -> list[tuple[Load, G]]:
    if not loads(expr):
        return []
    parts = [(operand, scope) for operand in operands(expr)]
    match expr:
        case Select(condition=condition, then=then, otherwise=otherwise):
            chosen, rest = scope.where(condition), scope.where(condition, True)
            parts = [(condition, scope), (then, chosen), (otherwise, rest)]
        case Binary(op=("land" | "lor") as op, left=left, right=right):
            parts = [(left, scope), (right, scope.where(left, op == "lor"))]
    found = [pair for part, inner in parts for pair in _visit_loads(part, inner)]
    return [*found, (expr, scope)] if isinstance(expr, Load) else found


# Rewriting. What nothing changes stays the same object, so that a pass that finds nothing to do
# returns its kernel, and what is known of that kernel stays known.


def with_parts(node: N, **parts: Any) -> N:
    """Returns a node with other parts, or the node itself if they are the ones that it has."""
    for name, part in parts.items():
        old = getattr(node, name)
        if part is not old and not (
            isinstance(part, tuple) and len(part) == len(old) and all(map(operator.is_, part, old))
        ):
            return dataclasses.replace(node, **parts)
    return node


def map_operands(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Returns the expression with `change` applied to its direct operands."""
    match expr:
        case Load(indices=indices):
            return with_parts(expr, indices=tuple(map(change, indices)))
        case Unary(operand=operand) | Cast(operand=operand):
            return with_parts(expr, operand=change(operand))
        case Binary(left=left, right=right):
            return with_parts(expr, left=change(left), right=change(right))
        case FunctionCall(args=args):
            return with_parts(expr, args=tuple(map(change, args)))
        case Select(condition=condition, then=then, otherwise=otherwise):
            return with_parts(
                expr, condition=change(condition), then=change(then), otherwise=change(otherwise)
            )
    return expr


def rewrite(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Returns the expression with `change` applied to every part, innermost first."""
    return change(map_operands(expr, lambda part: rewrite(part, change)))


def map_expressions(stmt: Stmt, change: Callable[[Expr], Expr]) -> Stmt:
    """Returns the statement with `change` applied to its own expressions, bodies untouched."""
    match stmt:
        case Store(indices=indices, value=value):
            return with_parts(stmt, indices=tuple(map(change, indices)), value=change(value))
        case For(begin=begin, end=end):
            return with_parts(stmt, begin=change(begin), end=change(end))
        case If(condition=condition):
            return with_parts(stmt, condition=change(condition))
    return stmt


def map_bodies(stmt: Stmt, change: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]) -> Stmt:
    """Returns the statement with `change` applied to its bodies."""
    match stmt:
        case For(body=body) | Local(body=body):
            return with_parts(stmt, body=change(body))
        case If(then=then, otherwise=otherwise):
            return with_parts(stmt, then=change(then), otherwise=change(otherwise))
    return stmt


def map_all(body: tuple[Stmt, ...], change: Callable[[Expr], Expr]) -> tuple[Stmt, ...]:
    """Returns the body with `change` applied to every expression of every statement in it."""
    return tuple(
        map_bodies(map_expressions(stmt, change), lambda inner: map_all(inner, change))
        for stmt in body
    )


def map_bodies_within(
    stmt: Stmt, scope: S, change: Callable[[tuple[Stmt, ...], S], tuple[Stmt, ...]]
) -> Stmt:
    """Returns the statement with `change` applied to its bodies and the scope of each."""
    insides = iter(scope.inside(stmt))
    return map_bodies(stmt, lambda body: change(body, next(insides)))


@overload
def rewrite_statements(
    body: tuple[Stmt, ...], change: Callable[[T], tuple[Stmt, ...]], kind: type[T], /
) -> tuple[Stmt, ...]: ...


@overload
def rewrite_statements(
    body: tuple[Stmt, ...], change: Callable[[T], tuple[Stmt, ...]], /, *kinds: type[Stmt]
) -> tuple[Stmt, ...]: ...


def rewrite_statements(
    body: tuple[Stmt, ...], change: Callable[[Any], tuple[Stmt, ...]], /, *kinds: type[Any]
) -> tuple[Stmt, ...]:
    """Returns the body with statements replaced by what `change` returns, innermost first.

    Args:
      body: the statements.
      change: is called with each statement of some kinds; the others stay.
      kinds: their classes.
    """
    found: list[Stmt] = []
    for old in body:
        stmt = map_bodies(old, lambda inner: rewrite_statements(inner, change, *kinds))
        if isinstance(stmt, kinds):
            found += change(stmt)
        else:
            found.append(stmt)
    return tuple(found)


def rewrite_loops(
    body: tuple[Stmt, ...], scope: S, change: Callable[[For, S], tuple[Stmt, ...] | None]
) -> tuple[Stmt, ...]:
    """Returns the body with loops replaced, outermost first.

    Args:
      body: the statements.
      scope: that of the body.
      change: is called with each loop and the scope around it. It returns what replaces the loop;
        None leaves it, and goes on with the loops inside.
    """

    def changed(stmt: Stmt) -> tuple[Stmt, ...]:
        new = change(stmt, scope) if isinstance(stmt, For) else None
        if new is not None:
            return new
        if not any(isinstance(part, For) for inner in bodies(stmt) for part in statements(inner)):
            return (stmt,)
        return (
            map_bodies_within(
                stmt, scope, lambda part, inside: rewrite_loops(part, inside, change)
            ),
        )

    return tuple(new for stmt in body for new in changed(stmt))


def map_accesses(body: tuple[Stmt, ...], change: ChangeAccess) -> tuple[Stmt, ...]:
    """Returns the body with `change` applied to every load and store, inner loads first."""

    def part(expr: Expr) -> Expr:
        return change(expr) if isinstance(expr, Load) else expr

    loads_changed = map_all(body, lambda expr: rewrite(expr, part))
    return rewrite_statements(loads_changed, lambda store: (change(store),), Store)


def rewrite_all(body: tuple[Stmt, ...], change: Callable[[Expr], Expr]) -> tuple[Stmt, ...]:
    """Returns the body with `change` applied to every part of every expression in it."""
    return map_all(body, lambda expr: rewrite(expr, change))


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Returns the expression with loop variables replaced."""
    return rewrite(
        expr, lambda part: values.get(part.name, part) if isinstance(part, Var) else part
    )


def with_body(kernel: Kernel, body: tuple[Stmt, ...]) -> Kernel:
    """Returns the kernel with another body, or the kernel itself if that is the one it has."""
    return with_parts(kernel, body=body)
