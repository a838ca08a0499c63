"""Simplifies a kernel: constants, indices, conditions and loops that are decided.

serial i in 0 .. 4 {                    serial i in 0 .. 4 {
  serial j in 0 .. 1 {                    b[i] = a[i]
    if (i < 4) {                 ->     }
      b[(i * 4 + j) // 4] = a[i]
    }
"""

from __future__ import annotations

import dataclasses

from msops._loops.analysis.ranges import Ranges, loop_range
from msops._loops.ir.nodes import Const, Expr, For, If, Kernel, Local, Stmt, Store, Unary
from msops._loops.ir.walk import (
    loads,
    map_bodies,
    map_expressions,
    own_expressions,
    statements,
    substitute,
    with_body,
)
from msops._loops.passes.simplify_expressions import difference, narrowed, simplified


def simplify(kernel: Kernel) -> Kernel:
    """Returns the kernel with simple expressions, and without what is never or only once run.

    Locals that nothing reads disappear with what is stored to them.
    """
    return with_body(kernel, _body(kernel.body, {}))


def _body(body: tuple[Stmt, ...], ranges: Ranges) -> tuple[Stmt, ...]:
    return tuple(part for stmt in body for part in _statement(stmt, ranges))


def _statement(stmt: Stmt, ranges: Ranges) -> tuple[Stmt, ...]:
    stmt = map_expressions(stmt, lambda expr: simplified(expr, ranges))
    match stmt:
        case For():
            return _loop(stmt, ranges)
        case If():
            return _if(stmt, ranges)
        case Local():
            return _local(dataclasses.replace(stmt, body=_body(stmt.body, ranges)))
    return (stmt,)


def _loop(loop: For, ranges: Ranges) -> tuple[Stmt, ...]:
    count = difference(loop.end, loop.begin, ranges)
    if count is not None and count[1] <= 0:
        return ()
    if count == (1, 1) and not any(True for _ in loads(loop.begin)):
        once = _substituted(loop.body, loop.var, loop.begin)
        return _body(once, ranges)
    low, high = loop_range(loop, ranges)
    if low > high:
        return ()
    body = _body(loop.body, {**ranges, loop.var: (low, high)})
    return (dataclasses.replace(loop, body=body),) if body else ()


def _if(stmt: If, ranges: Ranges) -> tuple[Stmt, ...]:
    condition = stmt.condition
    if isinstance(condition, Const):
        return _body(stmt.then if condition.value else stmt.otherwise, ranges)
    then = _body(stmt.then, narrowed(ranges, condition))
    otherwise = _body(stmt.otherwise, narrowed(ranges, condition, negated=True))
    if not then and not otherwise:
        return ()
    if not then:
        condition = simplified(Unary("not", condition, "bool"), ranges)
        then, otherwise = otherwise, ()
    return (dataclasses.replace(stmt, condition=condition, then=then, otherwise=otherwise),)


def _local(local: Local) -> tuple[Stmt, ...]:
    name = local.buffer.name
    if any(
        load.buffer == name
        for stmt in statements(local.body)
        for expr in own_expressions(stmt)
        for load in loads(expr)
    ):
        return (local,)
    return _without_stores(local.body, name)


def _without_stores(body: tuple[Stmt, ...], name: str) -> tuple[Stmt, ...]:
    """Returns statements without the stores to a buffer, and without what is empty then."""
    kept: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Store):
            kept += [stmt] * (stmt.buffer != name)
            continue
        stmt = map_bodies(stmt, lambda inner: _without_stores(inner, name))
        is_empty = isinstance(stmt, If) and not stmt.then and not stmt.otherwise
        if not is_empty and not (isinstance(stmt, For | Local) and not stmt.body):
            kept.append(stmt)
    return tuple(kept)


def _substituted(body: tuple[Stmt, ...], var: str, value: Expr) -> tuple[Stmt, ...]:
    values = {var: value}
    return tuple(
        map_bodies(
            map_expressions(stmt, lambda expr: substitute(expr, values)),
            lambda inner: _substituted(inner, var, value),
        )
        for stmt in body
    )
