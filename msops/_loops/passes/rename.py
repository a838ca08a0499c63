"""Gives loops names of their own again after a pass has copied some."""

from __future__ import annotations

import dataclasses

from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Expr, For, Kernel, Stmt, Var
from msops._loops.ir.walk import map_bodies, map_expressions, substitute, with_body


def rename_loops(kernel: Kernel) -> Kernel:
    """Returns the kernel with each loop variable that repeats an earlier one numbered."""
    names = Names(kernel)
    seen: set[str] = set()

    def change(body: tuple[Stmt, ...], new: dict[str, Expr]) -> tuple[Stmt, ...]:
        return tuple(renamed(stmt, new) for stmt in body)

    def renamed(stmt: Stmt, new: dict[str, Expr]) -> Stmt:
        stmt = map_expressions(stmt, lambda expr: substitute(expr, new)) if new else stmt
        inner = new
        if isinstance(stmt, For):
            if stmt.var in seen:
                fresh = names.fresh(stmt.var)
                inner = {**new, stmt.var: Var(fresh)}
                stmt = dataclasses.replace(stmt, var=fresh)
            seen.add(stmt.var)
        return map_bodies(stmt, lambda body: change(body, inner))

    return with_body(kernel, change(kernel.body, {}))
