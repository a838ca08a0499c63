"""Conditions of two cheap parts are evaluated whole, without a branch between their parts.

    serial j in 2 .. 1701 {                                serial j in 2 .. 1701 {
      if ((a[i] == b[j - 1]) && (a[i - 1] == b[j])) {        if ((...) & (...)) {
        d[] = min(d[], t[j - 2] + 1)                 ->        d[] = min(d[], t[j - 2] + 1)
      }                                                      }
    }                                                      }

A compiler may not read `b[j]` before the first part holds, for all it knows. So it makes a branch,
and where data decide, no processor foresees it. Here all elements exist that the loop accesses. Of
what is left compilers make choices of values.
"""

from __future__ import annotations

from msops._loops.ir.building import binary
from msops._loops.ir.elements import exists
from msops._loops.ir.nodes import Binary, Expr, For, Kernel, Stmt
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    buffers_of,
    expressions,
    is_innermost,
    loads,
    own_expressions,
    rewrite_all,
    rewrite_loops,
    statements,
    with_parts,
)
from msops._loops.to_c.facts.work import is_cheap


def evaluate_whole_conditions(kernel: Kernel) -> Kernel:
    """Returns the kernel with such conditions of its inner loops evaluated whole."""
    buffers = buffers_of(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        if not is_innermost(loop) or not _has_two_parts(loop):
            return None
        (inside,) = scope.inside(loop)
        if not all(exists(a, inside.ranges, buffers) for a in accesses_in(loop.body)):
            return None

        def whole(part: Expr) -> Expr:
            match part:
                case Binary(op="land" | "lor" as op, left=left, right=right):
                    # Of conditions on variables alone compilers decide this themselves.
                    reads_elements = any(load.indices for load in loads(right))
                    if reads_elements and is_cheap(right, loop, buffers):
                        return binary("and" if op == "land" else "or", left, right)
            return part

        body = rewrite_all(loop.body, whole)
        return None if body == loop.body else (with_parts(loop, body=body),)

    return rewrite_loops(kernel, change)


def _has_two_parts(loop: For) -> bool:
    """Returns whether a second part of a condition in a loop reads elements."""
    return any(
        isinstance(part, Binary) and part.op in ("land", "lor") and loads(part.right)
        for stmt in statements((loop,))
        for expr in own_expressions(stmt)
        for part in expressions(expr)
    )
