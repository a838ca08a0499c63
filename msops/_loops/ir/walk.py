"""Visiting and rewriting the loop IR."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping

from msops._loops.ir.nodes import (
    Binary,
    Call,
    Cast,
    Expr,
    For,
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


def operands(expr: Expr) -> tuple[Expr, ...]:
    """Returns the direct operands of an expression, in the order of evaluation."""
    match expr:
        case Load(indices=indices):
            return indices
        case Unary(operand=operand) | Cast(operand=operand):
            return (operand,)
        case Binary(left=left, right=right):
            return (left, right)
        case Call(args=args):
            return args
        case Select(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
    return ()


def expressions(expr: Expr) -> Iterator[Expr]:
    """Yields an expression and everything in it, outermost first."""
    yield expr
    for operand in operands(expr):
        yield from expressions(operand)


def loads(expr: Expr) -> Iterator[Load]:
    """Yields the loads in an expression, those in indices too."""
    return (part for part in expressions(expr) if isinstance(part, Load))


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


def statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Yields all statements, each before those inside it."""
    for stmt in body:
        yield stmt
        for inner in bodies(stmt):
            yield from statements(inner)


def map_operands(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Returns the expression with `change` applied to its direct operands."""
    match expr:
        case Load(indices=indices):
            return dataclasses.replace(expr, indices=tuple(map(change, indices)))
        case Unary(operand=operand) | Cast(operand=operand):
            return dataclasses.replace(expr, operand=change(operand))
        case Binary(left=left, right=right):
            return dataclasses.replace(expr, left=change(left), right=change(right))
        case Call(args=args):
            return dataclasses.replace(expr, args=tuple(map(change, args)))
        case Select(condition=condition, then=then, otherwise=otherwise):
            return dataclasses.replace(
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
            return dataclasses.replace(
                stmt, indices=tuple(map(change, indices)), value=change(value)
            )
        case For(begin=begin, end=end):
            return dataclasses.replace(stmt, begin=change(begin), end=change(end))
        case If(condition=condition):
            return dataclasses.replace(stmt, condition=change(condition))
    return stmt


def map_bodies(stmt: Stmt, change: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]) -> Stmt:
    """Returns the statement with `change` applied to its bodies."""
    match stmt:
        case For(body=body) | Local(body=body):
            return dataclasses.replace(stmt, body=change(body))
        case If(then=then, otherwise=otherwise):
            return dataclasses.replace(stmt, then=change(then), otherwise=change(otherwise))
    return stmt


def map_all(body: tuple[Stmt, ...], change: Callable[[Expr], Expr]) -> tuple[Stmt, ...]:
    """Returns the body with `change` applied to every expression of every statement in it."""
    return tuple(
        map_bodies(map_expressions(stmt, change), lambda inner: map_all(inner, change))
        for stmt in body
    )


def rewrite_all(body: tuple[Stmt, ...], change: Callable[[Expr], Expr]) -> tuple[Stmt, ...]:
    """Returns the body with `change` applied to every part of every expression in it."""
    return map_all(body, lambda expr: rewrite(expr, change))


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Returns the expression with loop variables replaced."""
    return rewrite(
        expr, lambda part: values.get(part.name, part) if isinstance(part, Var) else part
    )


def with_body(kernel: Kernel, body: tuple[Stmt, ...]) -> Kernel:
    """Returns the kernel with another body."""
    return dataclasses.replace(kernel, body=body)
