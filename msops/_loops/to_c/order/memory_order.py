"""Loops that may run in any order go where memory is read and written in its order.

    serial t in 0 .. 90 {                     parallel i in 0 .. 160 {
      parallel i in 0 .. 160 {                  serial t in 0 .. 90 {
        parallel j in 0 .. 64 {        ->         parallel j in 0 .. 64 {
          x[t + 1, i, j] = f(x[t, i, j])            x[t + 1, i, j] = f(x[t, i, j])

Elements that one iteration of a serial loop leaves in the caches are there for the next one, and
threads share the work once, not in each iteration. This is the search for outer parallelism of
Pluto's schedules (U. Bondhugula et al., PLDI 2008), for nests where an exchange of loops is enough:
no two iterations of the parallel loop touch the same element, in any iterations of the serial one.
A parallel loop along memory stays inside, for vectors, and a loop over blocks of it goes out.

    parallel i { parallel j {                parallel i {
      c[i, j] = 0                              parallel j { c[i, j] = 0 }
      reduction k {                    ->      reduction k {
        c[i, j] = c[i, j] + a[i, k] * b[k, j]    parallel j_1 { c[i, j_1] = ... }

Parallel loops and reductions go innermost where the loops inside jump through memory. Where these
scatter, as in the gradient of a transpose, only stores need be in order: lanes gather what is read.

    parallel i in 0 .. 1024 {                  parallel i_block in 0 .. 128 {
      parallel j in 0 .. 1024 {                  parallel j_block in 0 .. 16 {
        b[i, j] = a[j, i]              ->          parallel i in 8 * i_block .. {
      }                                              parallel j in 64 * j_block .. {
    }                                                  b[i, j] = a[j, i]

In either order of these two, each element of one of the arrays is in another line of memory. The
lines of a tile of both arrays stay in the first-level cache.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

from msops._loops.analysis.costs import FIRST_CACHE_BYTES, fixed_trips, mean_trips
from msops._loops.analysis.polyhedral.side_by_side import never_meet
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, For, Kernel, Local, Stmt, Store
from msops._loops.ir.operators import size_bytes
from msops._loops.ir.ranges import Ranges
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    buffers_of,
    has_bounds_of_data,
    is_innermost,
    rewrite_inner_loops,
    rewrite_loops,
    statements,
    with_parts,
)
from msops._loops.to_c import cost
from msops._loops.to_c.facts.blocks import can_swap, in_blocks
from msops._loops.to_c.facts.strides import stride
from msops._loops.to_c.order.exchange import exchanged, sunk
from msops._loops.to_c.order.products import is_row_of_product

_FEWEST_OUTSIDE = 2
_FEWEST_INSIDE = 8
_BLOCKS = 4
_NARROWEST_BLOCK = 64
_WIDEST_BLOCK = 1024
"""Iterations that are kept together: their results stay in the first-level cache."""
TILE = (8, 64)
"""Iterations of the outer and the inner loop in a tile; a row of it is a few lines of memory."""


def order_along_memory(kernel: Kernel) -> Kernel:
    """Returns the kernel with its parallel loops and reductions where memory is in order."""
    moved = rewrite_loops(kernel, _Order(kernel).out_of_serial, "serial")
    kernel = kernel if moved.body == kernel.body else moved
    kernel = rewrite_loops(kernel, _Order(kernel).inside)
    return rewrite_loops(kernel, _Order(kernel).in_tiles, "parallel")


class _Order:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._names = Names(kernel)
        self._buffers = buffers_of(kernel)

    @functools.cached_property
    def _costs(self) -> cost.NativeCosts:
        return cost.NativeCosts(self._kernel)

    # Parallel loops around serial ones.

    def out_of_serial(self, serial: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns a serial loop inside of the parallel loops that are all of its body."""
        (inside,) = scope.inside(serial)
        parallel = self._loops_to_move(serial, inside)
        if not parallel:
            return None
        last = parallel[-1]
        nest = with_parts(serial, body=last.body)
        if not _is_in_order(serial, last, self._buffers) or _is_in_order(last, last, self._buffers):
            if len(parallel) == 1:
                return None if scope.is_parallel else self._around_blocks(serial, last, scope)
            nest = with_parts(serial, body=(last,))
            parallel = parallel[:-1]
        for loop in reversed(parallel):
            nest = with_parts(loop, body=(nest,))
        return (nest,)

    def _loops_to_move(self, serial: For, scope: Scope) -> list[For]:
        """Returns the parallel loops in one another that may go around a serial loop."""
        found: list[For] = []
        body = serial.body
        while len(body) == 1:
            (inner,) = body
            if not isinstance(inner, For) or inner.kind != "parallel":
                break
            is_free = not has_bounds_of_data(serial) and all(
                can_swap(outer, inner) for outer in (serial, *found)
            )
            if not is_free or mean_trips(inner, scope.ranges) < _FEWEST_OUTSIDE:
                break
            found.append(inner)
            (scope,) = scope.inside(inner)
            body = inner.body
        return found if found and never_meet(self._kernel, serial, found) else []

    def _around_blocks(self, serial: For, vectors: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns a serial loop inside of the blocks of a loop, if these are worth threads."""
        trips = fixed_trips(vectors)
        if trips is None or self._costs.loop(serial, scope) < 2 * cost.BLOCK_SECONDS:
            return None
        width = min(max(trips // _BLOCKS, _NARROWEST_BLOCK), _WIDEST_BLOCK)
        if trips < 2 * width:
            return None

        def inside(block: For, _: object) -> tuple[Stmt, ...]:
            return (with_parts(serial, body=(block,)),)

        return (in_blocks(vectors, width, self._names, inside),)

    # Loops in any order innermost.

    def inside(self, loop: For, scope: Scope) -> tuple[Stmt, ...]:
        """Returns the statements that replace a loop; loops inside of it are replaced first."""
        loop = rewrite_inner_loops(loop, scope, self.inside)
        if loop.kind == "serial" or not self._is_better_inside(loop, scope):
            return (loop,)
        if mean_trips(loop, scope.ranges) < _FEWEST_INSIDE:
            return (loop,)
        return sunk(loop, self._names, scope.ranges)

    def _is_better_inside(self, loop: For, scope: Scope) -> bool:
        """Returns whether a loop is better inside; sums of vectors are, unless they go in tiles."""
        if is_better_inside(loop, self._buffers, scope.ranges):
            return True
        may_sum = is_better_inside(loop, self._buffers, scope.ranges, may_sum=True)
        return may_sum and not is_row_of_product(self._kernel, (loop,), scope)

    # Tiles.

    def in_tiles(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns a loop and the one in it in tiles, if they cross through large arrays."""
        match loop.body:
            case (For() as inner,) if self._cross(loop, inner, scope):
                pass
            case _:
                return None

        def tiles(rows: For) -> tuple[Stmt, ...]:
            def tile(columns: For, _: object) -> tuple[Stmt, ...]:
                return (with_parts(rows, body=(columns,)),)

            return (in_blocks(inner, TILE[1], self._names, tile),)

        return (in_blocks(loop, TILE[0], self._names, lambda rows, _: tiles(rows)),)

    def _cross(self, outer: For, inner: For, scope: Scope) -> bool:
        """Returns whether each of two loops goes along an array that the other jumps through."""
        if inner.kind != "parallel" or not is_innermost(inner) or not can_swap(outer, inner):
            return False
        trips = mean_trips(outer, scope.ranges), mean_trips(inner, scope.inside(outer)[0].ranges)
        if trips[0] <= TILE[0] or trips[1] <= TILE[1]:
            return False
        steps = [
            tuple(stride(access, loop.var, self._buffers) for loop in (outer, inner))
            for access in accesses_in(inner.body)
            if size_bytes(self._buffers[access.buffer]) > FIRST_CACHE_BYTES
        ]
        along_outer = any(step == 1 and other not in (0, 1) for step, other in steps)
        along_inner = any(step == 1 and other not in (0, 1) for other, step in steps)
        return along_outer and along_inner


def is_better_inside(
    loop: For,
    buffers: Mapping[str, Buffer],
    triangles: Ranges | None = None,
    *,
    may_sum: bool = False,
) -> bool:
    """Returns whether the loops inside of a loop jump through memory and it would not.

    Args:
      loop: the loop.
      buffers: the buffers of the kernel, locals too, by name.
      triangles: the ranges around the loop, if it may move past a loop that goes over a triangle
        with it.
      may_sum: whether sums of vectors are better, too, beside stores of vectors.
    """
    if not _can_sink(loop, triangles):
        return False

    def steps(leaf: For, var: str) -> list[tuple[int | None, bool]]:
        accesses = accesses_in(leaf.body)
        return [(stride(access, var, buffers), isinstance(access, Store)) for access in accesses]

    leaves = [leaf for leaf in _leaves(loop) if leaf is not loop]
    jumps = [
        {store for step, store in steps(leaf, leaf.var) if step not in (0, 1)} for leaf in leaves
    ]
    if not any(jumps):
        return False
    moved = [steps(leaf, loop.var) for leaf in leaves]
    in_order = all(
        step in (0, 1) or (True in kinds and not store)
        for kinds, each in zip(jumps, moved, strict=True)
        for step, store in each
    )
    return in_order and (may_sum or any((1, True) in each for each in moved))


def _can_sink(loop: For, triangles: Ranges | None) -> bool:
    """Returns whether a loop can go further inside, past no local that its iterations share."""
    return all(not isinstance(stmt, Local) for stmt in loop.body) and any(
        isinstance(stmt, For) and exchanged(loop, stmt, triangles) for stmt in loop.body
    )


def _leaves(loop: For) -> Iterator[For]:
    """Yields the innermost loops in a loop; the loop itself if it has none inside."""
    inner = [stmt for stmt in statements(loop.body) if isinstance(stmt, For)]
    for stmt in (loop, *inner):
        if is_innermost(stmt):
            yield stmt


def _is_in_order(loop: For, innermost: For, buffers: Mapping[str, Buffer]) -> bool:
    """Returns whether the body of an innermost loop touches memory in the order of a loop."""
    if not is_innermost(innermost):
        return False
    steps = (stride(access, loop.var, buffers) for access in accesses_in(innermost.body))
    return all(step in (-1, 0, 1) for step in steps)
