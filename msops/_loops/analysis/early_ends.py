"""Loops that do nothing more once their condition is false, like a `while`.

serial i in 0 .. 100 {
  if (a[t[]] > 1) {
    t[] = t[] + 1
  }
}
"""

from __future__ import annotations

from msops._loops.ir.nodes import For, If
from msops._loops.ir.walk import loads, stored_in, variables


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
