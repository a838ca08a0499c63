"""Simplifies a kernel: constants, indices, conditions and loops that are decided.

serial i in 0 .. 4 {                    serial i in 0 .. 4 {
  serial j in 0 .. 1 {                    b[i] = a[i]
    if (i < 4) {                 ->     }
      b[(i * 4 + j) // 4] = a[i]
    }
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msops._loops.ir.nodes import Binary, Const, For, If, Kernel, Load, Local, Stmt, Store, Unary
from msops._loops.ir.ranges import Ranges, loop_range
from msops._loops.ir.walk import (
    bodies,
    is_loaded,
    loads,
    map_expressions,
    rewrite_statements,
    with_body,
    with_parts,
    with_value,
)
from msops._loops.passes.simplify_expressions import difference, simplified, where


def simplify(kernel: Kernel) -> Kernel:
    """Returns the kernel with simple expressions, and without what is never or only once run.

    Locals that nothing reads disappear with what is stored to them.
    """
    return with_body(kernel, simplified_body(kernel.body, {}))


def simplified_body(body: tuple[Stmt, ...], ranges: Ranges) -> tuple[Stmt, ...]:
    """Returns statements simplified, from the ranges of the loops around them."""
    parts = [part for stmt in body for part in _statement(stmt, ranges)]
    before = (None, *parts)
    return tuple(
        part for last, part in zip(before, parts, strict=False) if not _repeats(part, last)
    )


def _repeats(stmt: Stmt, last: Stmt | None) -> bool:
    """Returns whether a statement takes the larger or smaller of one value twice.

    Windows begin with their first element, and then go over all.
    """
    match last, stmt:
        case (
            Store(name, at, first),
            Store(value=Binary("min" | "max", Load(buffer, indices), value)) as store,
        ):
            is_update = (name, at) == (buffer, indices) == (store.buffer, store.indices)
            return is_update and value == first and not is_loaded(name, (last,))
    return False


def _statement(stmt: Stmt, ranges: Ranges) -> tuple[Stmt, ...]:
    stmt = map_expressions(stmt, partial(simplified, ranges=ranges))
    match stmt:
        case For():
            return _loop(stmt, ranges)
        case If():
            return _if(stmt, ranges)
        case Local():
            return _local(with_parts(stmt, body=simplified_body(stmt.body, ranges)))
    return (stmt,)


def _loop(loop: For, ranges: Ranges) -> tuple[Stmt, ...]:
    count = difference(loop.end, loop.begin, ranges)
    if count is not None and count[1] <= 0:
        return ()
    if count == (1, 1) and not loads(loop.begin):
        once = with_value(loop.body, loop.var, loop.begin)
        return simplified_body(once, ranges)
    low, high = loop_range(loop, ranges)
    if low > high:
        return ()
    body = simplified_body(loop.body, {**ranges, loop.var: (low, high)})
    return (with_parts(loop, body=body),) if body else ()


def _if(stmt: If, ranges: Ranges) -> tuple[Stmt, ...]:
    condition = stmt.condition
    if isinstance(condition, Const):
        return simplified_body(stmt.then if condition.value else stmt.otherwise, ranges)
    then = simplified_body(stmt.then, where(condition, ranges))
    otherwise = simplified_body(stmt.otherwise, where(condition, ranges, holds=False))
    if not then and not otherwise:
        return ()
    if not then:
        condition = simplified(Unary("not", condition, "bool"), ranges)
        then, otherwise = otherwise, ()
    return (with_parts(stmt, condition=condition, then=then, otherwise=otherwise),)


def _local(local: Local) -> tuple[Stmt, ...]:
    name = local.buffer.name
    if is_loaded(name, local.body):
        return (local,)
    return without_stores(local.body, lambda store: store.buffer == name)


def without_stores(body: tuple[Stmt, ...], is_gone: Callable[[Store], bool]) -> tuple[Stmt, ...]:
    """Returns statements without some stores, and without what is empty then."""

    def kept(stmt: Stmt) -> tuple[Stmt, ...]:
        has_effect = not is_gone(stmt) if isinstance(stmt, Store) else any(bodies(stmt))
        return (stmt,) if has_effect else ()

    return rewrite_statements(body, kept, Store, For, If, Local)
