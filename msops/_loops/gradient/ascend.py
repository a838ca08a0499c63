"""Lets loops that were turned round count up again where their order does not matter.

    parallel i in 0 .. 4 {                             parallel i in 0 .. 4 {
      d_a[3 - i] = d_a[3 - i] + d_b[3 - i]      ->       d_a[i] = d_a[i] + d_b[i]

Reversing a kernel turns every loop. What remains turned after this pass really runs backwards.
"""

from __future__ import annotations

import dataclasses

from msops._loops.ir.mirror import mirror, turned
from msops._loops.ir.nodes import For, Kernel, Stmt, Var
from msops._loops.ir.walk import (
    expressions,
    map_all,
    own_expressions,
    rewrite_statements,
    statements,
    with_body,
)


def ascend(kernel: Kernel) -> Kernel:
    """Returns the kernel with loops that may run in any order counting up.

    These are the loops whose bodies use the variable only counted from the end.
    """

    def change(stmt: For) -> tuple[Stmt, ...]:
        if stmt.kind == "serial":
            return (stmt,)
        back, var = mirror(stmt, stmt.var), Var(stmt.var)
        parts = [
            part
            for inner in statements(stmt.body)
            for expr in own_expressions(inner)
            for part in expressions(expr)
            if part in (back, var)
        ]
        if parts.count(back) < parts.count(var):
            return (stmt,)

        body = map_all(stmt.body, lambda expr: turned(expr, back, var))
        return (dataclasses.replace(stmt, body=body),)

    return with_body(kernel, rewrite_statements(kernel.body, change, For))
