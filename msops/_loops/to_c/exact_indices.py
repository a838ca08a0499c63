"""Indices that move with a loop, and that conditions keep in range, are written as exact sums.

    parallel j in 0 .. 1000 {                   parallel j in 0 .. 1000 {
      local x: int32[] {                          local x: int32[] {
        x[] = j + dx[3]                             x[] = j + dx[3]
        if ((x[] >= 0) && (x[] < 1000)) {   ->      if ((x[] >= 0) && (x[] < 1000)) {
          y[j] = y[j] + z[x[]]                        y[j] = y[j] + z[int64(j) + int64(dx[3])]
        }                                           }
      }                                           }
    }                                           }

A sum in int32 may wrap. So compilers do not know that neighbouring iterations read neighbouring
elements, and gather them one by one. An index in range has not wrapped. Of its exact sum compilers
make loads of vectors under a mask.
"""

from __future__ import annotations

from msops._loops.ir.nodes import Cast, Expr, For, Kernel, Load, Local, Stmt, Var, Within
from msops._loops.ir.ranges import dtype_range, range_of
from msops._loops.ir.walk import (
    Scope,
    declared_in,
    is_innermost,
    loads,
    rewrite,
    rewrite_all,
    rewrite_loops,
    statements,
    stored_in,
    with_parts,
)
from msops._loops.passes.forward_locals import only_value
from msops._loops.to_c.moving import moving_index


def write_exact_indices(kernel: Kernel) -> Kernel:
    """Returns the kernel with such indices of its innermost loops as sums that never wrap."""
    return rewrite_loops(kernel, _with_exact_indices)


def _with_exact_indices(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
    if not is_innermost(loop):
        return None
    changing = stored_in(loop.body) | declared_in(loop.body)
    held = {
        stmt.buffer.name: found[1]
        for stmt in statements(loop.body)
        if isinstance(stmt, Local) and (found := only_value(stmt))
    }
    if not held:
        return None
    (inside,) = scope.inside(loop)

    def value(part: Expr) -> Expr:
        known = held.get(part.buffer) if isinstance(part, Load) else None
        return part if known is None else rewrite(known, value)

    def exact(part: Expr) -> Expr:
        # `proving` marks what conditions keep in range.
        if not isinstance(part, Within) or held.keys().isdisjoint(
            load.buffer for load in loads(part.operand)
        ):
            return part
        index = rewrite(part.operand, value)
        moving = moving_index(index, loop.var, changing)
        if moving is None:
            return part
        whole = moving.at(Var(loop.var))
        # Two sums that differ by a multiple of this number are one number in the dtype.
        low, high = dtype_range(index.operand.dtype if isinstance(index, Cast) else index.dtype)
        period = high - low + 1
        least, greatest = range_of(whole, inside.ranges)
        is_equal = part.high - period < least and greatest < part.low + period
        return with_parts(part, operand=whole) if is_equal else part

    body = rewrite_all(loop.body, exact)
    return None if body == loop.body else (with_parts(loop, body=body),)
