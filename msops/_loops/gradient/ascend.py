"""Lets loops that were turned round count up again where their order does not matter.

    serial i in 0 .. 4 {                               parallel i in 0 .. 4 {
      d_a[3 - i] = d_a[3 - i] + d_b[3 - i]      ->       d_a[i] = d_a[i] + d_b[i]

Reversing a kernel turns every loop. What remains turned after this pass really runs backwards.
"""

from __future__ import annotations

from collections.abc import Set

from msops._loops.gradient.algebra import add, integer, sub
from msops._loops.ir.nodes import Const, Expr, For, Kernel, Stmt, Var
from msops._loops.ir.walk import map_bodies, rewrite_all, with_body
from msops._loops.passes.mark_loops import mark_loops


def mirror(loop: For, var: str) -> Expr:
    """Returns the value that a loop has in the iteration of `var` counted from its end."""
    match loop.begin, loop.end:
        case Const(value=begin), Const(value=end):
            total: Expr = integer(int(begin) + int(end) - 1)
        case _:
            total = sub(add(loop.begin, loop.end), integer(1))
    return sub(total, Var(var))


def ascend(kernel: Kernel, mirrored: Set[str]) -> Kernel:
    """Returns the kernel with loops marked, and those that may run in any order counting up.

    Args:
      kernel: a kernel.
      mirrored: the variables of its loops that were turned round.
    """

    def change(stmt: Stmt) -> Stmt:
        stmt = map_bodies(stmt, lambda body: tuple(map(change, body)))
        if not isinstance(stmt, For) or stmt.kind == "serial" or stmt.var not in mirrored:
            return stmt
        loop = stmt
        back = mirror(loop, loop.var)
        return map_bodies(
            loop,
            lambda body: rewrite_all(body, lambda p: back if p == Var(loop.var) else p),
        )

    marked = mark_loops(kernel).kernel
    return with_body(marked, tuple(map(change, marked.body)))
