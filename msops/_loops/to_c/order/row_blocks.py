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

The sum of a neuron is mostly a variable of a loop in the row. There it first becomes an array, so
that the sum is a loop of its own.

This is loop distribution with expansion of locals, as in deferring.py, and interchange.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from msops._loops.analysis.costs import CACHE_BYTES, fixed_trips
from msops._loops.analysis.updates import update_of
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import Buffer, For, Kernel, Local, Stmt, Store, Var
from msops._loops.ir.operators import size_bytes
from msops._loops.ir.ranges import Ranges
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    declared_in,
    has_bounds_of_data,
    loads,
    rewrite_loops,
    stored_in,
    with_parts,
)
from msops._loops.passes.simplify import simplify
from msops._loops.passes.simplify_expressions import difference
from msops._loops.to_c.clean.reductions import SUMMED_IN_FLOAT32
from msops._loops.to_c.facts.blocks import from_zero, in_even_blocks, index, with_index
from msops._loops.to_c.facts.bodies import without_locals
from msops._loops.to_c.order.exchange import of_its_kind, orders
from msops._loops.to_c.order.products import products_of
from msops._loops.to_c.order.widening import in_arrays

_FEWEST_ROWS = 32
"""Rows of a block; fewer gain little from tiles."""
_FEWEST_BLOCKS = 8
"""Blocks of a loop that threads may share."""
_MOST_BYTES = CACHE_BYTES // 2
"""Bytes that the parts of a block share: they stay in a cache."""


def block_rows(kernel: Kernel) -> Kernel:
    """Returns the kernel with blocks of rows whose products are loops of their own."""
    blocked = rewrite_loops(kernel, _Blocking(kernel).loop, "parallel")
    return kernel if blocked is kernel else unique_names(simplify(blocked))


class _Blocking:
    """Splits rows into blocks. In a block the products of a row run for all rows together."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._names = Names(kernel)

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None to look inside of it."""
        fewest, most = difference(loop.end, loop.begin, scope.ranges) or (0, 0)
        if fewest < _FEWEST_ROWS or has_bounds_of_data(loop):
            return None
        changing = stored_in(loop.body) | declared_in(loop.body)
        prepared = with_parts(loop, body=_with_sums_apart(loop.body, changing))
        found = self._in_blocks(prepared, scope, most)
        # What was prepared has more arrays, whose rows may be too large for a cache.
        return found or (self._in_blocks(loop, scope, most) if prepared != loop else None)

    def _in_blocks(self, loop: For, scope: Scope, most: int) -> tuple[Stmt, ...] | None:
        """Returns the loop over blocks of at most so many rows; None if nothing is alone."""
        body, own = without_locals(loop.body)
        names = {buffer.name for buffer in own}
        changing = stored_in(loop.body) | declared_in(loop.body)
        found = {n for n, stmt in enumerate(body) if _waits(stmt, changing)}
        if not found:
            return None
        shared = _shared(body, found, names)
        row = sum(size_bytes(buffer) for buffer in own if buffer.name in shared)
        size = min(most, _MOST_BYTES // max(1, row))
        if not scope.is_parallel:
            size = min(size, max(_FEWEST_ROWS, most // _FEWEST_BLOCKS))
        if size < _FEWEST_ROWS:
            return None

        def split(block: For, rows: int, around: Scope) -> tuple[Stmt, ...]:
            return self._split(block, rows, found, around)

        return in_even_blocks(loop, scope, (_FEWEST_ROWS, size), self._names, split)

    def _split(
        self, loop: For, size: int, found: Collection[int], scope: Scope
    ) -> tuple[Stmt, ...]:
        """Returns a block of rows in parts; empty if none is alone.

        Args:
          loop: the loop over the rows of the block.
          size: the greatest number of its iterations.
          found: the statements that may be alone, by number.
          scope: the scope around the loop.
        """
        body, own = without_locals(loop.body)
        rows = {b.name: dataclasses.replace(b, shape=(size, *b.shape)) for b in own}
        for buffer in rows.values():
            (scope,) = scope.inside(Local(buffer, ()))
        made = {n: self._alone(body[n], loop, rows, scope) for n in found}
        alone = {n: stmt for n, stmt in made.items() if stmt}
        if not alone:
            return ()
        shared = _shared(body, alone, rows)
        run: tuple[Stmt, ...] = ()
        for first, part in _parts(body, alone):
            if first in alone:
                run += (alone[first],)
                continue
            inside = part
            for buffer in own:
                if buffer.name not in shared and buffer.name in _buffers(part):
                    inside = (Local(buffer, inside, location=loop.location),)
            run += (_in_rows(with_parts(loop, body=inside), shared, scope.ranges),)
        for name in shared:
            run = (Local(rows[name], run, location=loop.location),)
        return run

    def _alone(self, stmt: Stmt, loop: For, rows: Mapping[str, Buffer], scope: Scope) -> For | None:
        """Returns a product for all rows of a block; None if it stays in its row.

        Args:
          stmt: the statement.
          loop: the loop over the rows of a block.
          rows: the locals of a row, with an element for each row.
          scope: the scope around that loop.
        """
        for nest in orders(_in_rows(with_parts(loop, body=(stmt,)), rows, scope.ranges), scope):
            if products_of(self._kernel, nest, scope):
                return nest
        return None


def _with_sums_apart(body: tuple[Stmt, ...], changing: Collection[str]) -> tuple[Stmt, ...]:
    """Returns a body with the sums in variables of its loops in loops of their own.

    As the sum of each neuron of a layer, between its start and its activation. Such a variable
    becomes an array; see widening.py, where the loop would go inside of the sum.
    """
    apart: tuple[Stmt, ...] = ()
    for stmt in body:
        if isinstance(stmt, Local):
            apart += (with_parts(stmt, body=_with_sums_apart(stmt.body, changing)),)
        else:
            apart += _split_at_sums(stmt, changing)
    return apart


def _split_at_sums(stmt: Stmt, changing: Collection[str]) -> tuple[Stmt, ...]:
    """Returns a loop in parts, each sum that reads what changes in a row by itself."""
    if not isinstance(stmt, For) or stmt.kind != "parallel":
        return (stmt,)
    inner, own = without_locals(stmt.body)
    trips = fixed_trips(stmt)
    sums = {n for n, part in enumerate(inner) if isinstance(part, For) and _waits(part, changing)}
    if not sums or trips is None or any(b.shape or b.dtype in SUMMED_IN_FLOAT32 for b in own):
        return (stmt,)
    arrays = {b.name: dataclasses.replace(b, shape=(trips,)) for b in own}
    body = in_arrays(with_parts(stmt, body=inner), arrays).body
    apart: tuple[Stmt, ...] = tuple(with_parts(stmt, body=part) for _, part in _parts(body, sums))
    for array in arrays.values():
        apart = (Local(array, apart, location=stmt.location),)
    return apart


def _waits(stmt: Stmt, changing: Collection[str]) -> bool:
    """Returns whether a statement is loops that add terms that read what changes in a row."""
    while isinstance(stmt, For) and stmt.kind != "serial" and len(stmt.body) == 1:
        if has_bounds_of_data(stmt):
            return False
        (stmt,) = stmt.body
    update = update_of(stmt) if isinstance(stmt, Store) else None
    if update is None or update.op != "add":
        return False
    return any(load.buffer in changing for load in loads(update.term))


def _parts(body: tuple[Stmt, ...], alone: Collection[int]) -> list[tuple[int, tuple[Stmt, ...]]]:
    """Returns a body in parts, each with the number of its first statement.

    Args:
      body: the body.
      alone: the statements that are a part each, by number.
    """
    starts = sorted({0, *alone, *(number + 1 for number in alone if number + 1 < len(body))})
    ends = (*starts[1:], len(body))
    return [(start, body[start:end]) for start, end in zip(starts, ends, strict=True)]


def _shared(body: tuple[Stmt, ...], alone: Collection[int], own: Iterable[str]) -> list[str]:
    """Returns which locals more than one part uses, or one that is alone."""
    used = [
        (name, first in alone) for first, part in _parts(body, alone) for name in _buffers(part)
    ]
    count = Counter(name for name, _ in used)
    return [name for name in own if count[name] > 1 or (name, True) in used]


def _buffers(body: tuple[Stmt, ...]) -> set[str]:
    return {access.buffer for access in accesses_in(body)}


def _in_rows(loop: For, arrays: Collection[str], ranges: Ranges) -> For:
    """Returns a loop from zero, with arrays that have a row for each of its iterations.

    A part of a loop whose iterations meet may be one in which they do not.
    """
    row = index("sub", Var(loop.var), loop.begin)
    rows = from_zero(with_parts(loop, body=with_index(loop.body, arrays, row)), ranges)
    return of_its_kind(rows)
