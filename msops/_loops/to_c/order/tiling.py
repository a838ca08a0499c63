"""Pairs of parallel loops that cross through memory run tile by tile.

    parallel i in 0 .. 1024 {                  parallel i_block in 0 .. 128 {
      parallel j in 0 .. 1024 {                  parallel j_block in 0 .. 16 {
        b[i, j] = a[j, i]              ->          parallel i in 8 * i_block .. {
      }                                              parallel j in 64 * j_block .. {
    }                                                  b[i, j] = a[j, i]

In either order of the loops, each element of one of the arrays is in another line of memory. The
lines of a tile of both arrays stay in the first-level cache.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from msops._loops.analysis.costs import FIRST_CACHE_BYTES, mean_trips
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, For, Kernel, Stmt
from msops._loops.ir.sizes import size_bytes
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    buffers_of,
    is_innermost,
    rewrite_loops,
)
from msops._loops.to_c.facts.blocks import can_swap, in_blocks
from msops._loops.to_c.facts.strides import stride

TILE = (8, 64)
"""Iterations of the outer and the inner loop in a tile; a row of it is a few lines of memory."""


def tile_crossing_loops(kernel: Kernel) -> Kernel:
    """Returns the kernel with loops that cross through large arrays tiled."""
    names = Names(kernel)
    buffers = buffers_of(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        match loop.body:
            case (For() as inner,) if _cross(loop, inner, scope, buffers):
                return (_tiled(loop, inner, names),)
        return None

    return rewrite_loops(kernel, change)


def _cross(outer: For, inner: For, scope: Scope, buffers: Mapping[str, Buffer]) -> bool:
    """Returns whether each of two loops walks along a large array that the other jumps through."""
    if not outer.kind == inner.kind == "parallel" or not can_swap(outer, inner):
        return False
    if not is_innermost(inner):
        return False
    (inside,) = scope.inside(outer)
    if mean_trips(outer, scope.ranges) <= TILE[0] or mean_trips(inner, inside.ranges) <= TILE[1]:
        return False
    steps = [
        tuple(stride(access, loop.var, buffers) for loop in (outer, inner))
        for access in accesses_in(inner.body)
        if size_bytes(buffers[access.buffer]) > FIRST_CACHE_BYTES
    ]
    along_outer = any(step == 1 and other not in (0, 1) for step, other in steps)
    along_inner = any(step == 1 and other not in (0, 1) for other, step in steps)
    return along_outer and along_inner


def _tiled(outer: For, inner: For, names: Names) -> For:
    def tiles(rows: For) -> tuple[Stmt, ...]:
        return (in_blocks(inner, TILE[1], names, lambda columns, _: (_nest(rows, columns),)),)

    return in_blocks(outer, TILE[0], names, lambda rows, _: tiles(rows))


def _nest(outer: For, inner: For) -> For:
    return dataclasses.replace(outer, body=(inner,))
