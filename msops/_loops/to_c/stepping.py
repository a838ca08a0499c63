"""Loops whose body runs in every n-th iteration step over the others.

    parallel j in 1 .. 399 {              parallel j in 0 .. (400 - first) // 2 {
      if (((i + j) % 2) == c) {             a[first + 2 * j] = (b[first + 2 * j] < a[first + 2 * j])
        if (b[j] < a[j]) {         ->         ? a[first + 2 * j - 1] : a[first + 2 * j]
          a[j] = a[j - 1]                 }
        }
      }
    }

Here `first` stands for 1 + ((c - (i + 1)) % 2). On a checkerboard no iteration depends on another,
which a compiler only sees once the elements written are two apart. For vectors that are not of
neighbours it has no masks, so a store under a condition stores what it finds where that fails.
Other loops with such a condition are left alone: they run in vectors under a mask.
"""

from __future__ import annotations

import dataclasses

from msops._loops.analysis.affine import affine
from msops._loops.ir.building import binary, element_of, integer
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Binary,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Select,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.operators import LOGICAL
from msops._loops.ir.ranges import Ranges, is_within, range_of
from msops._loops.ir.walk import (
    Scope,
    expressions,
    is_innermost,
    loads,
    rewrite_loops,
    rewrite_statements,
    substitute,
    variables,
    with_parts,
    with_value,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.vectors import seems_carried


def step_over_iterations(kernel: Kernel) -> Kernel:
    """Returns the kernel with such parallel loops running only the iterations that do something."""
    changed = rewrite_loops(kernel, _stepping, "parallel")
    return kernel if changed is kernel else simplify(changed)


def _stepping(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
    match loop.body:
        case (If(condition=condition, then=then, otherwise=()),) if is_innermost(loop):
            (inside,) = scope.inside(loop)
            found = _every(condition, loop, inside.ranges) if seems_carried(loop) else None
        case _:
            return None
    if found is None:
        return None
    first, step = found
    left = binary("sub", binary("add", loop.end, integer(step - 1)), first)
    if not _is_exact(left, scope.ranges):
        return None
    at = binary("add", first, binary("mul", integer(step), Var(loop.var)))
    body = with_value(then, loop.var, at)
    if not any(part.hint for part in (*scope.loops, loop)):
        body = rewrite_statements(body, _chosen, If)
    end = binary("floordiv", left, integer(step))
    return (with_parts(loop, begin=integer(0), end=end, body=body),)


def _every(condition: Expr, loop: For, ranges: Ranges) -> tuple[Expr, int] | None:
    """Returns the first iteration in which a condition holds, and the distance to the next.

    None: it does not compare a remainder of the loop's variable with what all iterations share.
    """
    match condition:
        case Binary(
            op="eq", left=Binary(op="mod", left=position, right=Const(value=step)), right=rest
        ) if step > 1 and rest.dtype == INDEX_DTYPE and loop.var not in variables(rest):
            step = int(step)
        case _:
            return None
    along = affine(position, {loop.var})
    if along is None or along.along != ((loop.var, 1),):
        return None
    missing = binary("sub", rest, substitute(position, {loop.var: loop.begin}))
    if any(load for part in (missing, loop.end) for load in loads(part)):
        return None
    if not (along.is_exact(ranges) and _is_exact(missing, ranges)):
        return None
    if not is_within(range_of(rest, ranges), (0, step - 1)):
        return None
    return binary("add", loop.begin, binary("mod", missing, integer(step))), step


def _is_exact(expr: Expr, ranges: Ranges) -> bool:
    """Returns whether no sum in an index wraps."""
    found = affine(expr, ())
    return found is not None and found.is_exact(ranges)


def _chosen(stmt: If) -> tuple[Stmt, ...]:
    """Returns a store that is always made for one under a condition that reads the same element.

    If no author claimed that the loops around are parallel, no other iteration touches the element.
    A condition of several, or with a choice, may read it only where it exists.
    """
    match stmt:
        case If(condition=condition, then=(Store() as store,), otherwise=()):
            old = element_of(store)
            if old in loads(condition) and not any(map(_guards, expressions(condition))):
                value = Select(condition, store.value, old, store.value.dtype)
                return (dataclasses.replace(store, value=value),)
    return (stmt,)


def _guards(part: Expr) -> bool:
    return isinstance(part, Select) or (isinstance(part, Binary) and part.op in LOGICAL)
