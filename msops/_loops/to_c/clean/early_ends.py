"""Loops that do nothing more once their condition is false, like a `while`, are marked for it.

serial i in 0 .. 100 {              serial i in 0 .. 100 @ends_early {
  if (a[t[]] > 1) {           ->      if (a[t[]] > 1) {
    t[] = t[] + 1                       t[] = t[] + 1
  }                                   }
}                                   }
"""

from __future__ import annotations

from msops._loops.ir.nodes import Expr, For, If, Kernel, Stmt
from msops._loops.ir.walk import (
    loads,
    rewrite_statements,
    statements,
    stored_in,
    variables,
    with_parts,
)


def mark_early_ends(kernel: Kernel) -> Kernel:
    """Returns the kernel with a mark on each loop that may be left once its condition is false."""

    def change(loop: For) -> tuple[Stmt, ...]:
        return (with_parts(loop, ends_early=True) if ends_early(loop) else loop,)

    return with_parts(kernel, body=rewrite_statements(kernel.body, change, For))


def ends_early(loop: For) -> bool:
    """Returns whether a loop does nothing more once its condition is false.

    This holds if only the branch changes what the condition reads, and the loop's variable is not
    in it.
    """
    match loop:
        case For(kind="serial", body=(If(condition=condition, then=then, otherwise=()),)):
            changed = {load.buffer for load in loads(condition)} & stored_in(then)
            return bool(changed) and loop.var not in variables(condition)
    return False


def conditions_to_go_on(body: tuple[Stmt, ...]) -> dict[str, Expr]:
    """Returns, by its variable, the condition of each loop that ends early."""
    return {
        loop.var: loop.body[0].condition
        for loop in statements(body)
        if isinstance(loop, For) and ends_early(loop) and isinstance(loop.body[0], If)
    }
