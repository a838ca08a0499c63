"""Parallel loops with enough work are shared among threads.

    parallel i in 0 .. 4096 {              parallel i in 0 .. 4096 @threads(64) {
      parallel j in 0 .. 64 { ... }   ->     parallel j in 0 .. 64 { ... }

The number, the grain, is the fewest iterations that are worth a thread. If a short loop is around a
longer one, both are marked: threads share the pairs of their iterations.
"""

from __future__ import annotations

import math

from msops._loops.analysis.costs import mean_trips
from msops._loops.ir.nodes import For, Kernel, Stmt
from msops._loops.ir.ranges import Ranges
from msops._loops.ir.walk import (
    Scope,
    is_innermost,
    rewrite_loops,
    stored_in,
    with_parts,
)
from msops._loops.to_c import cost
from msops._loops.to_c.blocks import can_swap

# Nested parallel loops are shared as one where the outer one gives threads too little choice.
_FEW_ITERATIONS = 16


def share_among_threads(kernel: Kernel) -> Kernel:
    """Returns the kernel with the grain of each loop that threads share."""
    costs = cost.NativeCosts(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        seconds = costs.iteration(loop, scope)
        trips = mean_trips(loop, scope.ranges)
        if trips < 2 or trips * seconds < 2 * cost.BLOCK_SECONDS:
            return None
        # Threads have copies of the variables that they read.
        around = scope.depths.keys() & stored_in((loop,))
        if not all(scope.buffers[name].shape for name in around):
            return None
        inner = _collapsible(loop, scope.ranges)
        if inner is None:
            return (with_parts(loop, grain=_grain(seconds)),)
        grain = _grain(seconds / mean_trips(inner, scope.ranges))
        return (with_parts(loop, body=(with_parts(inner, grain=grain),), grain=grain),)

    return rewrite_loops(kernel, change, "parallel")


def _grain(seconds: float) -> int:
    """Returns the fewest iterations that are worth a thread, if each takes some seconds."""
    return max(1, math.ceil(cost.BLOCK_SECONDS / seconds))


def _collapsible(loop: For, ranges: Ranges) -> For | None:
    """Returns the parallel loop that is all of a short loop's body, if its bounds are fixed."""
    if mean_trips(loop, ranges) >= _FEW_ITERATIONS or len(loop.body) != 1:
        return None
    (inner,) = loop.body
    if not isinstance(inner, For) or inner.kind != "parallel" or not can_swap(loop, inner):
        return None
    # Dividing the index in an innermost loop would cost more than it brings.
    return inner if not is_innermost(inner) and mean_trips(inner, ranges) >= 1 else None
