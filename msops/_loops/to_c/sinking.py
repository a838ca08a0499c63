"""Parallel loops and reductions go innermost where memory is then read and written in its order.

    parallel i { parallel j {                parallel i {
      c[i, j] = 0                              parallel j { c[i, j] = 0 }
      reduction k {                    ->      reduction k {
        c[i, j] = c[i, j] + a[i, k] * b[k, j]    parallel j_1 { c[i, j_1] = ... }

No iteration of a parallel loop depends on another. So the loop may be split into one loop for each
statement of its body, and each of these may be interchanged with the loops inside it whose bounds
do not depend on its variable. The iterations of a reduction meet only in updates, whose order is
free. So a reduction may be split and interchanged, too, and a part without updates is parallel.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from msops._loops.analysis.costs import mean_trips
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
    with_value,
)
from msops._loops.to_c.blocks import can_swap, in_blocks, is_alike
from msops._loops.to_c.strides import is_of_its_own, stride

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
        if loop.kind == "serial" or not is_better_inside(loop, self._buffers):
            return (loop,)
        trips = mean_trips(loop, scope.ranges)
        if trips < _FEWEST_TRIPS:
            return (loop,)
        if scope.is_parallel or trips < 2 * _BLOCK:
            return sunk(loop, self._names)
        return (self._in_blocks(loop),)

    def _in_blocks(self, loop: For) -> Stmt:
        """Returns a loop sunk inside of blocks of it; threads can take those of a parallel loop."""

        def inside(block: For, _: Var) -> tuple[Stmt, ...]:
            return sunk(block, self._names)

        return in_blocks(loop, _BLOCK, self._names, inside)


def is_better_inside(loop: For, buffers: Mapping[str, Buffer], *, may_sum: bool = False) -> bool:
    """Returns whether the loops inside of a loop jump through memory and it would not.

    Args:
      loop: the loop.
      buffers: the buffers of the kernel, locals too, by name.
      may_sum: whether sums of vectors are better, too, beside stores of vectors.
    """
    if not _can_sink(loop):
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


def sunk(loop: For, names: Names) -> tuple[Stmt, ...]:
    """Returns a parallel loop or reduction as innermost loops, one for each statement in it."""
    unused = [loop.var]

    def around(stmt: Stmt) -> Stmt:
        is_passed = isinstance(stmt, For) and can_swap(loop, stmt)
        if is_passed or (isinstance(stmt, If) and is_alike(stmt.condition, loop)):
            return map_bodies(stmt, lambda body: tuple(map(around, body)))
        var = unused.pop() if unused else names.fresh(loop.var)
        body = (stmt,) if var == loop.var else with_value((stmt,), loop.var, Var(var))
        return of_its_kind(dataclasses.replace(loop, var=var, body=body))

    return tuple(map(around, loop.body))


def of_its_kind(loop: For) -> For:
    """Returns a part of a reduction as a parallel loop if its iterations do not meet."""
    own = declared_in(loop.body)
    if all(is_of_its_own(name, loop) for name in stored_in(loop.body) - own):
        return dataclasses.replace(loop, kind="parallel")
    return loop


def _can_sink(loop: For) -> bool:
    """Returns whether a loop can go further inside, past no local that its iterations share."""
    return all(not isinstance(stmt, Local) for stmt in loop.body) and any(
        isinstance(stmt, For) and can_swap(loop, stmt) for stmt in loop.body
    )


def _leaves(loop: For) -> Iterator[For]:
    """Yields the innermost loops in a loop; the loop itself if it has none inside."""
    inner = [stmt for stmt in statements(loop.body) if isinstance(stmt, For)]
    for stmt in (loop, *inner):
        if is_innermost(stmt):
            yield stmt
