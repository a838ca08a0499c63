"""What is around the parallel nests of a kernel's body moves into them, or out of the way.

    local t: float32[8] {                         buffer t: float32[8]
      if n[0] > 0 {                               parallel i in 0 .. 8 {
        parallel i in 0 .. 8 { t[i] = ... }   ->    if n[0] > 0 { t[i] = ... }
      }                                           }
    }

The nests are then in the body itself, so that each can be a launch.
"""

from __future__ import annotations

import dataclasses

from msops._loops.ir.nodes import Buffer, Expr, For, If, Kernel, Local, Stmt, Store, Unary
from msops._loops.ir.walk import (
    Scope,
    read_by,
    rewrite_inner_loops,
    rewrite_loops,
    statements,
    stored_in,
    variables,
    with_body,
    with_parts,
)


def hoist_locals(kernel: Kernel) -> Kernel:
    """Returns the kernel with the locals that are in no loop as buffers.

    Both are zero at the start, and such a local starts at most once.
    """
    hoisted: list[Buffer] = []

    def without(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(new for stmt in body for new in statement(stmt))

    def statement(stmt: Stmt) -> tuple[Stmt, ...]:
        match stmt:
            case Local(buffer=buffer, body=body) if _has_parallel(body):
                hoisted.append(buffer)
                return without(body)
            case If(then=then, otherwise=otherwise):
                return (
                    dataclasses.replace(stmt, then=without(then), otherwise=without(otherwise)),
                )
        return (stmt,)

    body = without(kernel.body)
    return dataclasses.replace(kernel, buffers=(*kernel.buffers, *hoisted), body=body)


def sink_conditions(kernel: Kernel) -> Kernel:
    """Returns the kernel with conditions inside of the parallel nests that they are around."""
    return with_body(kernel, tuple(new for stmt in kernel.body for new in _sunk(stmt)))


def _sunk(stmt: Stmt) -> tuple[Stmt, ...]:
    if not isinstance(stmt, If) or not _has_parallel((stmt,)) or _disturbs(stmt):
        return (stmt,)
    fails = Unary("not", stmt.condition, "bool")
    return tuple(
        _guarded(part, condition)
        for body, condition in ((stmt.then, stmt.condition), (stmt.otherwise, fails))
        for inner in body
        for part in _sunk(inner)
    )


def _guarded(stmt: Stmt, condition: Expr) -> Stmt:
    """Returns a statement under a condition, which a parallel nest takes inside."""
    if isinstance(stmt, For) and stmt.kind == "parallel":
        if len(stmt.body) == 1:
            return dataclasses.replace(stmt, body=(_guarded(stmt.body[0], condition),))
        return dataclasses.replace(stmt, body=(If(condition, stmt.body),))
    return If(condition, (stmt,))


def _disturbs(stmt: If) -> bool:
    """Returns whether an if writes what its condition reads."""
    return not read_by(stmt).isdisjoint(stored_in((stmt,)))


def _has_parallel(body: tuple[Stmt, ...]) -> bool:
    return any(isinstance(stmt, For) and stmt.kind == "parallel" for stmt in statements(body))


def turn_reductions(kernel: Kernel) -> Kernel:
    """Returns the kernel with the parallel loops outside, where that means the same.

        reduction i in 0 .. 4 {                       parallel j in 0 .. 8 {
          parallel j in 0 .. 8 {                ->      reduction i in 0 .. 4 {
            s[j] = s[j] + a[i, j]                         s[j] = s[j] + a[i, j]

    Each thread of a grid then has a sum to itself.
    """
    return rewrite_loops(kernel, _turned)


def _turned(loop: For, scope: Scope) -> tuple[Stmt, ...]:
    if loop.kind == "parallel":
        # A thread runs what is inside: how the loops there are ordered does not matter.
        return (loop,)
    loop = rewrite_inner_loops(loop, scope, _turned)
    match loop:
        case For(kind="reduction", body=(For(kind="parallel") as inner,)) if _may_turn(loop, inner):
            return (with_parts(inner, body=(with_parts(loop, body=inner.body),)),)
    return (loop,)


def _may_turn(loop: For, inner: For) -> bool:
    """Returns whether the order of a reduction and a parallel loop in it does not matter.

    Updates of one element have to stay in one thread. They do if the elements do not depend on the
    reduction's variable: iterations of the parallel loop that update different elements in one
    round do so in all rounds.
    """
    stores = [stmt for stmt in statements(inner.body) if isinstance(stmt, Store)]
    moving = [index for store in stores for index in store.indices]
    has_local = any(isinstance(stmt, Local) for stmt in statements(inner.body))
    return not has_local and not any(
        loop.var in variables(expr) for expr in (*moving, inner.begin, inner.end)
    )
