"""Parallel loops with enough work are shared among threads.

    parallel i in 0 .. 4096 {              parallel i in 0 .. 4096 @threads(64) {
      parallel j in 0 .. 64 { ... }   ->     parallel j in 0 .. 64 { ... }

The number, the grain, is the fewest iterations that are worth a thread. If a short loop is around a
longer one, both are marked: threads share the pairs of their iterations.

In a serial loop, such as one over time, threads also share lighter loops over large arrays that
they share in its other loops. Otherwise one thread would have to fetch what the others have in
their caches.
"""

from __future__ import annotations

import math

from msops._loops.analysis.costs import FIRST_CACHE_BYTES, mean_trips
from msops._loops.ir.nodes import For, Kernel, Stmt
from msops._loops.ir.operators import size_bytes
from msops._loops.ir.ranges import Ranges
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    has_bounds_of_data,
    is_innermost,
    rewrite_inner_loops,
    rewrite_loops,
    statements,
    stored_in,
    with_parts,
)
from msops._loops.to_c import cost
from msops._loops.to_c.facts.blocks import can_swap

# Nested parallel loops are shared as one where the outer one gives threads too little choice.
_FEW_ITERATIONS = 16


def share_among_threads(kernel: Kernel) -> Kernel:
    """Returns the kernel with the grain of each loop that threads share."""
    sharing = _Sharing(kernel)
    return rewrite_loops(
        rewrite_loops(kernel, sharing.loop, "parallel"), sharing.lighter_loops, "serial"
    )


class _Sharing:
    def __init__(self, kernel: Kernel) -> None:
        self._costs = cost.NativeCosts(kernel)

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns a parallel loop with its grain; None if it has too little work."""
        return self._shared(loop, scope, 2 * cost.BLOCK_SECONDS)

    def _shared(self, loop: For, scope: Scope, least: float) -> tuple[Stmt, ...] | None:
        """Returns a loop with its grain; None if it has less work than some seconds."""
        seconds = self._costs.iteration(loop, scope)
        trips = mean_trips(loop, scope.ranges)
        if trips < 2 or trips * seconds < least:
            # The loops inside of it have even less work, except those whose length is data.
            is_light = max(trips, 1) * seconds < least and not _has_lengths_of_data(loop)
            return (loop,) if is_light else None
        # Threads have copies of the variables that they read.
        around = scope.depths.keys() & stored_in((loop,))
        if not all(scope.buffers[name].shape for name in around):
            return None
        inner = _collapsible(loop, scope.ranges)
        if inner is None:
            return (with_parts(loop, grain=_grain(seconds, trips)),)
        columns = mean_trips(inner, scope.ranges)
        grain = _grain(seconds / columns, trips * columns)
        return (with_parts(loop, body=(with_parts(inner, grain=grain),), grain=grain),)

    def lighter_loops(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns a serial loop in which threads also share lighter loops over the same arrays."""
        shared = [part for part in statements(loop.body) if isinstance(part, For) and part.grain]
        (inside,) = scope.inside(loop)
        touched = {
            access.buffer
            for access in accesses_in(tuple(shared))
            if access.buffer in inside.buffers
            and size_bytes(inside.buffers[access.buffer]) > FIRST_CACHE_BYTES
        }
        if not touched:
            return None

        def change(inner: For, around: Scope) -> tuple[Stmt, ...] | None:
            if inner.grain:
                return (inner,)
            if touched.isdisjoint(access.buffer for access in accesses_in(inner.body)):
                return None
            return self._shared(inner, around, cost.BLOCK_SECONDS / 2)

        return (rewrite_inner_loops(loop, scope, change, "parallel"),)


def _has_lengths_of_data(loop: For) -> bool:
    inner = [part for part in statements(loop.body) if isinstance(part, For)]
    return any(map(has_bounds_of_data, inner))


def _grain(seconds: float, trips: float) -> int:
    """Returns the fewest iterations that are worth a thread, but at most half of them.

    Args:
      seconds: of an iteration.
      trips: the number of iterations.
    """
    return max(1, min(math.ceil(cost.BLOCK_SECONDS / seconds), int(trips / 2)))


def _collapsible(loop: For, ranges: Ranges) -> For | None:
    """Returns the parallel loop that is all of a short loop's body, if its bounds are fixed."""
    if mean_trips(loop, ranges) >= _FEW_ITERATIONS or len(loop.body) != 1:
        return None
    (inner,) = loop.body
    if not isinstance(inner, For) or inner.kind != "parallel" or not can_swap(loop, inner):
        return None
    # Dividing the index in an innermost loop would cost more than it brings.
    return inner if not is_innermost(inner) and mean_trips(inner, ranges) >= 1 else None
