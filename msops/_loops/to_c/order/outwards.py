"""Parallel loops go around serial ones, so that each runs all serial iterations in a row.

    serial t in 0 .. 90 {                     parallel i in 0 .. 160 {
      parallel i in 0 .. 160 {                  serial t in 0 .. 90 {
        parallel j in 0 .. 64 {        ->         parallel j in 0 .. 64 {
          x[t + 1, i, j] = f(x[t, i, j])            x[t + 1, i, j] = f(x[t, i, j])

Elements that one iteration of the serial loop leaves in the caches are there for the next one, and
threads share the work once, not in each iteration. This is the search for outer parallelism of
Pluto's schedules (U. Bondhugula et al., PLDI 2008), for nests where an interchange of loops is
enough: no two iterations of the parallel loop touch the same element, in any iterations of the
serial one. A parallel loop that reads and writes memory in its order stays inside, for vectors, and
a loop over blocks of it goes out.
"""

from __future__ import annotations

from collections.abc import Mapping

from msops._loops.analysis.costs import fixed_trips, mean_trips
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, For, Kernel, Stmt
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    buffers_of,
    has_bounds_of_data,
    is_innermost,
    rewrite_loops,
    with_parts,
)
from msops._loops.to_c import cost
from msops._loops.to_c.facts.blocks import can_swap, in_blocks
from msops._loops.to_c.facts.strides import stride

_FEWEST_TRIPS = 2
_BLOCKS = 4
_NARROWEST_BLOCK = 64
_WIDEST_BLOCK = 1024


def move_parallel_loops_out(kernel: Kernel) -> Kernel:
    """Returns the kernel with parallel loops around the serial ones that they were in."""
    moved = rewrite_loops(kernel, _Moving(kernel).loop, "serial")
    return kernel if moved.body == kernel.body else moved


class _Moving:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._names = Names(kernel)
        self._costs = cost.NativeCosts(kernel)
        self._buffers = buffers_of(kernel)

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None leaves it."""
        moved = self._moved(loop, scope)
        return None if moved is None else (moved,)

    def _moved(self, serial: For, scope: Scope) -> For | None:
        """Returns a serial loop inside of the parallel loops that are all of its body."""
        (inside,) = scope.inside(serial)
        parallel = self._loops_to_move(serial, inside)
        if not parallel:
            return None
        last = parallel[-1]
        if not _is_in_order(serial, last, self._buffers) or _is_in_order(last, last, self._buffers):
            if len(parallel) == 1:
                return None if scope.is_parallel else self._in_blocks(serial, last, scope)
            nest = with_parts(serial, body=(last,))
            parallel = parallel[:-1]
        else:
            nest = with_parts(serial, body=last.body)
        for loop in reversed(parallel):
            nest = with_parts(loop, body=(nest,))
        return nest

    def _loops_to_move(self, serial: For, scope: Scope) -> list[For]:
        """Returns the parallel loops in one another that may go around a serial loop."""
        # At the first compile, not with `import msops`.
        from msops._loops.analysis.polyhedral.side_by_side import never_meet

        found: list[For] = []
        body = serial.body
        while len(body) == 1:
            (inner,) = body
            if not isinstance(inner, For) or inner.kind != "parallel":
                break
            is_free = not has_bounds_of_data(serial) and all(
                can_swap(outer, inner) for outer in (serial, *found)
            )
            if not is_free or mean_trips(inner, scope.ranges) < _FEWEST_TRIPS:
                break
            found.append(inner)
            (scope,) = scope.inside(inner)
            body = inner.body
        return found if found and never_meet(self._kernel, serial, found) else []

    def _in_blocks(self, serial: For, vectors: For, scope: Scope) -> For | None:
        """Returns a serial loop inside of the blocks of a loop, if these are worth threads."""
        trips = fixed_trips(vectors)
        if trips is None or self._costs.loop(serial, scope) < 2 * cost.BLOCK_SECONDS:
            return None
        width = min(max(trips // _BLOCKS, _NARROWEST_BLOCK), _WIDEST_BLOCK)
        if trips < 2 * width:
            return None

        def inside(block: For, _: object) -> tuple[Stmt, ...]:
            return (with_parts(serial, body=(block,)),)

        return in_blocks(vectors, width, self._names, inside)


def _is_in_order(loop: For, innermost: For, buffers: Mapping[str, Buffer]) -> bool:
    """Returns whether the body of an innermost loop touches memory in the order of a loop."""
    if not is_innermost(innermost):
        return False
    steps = (stride(access, loop.var, buffers) for access in accesses_in(innermost.body))
    return all(step in (-1, 0, 1) for step in steps)
