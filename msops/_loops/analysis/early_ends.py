"""Loops that do nothing more once their condition is false, like a `while`.

serial i in 0 .. 100 {
  if (a[t[]] > 1) {
    t[] = t[] + 1
  }
}
"""

from __future__ import annotations

from msops._loops.ir.nodes import Expr, For, If, Stmt
from msops._loops.ir.walk import loads, statements, stored_in, variables


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
