"""Sums of several iterations of a loop are computed together, in tiles that fit the registers.

    parallel i in 0 .. 60 {                 parallel i_block in 0 .. 10 {
      reduction k in 0 .. i {                 local parts: float32[6, 96] {
        parallel j in 0 .. 96 {                 parallel j_block in 0 .. 6 {
          c[i, j] = c[i, j]          ->           local tile: float32[8] { ... of rows and vectors
            + a[i, k] * b[k, j]                     reduction k in 0 .. 6 * i_block {
        }                                             parallel lane in 0 .. 8 {
      }                                                 tile[lane] = tile[lane] + a[...] * b[...]
    }                                             ...
                                                parallel i in 6 * i_block .. 6 * i_block + 6 {
                                                  reduction k in 6 * i_block .. i { ... }
                                                  parallel j in 0 .. 96 {
                                                    c[i, j] = c[i, j] + parts[...]

An element of `b` is then fetched once for all rows of a block, and a sum stays in a register until
it is complete. Some terms are common to all rows of a block: these are summed before its first row
runs. This is right if no row of the block writes an element that its own terms or those of a later
row read. So the loop may be serial, as in a triangular solver. A row then adds its other terms
and the sum of the common ones at the place of the original sum: a reduction may be reassociated.

Source: D. Callahan, S. Carr, K. Kennedy, "Improving Register Allocation for Subscripted Variables",
PLDI 1990; the tiles of registers are those of K. Goto, R. van de Geijn, "Anatomy of
High-Performance Matrix Multiplication", TOMS 34(3), 2008.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from msops._loops.analysis.costs import (
    FIRST_CACHE_BYTES,
    arithmetic,
    computed,
    fixed_trips,
    mean_trips,
)
from msops._loops.analysis.polyhedral.side_by_side import may_be_read_early
from msops._loops.analysis.updates import sum_of
from msops._loops.ir.algebra import integer
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import Buffer, Expr, For, FunctionCall, Kernel, Local, Stmt, Store
from msops._loops.ir.ranges import Ranges
from msops._loops.ir.walk import (
    Scope,
    buffers_of,
    declared_in,
    has_bounds_of_data,
    loads,
    rewrite_loops,
    rewrite_statements,
    statements,
    variables,
    with_body,
    with_parts,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.facts.blocks import in_groups, index
from msops._loops.to_c.facts.strides import coefficient, stride
from msops._loops.to_c.order.packing import Panels, fill_once, pack, parts_with_columns_apart
from msops._loops.to_c.order.sums import ROWS, Sum
from msops._loops.to_c.order.tiles import Tile

_FEWEST_TERMS = 8
_FEWEST_ROWS = 4
"""Fewest rows of a tile. Seven positions of a convolution, as 4 and 3 rows, take 0.4 of
the time that they take without tiles."""
MOST_OPERATIONS = 6
"""Operations of a term, as of a sum of two products; more take longer than fetching elements."""
DTYPES = ("float32", "float64")


def tile_products(kernel: Kernel) -> Kernel:
    """Returns the kernel with such sums in tiles."""
    products = _Products(kernel)
    tiled = rewrite_loops(kernel, products.loop)
    if products.panels:
        tiled = with_body(tiled, fill_once(tiled.body, products.panels))
    return kernel if tiled is kernel else unique_names(simplify(tiled))


def products_of(kernel: Kernel, loop: For, scope: Scope, fewest: int = 0) -> list[Sum]:
    """Returns the sums in the rows of a loop that `tile_products` would compute in tiles.

    Args:
      kernel: the kernel.
      loop: a loop over rows, which need not be in the kernel.
      scope: the scope around the loop.
      fewest: the fewest terms of a sum, unless its columns are apart in memory.
    """
    (inside,) = scope.inside(loop)
    declared = {s.buffer.name: s.buffer for s in statements(loop.body) if isinstance(s, Local)}
    products = _Products(kernel, {**scope.buffers, **declared})
    return [
        found
        for found in _sums(loop.body, inside)
        if products.is_worth_it(found, loop, scope)
        and (found.terms >= fewest or parts_with_columns_apart(found, loop, products.buffers))
    ]


def is_row_of_product(kernel: Kernel, row: tuple[Stmt, ...], scope: Scope, fewest: int = 0) -> bool:
    """Returns whether the loop around a row has sums that `tile_products` would compute in tiles.

    Args:
      kernel: the kernel.
      row: the body of that loop, as it may be.
      scope: the scope of the body.
      fewest: the fewest terms of a sum, as for `products_of`.
    """
    if scope.outer is None or not scope.loops or scope.loops[-1].kind != "parallel":
        return False
    around = with_parts(scope.loops[-1], body=row)
    return bool(products_of(kernel, around, scope.outer, fewest))


class _Products:
    def __init__(self, kernel: Kernel, declared: Mapping[str, Buffer] = MappingProxyType({})):
        self._kernel = kernel
        self._names = Names(kernel)
        self.buffers = {**buffers_of(kernel), **declared}
        self.panels: set[str] = set()

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None to look inside of it."""
        if has_bounds_of_data(loop):
            return None
        (inside,) = scope.inside(loop)
        found = [
            _with_even_rows(each, loop)
            for each in _sums(loop.body, inside)
            if self.is_worth_it(each, loop, scope) and self._is_early(loop, each)
        ]
        if not found:
            return None
        return self._in_blocks(loop, found, scope.ranges)

    # Legality.

    def is_worth_it(self, found: Sum, loop: For, scope: Scope) -> bool:
        """Returns whether the rows of a sum share loads, and tiles can hold the sum."""
        if found.store.value.dtype not in DTYPES or found.update.op != "add":
            return False
        fewest = _FEWEST_ROWS if fixed_trips(loop) else 2 * found.rows
        if mean_trips(loop, scope.ranges) < fewest or not _is_short(found.update.term):
            return False
        bounds = [bound for part in found.nest for bound in (part.begin, part.end)]
        if any(loads(bound) or coefficient(bound, loop.var) is None for bound in bounds):
            return False
        read = loads(found.update.term)
        last = found.nest[-1]
        steps = {load: stride(load, last.var, self.buffers) for load in read}
        moves = [stride(load, loop.var, self.buffers) for load in read]
        if not {*steps.values()} <= {0, 1}:
            for part in parts_with_columns_apart(found, loop, self.buffers):
                steps |= dict.fromkeys(loads(part), 1)
        if not {*steps.values()} <= {0, 1} or 1 not in steps.values():
            return False
        if 0 not in moves or not any(moves):
            return False
        if stride(found.store, last.var, self.buffers) != 1:
            return False
        over = {part.var for part in found.reductions}
        # All terms of a sum have the same columns.
        same = (*found.store.indices, last.begin, last.end)
        if any(variables(expr) & over for expr in same) or found.terms < _FEWEST_TERMS:
            return False
        return (
            mean_trips(last, found.ranges) >= found.width and found.parts_bytes <= FIRST_CACHE_BYTES
        )

    def _is_early(self, loop: For, found: Sum) -> bool:
        """Returns whether the terms common to all rows may be computed before the rows."""
        own = declared_in(loop.body)
        if any(load.buffer in own for load in loads(found.update.term)):
            return False
        return may_be_read_early(self._kernel, loop, found.store, found.update.target)

    # Rewriting.

    def _in_blocks(self, loop: For, found: Sequence[Sum], ranges: Ranges) -> tuple[Stmt, ...]:
        """Returns the loop over blocks of rows, and the loop over the remaining rows."""
        packed = [pack(each, loop, self.buffers, self._names) for each in found]
        panels = [[panels for panels, _ in filled] for filled in packed]
        body = self._in_groups(loop, found, panels, ranges)
        for each, filling in itertools.chain(*packed):
            self.panels.add(each.buffer.name)
            body = (Local(each.buffer, (*filling, *body), location=loop.location),)
        return body

    def _in_groups(
        self, loop: For, found: Sequence[Sum], panels: Sequence[Sequence[Panels]], ranges: Ranges
    ) -> tuple[Stmt, ...]:
        rows = found[0].rows

        def inside(first: Expr) -> tuple[Stmt, ...]:
            own = with_parts(loop, begin=first, end=index("add", first, integer(rows)))
            tiles = [
                Tile(each, own, packed, self._names)
                for each, packed in zip(found, panels, strict=True)
            ]
            instead = {id(tile.sum.nest[0]): tile.in_row() for tile in tiles}
            body = rewrite_statements(loop.body, lambda stmt: instead.get(id(stmt), (stmt,)), For)
            run: tuple[Stmt, ...] = (with_parts(own, body=body),)
            for tile in tiles:
                run = (Local(tile.parts, (*tile.before_rows(), *run), location=loop.location),)
            return run

        block = self._names.fresh(f"{loop.var}_block")
        groups, *rest = in_groups(loop, rows, block, ranges, inside)
        length = fixed_trips(loop) or 0
        # The columns that one row reads may be apart, unless there are panels.
        fewest = 1 if any(panels) else 2
        match rest:
            case [For() as left] if length > rows and length % rows >= fewest:
                fewer = [replace(each, rows=length % rows) for each in found]
                return (groups, *self._in_groups(left, fewer, panels, ranges))
        return (groups, *rest)


def _sums(body: tuple[Stmt, ...], scope: Scope) -> Iterator[Sum]:
    """Yields the sums in a body that nothing but locals surrounds."""
    for stmt in body:
        match stmt:
            case Local():
                yield from _sums(stmt.body, *scope.inside(stmt))
            case For(kind="reduction"):
                found = _sum(stmt, scope)
                if found:
                    yield found


def _sum(stmt: Stmt, scope: Scope) -> Sum | None:
    """Returns a nest of reductions around a parallel loop as the sums of a row; else None."""
    nest: list[For] = []
    while isinstance(stmt, For) and len(stmt.body) == 1:
        if stmt.kind == "serial" or (nest and nest[-1].kind == "parallel"):
            return None
        nest.append(stmt)
        (scope,) = scope.inside(stmt)
        (stmt,) = stmt.body
    if not isinstance(stmt, Store) or nest[-1].kind != "parallel":
        return None
    update = sum_of(stmt)
    return Sum(tuple(nest), stmt, update, scope.ranges, ROWS) if update else None


def _with_even_rows(found: Sum, loop: For) -> Sum:
    """Returns a sum whose tiles have equally many rows, or about, if the loop has less than two."""
    trips = fixed_trips(loop)
    if trips is None:
        return found
    if trips < 2 * found.rows:
        return replace(found, rows=-(-trips // -(-trips // found.rows)))
    even = (replace(found, rows=rows) for rows in found.even_rows if trips % rows == 0)
    return next((each for each in even if each.parts_bytes <= FIRST_CACHE_BYTES), found)


def _is_short(term: Expr) -> bool:
    return arithmetic(term) <= MOST_OPERATIONS and not any(
        isinstance(part, FunctionCall) for part in computed(term)
    )
