"""Parallel loops and reductions go innermost where memory is then read and written in its order.

    parallel i { parallel j {                parallel i {
      c[i, j] = 0                              parallel j { c[i, j] = 0 }
      reduction k {                    ->      reduction k {
        c[i, j] = c[i, j] + a[i, k] * b[k, j]    parallel j_1 { c[i, j_1] = ... }

No iteration of a parallel loop depends on another. So the loop may be split into one loop for each
statement of its body, and each of these may be interchanged with the loops inside it whose bounds
do not depend on its variable, or where one bound is its variable and a number: the pairs of a
triangle, `i in 0 .. n { j in i + 1 .. n`, are also `j in 1 .. n { i in 0 .. j`. The iterations of a
reduction meet only in updates, whose order is free. So a reduction may be split and interchanged,
too, and a part without updates is parallel.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping

from msops._loops.analysis.costs import mean_trips
from msops._loops.ir.building import integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, For, If, Kernel, Local, Stmt, Store, Var
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    buffers_of,
    declared_in,
    is_innermost,
    map_bodies,
    rewrite_inner_loops,
    rewrite_loops,
    statements,
    stored_in,
    substitute,
    with_parts,
    with_value,
)
from msops._loops.passes.simplify_expressions import simplified
from msops._loops.to_c.facts.blocks import can_swap, in_blocks, index, is_alike
from msops._loops.to_c.facts.strides import is_of_its_own, offset, stride

_FEWEST_TRIPS = 8
# Iterations of a sunk loop that are kept together: their results stay in the first-level cache.
_BLOCK = 1024


def sink_parallel_loops(kernel: Kernel) -> Kernel:
    """Returns the kernel with loops in any order moved inwards where that helps vector units."""
    return rewrite_loops(kernel, _Sinking(kernel).loop)


class _Sinking:
    def __init__(self, kernel: Kernel) -> None:
        self._names = Names(kernel)
        self._buffers = buffers_of(kernel)

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...]:
        """Returns the statements that replace a loop; loops inside of it are replaced first."""
        loop = rewrite_inner_loops(loop, scope, self.loop)
        if loop.kind == "serial" or not is_better_inside(loop, self._buffers, may_turn=True):
            return (loop,)
        trips = mean_trips(loop, scope.ranges)
        if trips < _FEWEST_TRIPS:
            return (loop,)
        if scope.is_parallel or trips < 2 * _BLOCK:
            return sunk(loop, self._names, may_turn=True)
        return (self._in_blocks(loop),)

    def _in_blocks(self, loop: For) -> Stmt:
        """Returns a loop sunk inside of blocks of it; threads can take those of a parallel loop."""

        def inside(block: For, _: Var) -> tuple[Stmt, ...]:
            return sunk(block, self._names, may_turn=True)

        return in_blocks(loop, _BLOCK, self._names, inside)


def is_better_inside(
    loop: For, buffers: Mapping[str, Buffer], *, may_sum: bool = False, may_turn: bool = False
) -> bool:
    """Returns whether the loops inside of a loop jump through memory and it would not.

    Args:
      loop: the loop.
      buffers: the buffers of the kernel, locals too, by name.
      may_sum: whether sums of vectors are better, too, beside stores of vectors.
      may_turn: whether the loop may move past a loop that goes over a triangle with it.
    """
    if not _can_sink(loop, may_turn):
        return False
    leaves = [leaf for leaf in _leaves(loop) if leaf is not loop]
    jumps = any(
        stride(access, leaf.var, buffers) not in (0, 1)
        for leaf in leaves
        for access in accesses_in(leaf.body)
    )
    if not jumps:
        return False
    steps = [
        (stride(access, loop.var, buffers), isinstance(access, Store))
        for leaf in leaves
        for access in accesses_in(leaf.body)
    ]
    return all(step in (0, 1) for step, _ in steps) and (may_sum or (1, True) in steps)


def sunk(
    loop: For, names: Names, *, may_turn: bool = False, stays: Collection[Stmt] = ()
) -> tuple[Stmt, ...]:
    """Returns a parallel loop or reduction as innermost loops, one for each statement in it.

    Args:
      loop: the loop.
      names: the names of the kernel.
      may_turn: whether the loop may move past a loop that goes over a triangle with it.
      stays: statements of its body that it stays around.
    """
    unused = [loop.var]

    def around(stmt: Stmt, loop: For) -> Stmt:
        if stmt not in stays:
            if isinstance(stmt, For) and (pair := exchanged(loop, stmt, may_turn)) is not None:
                outer, inner = pair
                outer = with_parts(outer, body=tuple(around(part, inner) for part in stmt.body))
                if loop.kind == "reduction" and outer.kind == "parallel":
                    # Its iterations may meet in those of the reduction.
                    outer = of_its_kind(with_parts(outer, kind="reduction"))
                return outer
            if isinstance(stmt, If) and is_alike(stmt.condition, loop):
                return map_bodies(stmt, lambda body: tuple(around(part, loop) for part in body))
        var = unused.pop() if unused else names.fresh(loop.var)
        body = (stmt,) if var == loop.var else with_value((stmt,), loop.var, Var(var))
        return of_its_kind(dataclasses.replace(loop, var=var, body=body))

    return tuple(around(stmt, loop) for stmt in loop.body)


def exchanged(outer: For, inner: For, may_turn: bool) -> tuple[For, For] | None:
    """Returns two loops in exchanged order; None if their bounds forbid it.

    Args:
      outer: the loop around.
      inner: the loop inside.
      may_turn: whether the two may go over a triangle.

    Returns:
      The inner loop as it runs around, and the outer one as it runs inside.
    """
    if can_swap(outer, inner):
        return inner, outer
    starts, ends = offset(inner.begin, outer.var), offset(inner.end, outer.var)
    if not may_turn:
        return None
    if starts is not None and is_alike(inner.end, outer):
        # Position j has i + starts <= j.
        begin = simplified(substitute(inner.begin, {outer.var: outer.begin}), {})
        last = index("sub", Var(inner.var), integer(starts - 1))
        end = simplified(index("min", outer.end, last), {})
        return with_parts(inner, begin=begin), with_parts(outer, end=end)
    if ends is not None and is_alike(inner.begin, outer):
        # Position j has j < i + ends.
        last = index("sub", outer.end, integer(1))
        end = simplified(substitute(inner.end, {outer.var: last}), {})
        first = index("sub", Var(inner.var), integer(ends - 1))
        begin = simplified(index("max", outer.begin, first), {})
        return with_parts(inner, end=end), with_parts(outer, begin=begin)
    return None


def of_its_kind(loop: For) -> For:
    """Returns a part of a reduction as a parallel loop if its iterations do not meet."""
    own = declared_in(loop.body)
    if all(is_of_its_own(name, loop) for name in stored_in(loop.body) - own):
        return dataclasses.replace(loop, kind="parallel")
    return loop


def _can_sink(loop: For, may_turn: bool) -> bool:
    """Returns whether a loop can go further inside, past no local that its iterations share."""
    return all(not isinstance(stmt, Local) for stmt in loop.body) and any(
        isinstance(stmt, For) and exchanged(loop, stmt, may_turn) for stmt in loop.body
    )


def _leaves(loop: For) -> Iterator[For]:
    """Yields the innermost loops in a loop; the loop itself if it has none inside."""
    inner = [stmt for stmt in statements(loop.body) if isinstance(stmt, For)]
    for stmt in (loop, *inner):
        if is_innermost(stmt):
            yield stmt
