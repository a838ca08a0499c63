"""Whether the iterations of a loop certainly depend on each other, whatever is outside the loop.

    if flag[0] > 0 {                          serial p in 0 .. 8 {
      serial j in 0 .. 8 @vectorize {    ->     serial j in 0 .. 8 @vectorize {
        z[at[0]] = 3 * z[at[0]] + b[j]            z[p] = 3 * z[p] + b[j]

Conditions around a loop only say whether it runs, and data that it does not change are one number
while it does: a variable here. The loop is at fault if two of its iterations meet for each value of
such variables with which it has two.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from msops._loops.analysis.polyhedral.accesses import Access, accesses_at, limited
from msops._loops.analysis.polyhedral.dependences import Dependence, dependences_between
from msops._loops.analysis.polyhedral.library import TooComplex, isl
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    Kernel,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.operators import INTEGERS
from msops._loops.ir.ranges import dtype_range, range_of
from msops._loops.ir.walk import (
    Scope,
    declared_in,
    loads,
    map_all,
    map_operands,
    own_expressions,
    statements,
    stored_in,
    variables,
    visit_accesses,
    with_parts,
    within_locals,
)

_RUN = "this iteration"
"""A scalar that each iteration of the loop stores to; no name of the author's."""
_FAR = 1 << 30
"""Data beyond it are no index; with them the sums of indices could wrap."""

IN, OUT, SET = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set


def certain_dependences(
    kernel: Kernel, loop: For, scope: Scope, blocks: Callable[[Dependence], bool]
) -> list[Dependence]:
    """Returns dependences that a loop has whenever it runs more than once; none if unsure.

    Args:
      kernel: the kernel.
      loop: one of its loops.
      scope: that of the loop.
      blocks: which dependences count.
    """
    alone, depth = _alone(kernel, loop, scope)
    context = isl.Context()
    try:
        with limited(context):
            accesses = accesses_at(visit_accesses(alone), context)
            return _certain(accesses, depth, loop, blocks)
    except TooComplex:
        return []


def _certain(
    accesses: tuple[Access, ...], depth: int, loop: For, blocks: Callable[[Dependence], bool]
) -> list[Dependence]:
    inside = [access for access in accesses if len(access.loops) > depth and access.is_exact]
    (run,) = (access for access in accesses if access.buffer == _RUN)
    found = [
        dependence
        for dependence in dependences_between(tuple(each for each in inside if each is not run))
        if dependence.carrier == loop.var and blocks(dependence)
    ]
    if not found or not run.is_exact:
        return []
    runs = run.domain.points
    several = _outer(_later(isl.Map.from_domain_and_range(runs, runs), depth), depth)
    meeting = several.subtract(several)
    for each in found:
        both = each.source.relation.apply_range(each.target.relation.reverse())
        meeting = meeting.union(_outer(_later(both, depth), depth))
    return found if not several.is_empty() and several.is_subset(meeting) else []


def _later(pairs: isl.Map, depth: int) -> isl.Set:
    """Returns the iterations that meet a later one of the loop at a depth."""
    for outer in range(depth):
        pairs = pairs.equate(IN, outer, OUT, outer)
    return pairs.order_lt(IN, depth, OUT, depth).domain()


def _outer(iterations: isl.Set, depth: int) -> isl.Set:
    """Returns the values of the outermost variables of some iterations."""
    return iterations.project_out(SET, depth, iterations.dim(SET) - depth)


def _alone(kernel: Kernel, loop: For, scope: Scope) -> tuple[Kernel, int]:
    """Returns a loop under variables for all that it does not change, and their number."""
    inner = statements((loop,))
    own = {stmt.var for stmt in inner if isinstance(stmt, For)}
    changed = stored_in((loop,)) | declared_in((loop,))
    taken = Names(reserved=[*scope.buffers, *scope.ranges, *own])
    spans: dict[str, tuple[int, int]] = {}
    names: dict[Expr, str] = {}

    def replaced(expr: Expr) -> Expr:
        buffers = {load.buffer for load in loads(expr)}
        if expr.dtype not in INTEGERS or not buffers or buffers & changed or variables(expr) & own:
            return map_operands(expr, replaced)
        if expr not in names:
            names[expr] = taken.fresh("fixed")
            spans[names[expr]] = range_of(expr, scope.ranges)
        var = Var(names[expr])
        return var if expr.dtype == INDEX_DTYPE else Cast(var, expr.dtype)

    mark = Store(_RUN, (), Const(0, INDEX_DTYPE))
    body: tuple[Stmt, ...] = map_all((with_parts(loop, body=(mark, *loop.body)),), replaced)
    read = [part for stmt in statements(body) for part in own_expressions(stmt)]
    for outer in set().union(*map(variables, read)) - own - set(spans):
        spans[outer] = scope.ranges.get(outer, dtype_range(INDEX_DTYPE))
    for name, (low, high) in spans.items():
        begin, end = max(low, -_FAR), min(high, _FAR) + 1
        body = (For(name, Const(begin, INDEX_DTYPE), Const(end, INDEX_DTYPE), body),)
    whole = {buffer.name for buffer in (*kernel.parameters, *kernel.buffers)}
    locals_ = [buffer for name, buffer in scope.buffers.items() if name not in whole]
    buffers = (*kernel.buffers, Buffer(_RUN, (), INDEX_DTYPE))
    body = within_locals(locals_, body)
    return dataclasses.replace(kernel, buffers=buffers, body=body), len(spans)
