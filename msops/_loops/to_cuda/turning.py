"""A reduction around a parallel loop becomes a parallel loop around the reduction.

    reduction i in 0 .. 4 {                       parallel j in 0 .. 8 {
      parallel j in 0 .. 8 {                ->      reduction i in 0 .. 4 {
        s[j] = s[j] + a[i, j]                         s[j] = s[j] + a[i, j]

Each thread of a grid then has a sum to itself.
"""

from __future__ import annotations

from msops._loops.ir.nodes import For, Kernel, Local, Stmt, Store
from msops._loops.ir.walk import (
    Scope,
    rewrite_inner_loops,
    rewrite_loops,
    statements,
    variables,
    with_parts,
)


def turn_reductions(kernel: Kernel) -> Kernel:
    """Returns the kernel with the parallel loops outside, where that means the same."""
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
