"""Rows of a block run product by product, instead of each row from its beginning to its end.

    parallel i in 0 .. 600 {                  parallel i_block in 0 .. 10 {
      local s: float32[600] {                   local s: float32[60, 600] {
        ...                                       local mean: float32[60, 64] {
        local mean: float32[64] {                   parallel i in 60 * i_block .. {
          reduction j in 0 .. i {                     ...
            parallel d in 0 .. 64 {                 }
              mean[d] = mean[d]            ->       parallel i_1 in 60 * i_block .. {
                + s[j] * v[j, d]                      reduction j in 0 .. i_1 {
            }                                           parallel d in 0 .. 64 {
          }                                               mean[i_1 - .., d] = mean[i_1 - .., d]
          ...                                               + s[i_1 - .., j] * v[j, d]
                                                    parallel i_2 in 60 * i_block .. {
                                                      ...

The second product of attention needs all of a row of the first one. So its terms cannot be summed
before the rows, as products.py does, but a block of rows can wait for each other. What the parts
of a row share gets an element for each row.

This is loop distribution with expansion of locals, as in deferring.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence

from msops._loops.analysis.costs import CACHE_BYTES
from msops._loops.analysis.updates import update_of
from msops._loops.ir.building import integer
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import For, Kernel, Local, Stmt, Store, Var
from msops._loops.ir.ranges import Ranges
from msops._loops.ir.sizes import size_bytes
from msops._loops.ir.walk import (
    A,
    Scope,
    accesses_in,
    loads,
    map_accesses,
    rewrite_loops,
    with_parts,
)
from msops._loops.passes.simplify import simplify
from msops._loops.passes.simplify_expressions import difference
from msops._loops.to_c.blocks import even_blocks, from_zero, in_blocks, index
from msops._loops.to_c.interchange import orders
from msops._loops.to_c.products import products_of
from msops._loops.to_c.widening import without_locals

_FEWEST_ROWS = 32
"""Rows of a block; fewer gain little from tiles."""
_FEWEST_BLOCKS = 8
"""Blocks of a loop that threads may share."""
_MOST_BYTES = CACHE_BYTES // 2
"""Bytes that the parts of a block share: they stay in a cache."""


def block_rows(kernel: Kernel) -> Kernel:
    """Returns the kernel with such loops in blocks."""
    blocked = rewrite_loops(kernel, _RowBlocks(kernel).loop, "parallel")
    return kernel if blocked is kernel else unique_names(simplify(blocked))


class _RowBlocks:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._names = Names(kernel)

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None to look inside of it."""
        fewest, most = difference(loop.end, loop.begin, scope.ranges) or (0, 0)
        if fewest < _FEWEST_ROWS or loads(loop.begin) or loads(loop.end):
            return None
        body, own = without_locals(loop.body)
        names = {buffer.name for buffer in own}
        waiting = {n for n, stmt in enumerate(body) if _waits(stmt, names)}
        if not waiting:
            return None
        shared = _shared(_parts(body, waiting), names)
        row = sum(size_bytes(buffer) for buffer in own if buffer.name in shared)
        size = min(most, _MOST_BYTES // max(1, row))
        if not scope.is_parallel:
            size = min(size, max(_FEWEST_ROWS, most // _FEWEST_BLOCKS))
        if size < _FEWEST_ROWS:
            return None
        size, count = even_blocks(most, size)

        def split(block: For, number: Var) -> tuple[Stmt, ...]:
            (around,) = scope.inside(For(number.name, integer(0), integer(count), ()))
            return self._split(block, size, waiting, around) or ()

        blocks = in_blocks(loop, size, self._names, split)
        return (blocks,) if blocks.body else None

    def _split(
        self, loop: For, size: int, waiting: Collection[int], scope: Scope
    ) -> tuple[Stmt, ...] | None:
        """Returns a loop in parts, of which some are products; None if none is.

        Args:
          loop: the loop.
          size: the greatest number of its iterations.
          waiting: the statements that may be products, by number.
          scope: the scope around the loop.
        """
        body, own = without_locals(loop.body)
        rows = {b.name: dataclasses.replace(b, shape=(size, *b.shape)) for b in own}
        for buffer in rows.values():
            (scope,) = scope.inside(Local(buffer, ()))
        products: dict[int, For] = {}
        for number in waiting:
            alone = _in_rows(with_parts(loop, body=(body[number],)), rows, scope.ranges)
            for nest in orders(alone, scope):
                if products_of(self._kernel, nest, scope):
                    products[number] = nest
                    break
        if not products:
            return None
        parts = _parts(body, products)
        shared = _shared(parts, rows)
        run: tuple[Stmt, ...] = ()
        for first, part in parts:
            if first in products:
                run += (products[first],)
                continue
            inside = part
            for buffer in own:
                if buffer.name not in shared and buffer.name in _buffers(part):
                    inside = (Local(buffer, inside, location=loop.location),)
            run += (_in_rows(with_parts(loop, body=inside), shared, scope.ranges),)
        for name in shared:
            run = (Local(rows[name], run, location=loop.location),)
        return run


def _waits(stmt: Stmt, own: Collection[str]) -> bool:
    """Returns whether a statement is loops that add terms, some of them from locals of its row."""
    while isinstance(stmt, For) and stmt.kind != "serial" and len(stmt.body) == 1:
        if loads(stmt.begin) or loads(stmt.end):
            return False
        (stmt,) = stmt.body
    update = update_of(stmt) if isinstance(stmt, Store) else None
    if update is None or update.op != "add":
        return False
    return any(load.buffer in own for load in loads(update.term))


def _parts(body: tuple[Stmt, ...], alone: Collection[int]) -> list[tuple[int, tuple[Stmt, ...]]]:
    """Returns a body in parts, each with the number of its first statement.

    Args:
      body: the body.
      alone: the statements that are a part each, by number.
    """
    starts = sorted({0, *alone, *(number + 1 for number in alone if number + 1 < len(body))})
    ends = (*starts[1:], len(body))
    return [(start, body[start:end]) for start, end in zip(starts, ends, strict=True)]


def _shared(parts: Sequence[tuple[int, tuple[Stmt, ...]]], own: Iterable[str]) -> list[str]:
    """Returns which locals more than one part uses."""
    used = [_buffers(part) for _, part in parts]
    return [name for name in own if sum(name in part for part in used) > 1]


def _buffers(body: tuple[Stmt, ...]) -> set[str]:
    return {access.buffer for access in accesses_in(body)}


def _in_rows(loop: For, arrays: Collection[str], ranges: Ranges) -> For:
    """Returns a loop from zero, with arrays that have a row for each of its iterations."""
    row = index("sub", Var(loop.var), loop.begin)

    def element(access: A) -> A:
        if access.buffer not in arrays:
            return access
        return dataclasses.replace(access, indices=(row, *access.indices))

    return from_zero(with_parts(loop, body=map_accesses(loop.body, element)), ranges)
