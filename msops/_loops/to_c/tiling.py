"""Pairs of parallel loops that cross through memory run tile by tile.

    parallel i in 0 .. 1024 {                  parallel i_block in 0 .. 128 {
      parallel j in 0 .. 1024 {                  parallel j_block in 0 .. 16 {
        b[i, j] = a[j, i]              ->          parallel i in 8 * i_block .. {
      }                                              parallel j in 64 * j_block .. {
    }                                                  b[i, j] = a[j, i]

In either order of the loops, one array is read or written a line of memory for each element;
of a tile, the lines of both stay in the first-level cache.
"""

from __future__ import annotations

import dataclasses

from msops._loops.analysis.costs import mean_trips
from msops._loops.analysis.ranges import Range, loop_range
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import For, Kernel, Local, Stmt
from msops._loops.ir.sizes import size_bytes
from msops._loops.ir.walk import map_bodies, statements, with_body
from msops._loops.to_c.blocks import can_swap, in_blocks
from msops._loops.to_c.strides import accesses, stride

TILE = (8, 64)
"""Iterations of the outer and the inner loop in a tile: short columns, rows of some lines."""
_CACHE_BYTES = 1 << 15


def tile_crossing_loops(kernel: Kernel) -> Kernel:
    """Returns the kernel with loops that cross through large arrays tiled."""
    return with_body(kernel, _Tiling(kernel).body(kernel.body, {}))


class _Tiling:
    def __init__(self, kernel: Kernel) -> None:
        self._names = Names(kernel)
        self._buffers = {b.name: b for b in (*kernel.parameters, *kernel.buffers)} | {
            stmt.buffer.name: stmt.buffer
            for stmt in statements(kernel.body)
            if isinstance(stmt, Local)
        }
        self._shapes = {name: buffer.shape for name, buffer in self._buffers.items()}

    def body(self, body: tuple[Stmt, ...], ranges: dict[str, Range]) -> tuple[Stmt, ...]:
        """Returns a body with the loops in it tiled."""
        return tuple(self._statement(stmt, ranges) for stmt in body)

    def _statement(self, stmt: Stmt, ranges: dict[str, Range]) -> Stmt:
        if isinstance(stmt, For):
            inside = {**ranges, stmt.var: loop_range(stmt, ranges)}
            match stmt.body:
                case (For() as inner,) if self._cross(stmt, inner, ranges, inside):
                    return self._tiled(stmt, inner)
            ranges = inside
        return map_bodies(stmt, lambda body: self.body(body, ranges))

    def _cross(
        self, outer: For, inner: For, ranges: dict[str, Range], inside: dict[str, Range]
    ) -> bool:
        """Returns whether each of two loops is the one that walks along some large array."""
        if not outer.kind == inner.kind == "parallel" or not can_swap(outer, inner):
            return False
        if any(isinstance(stmt, For) for stmt in statements(inner.body)):
            return False
        if mean_trips(outer, ranges) <= TILE[0] or mean_trips(inner, inside) <= TILE[1]:
            return False
        steps = [
            tuple(stride(access, loop.var, self._shapes) for loop in (outer, inner))
            for access in accesses(inner)
            if size_bytes(self._buffers[access.buffer]) > _CACHE_BYTES
        ]
        along_outer = any(step == 1 and other not in (0, 1) for step, other in steps)
        along_inner = any(step == 1 and other not in (0, 1) for other, step in steps)
        return along_outer and along_inner

    def _tiled(self, outer: For, inner: For) -> For:
        def tiles(rows: For) -> tuple[Stmt, ...]:
            return (
                in_blocks(inner, TILE[1], self._names, lambda columns, _: (_nest(rows, columns),)),
            )

        return in_blocks(outer, TILE[0], self._names, lambda rows, _: tiles(rows))


def _nest(outer: For, inner: For) -> For:
    return dataclasses.replace(outer, body=(inner,))
