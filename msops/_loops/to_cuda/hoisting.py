"""Locals and conditions around the parallel nests of a kernel's body.

    local t: float32[8] {                         buffer t: float32[8]
      if n[0] > 0 {                               parallel i in 0 .. 8 {
        parallel i in 0 .. 8 { t[i] = ... }   ->    if n[0] > 0 { t[i] = ... }
      }                                           }
    }

The nests are then in the body itself, so that each can be a launch.
"""

from __future__ import annotations

import dataclasses

from msops._loops.ir.nodes import Buffer, Expr, For, If, Kernel, Local, Stmt, Unary
from msops._loops.ir.walk import read_by, statements, stored_in, with_body


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
