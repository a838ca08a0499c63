"""Sets the kind of each loop: which may run in any order.

serial i in 0 .. 4 {                    parallel i in 0 .. 4 {
  serial j in 0 .. 8 {          ->        reduction j in 0 .. 8 {
    s[i] = s[i] + a[i, j]                   s[i] = s[i] + a[i, j]
"""

from __future__ import annotations

from collections.abc import Mapping

from msops._loops.analysis.kinds import find_kinds
from msops._loops.ir.nodes import For, Kernel, LoopKind, Stmt
from msops._loops.ir.walk import rewrite_statements, with_body, with_parts


def mark_loops(kernel: Kernel, kinds: Mapping[str, LoopKind] | None = None) -> Kernel:
    """Returns the kernel with the kind of each loop set.

    Args:
      kernel: any kernel.
      kinds: the kind of each loop, if they are known already.
    """
    known = find_kinds(kernel).by_variable if kinds is None else kinds

    def marked(loop: For) -> tuple[Stmt, ...]:
        return (with_parts(loop, kind=known[loop.var]),)

    return with_body(kernel, rewrite_statements(kernel.body, marked, For))
