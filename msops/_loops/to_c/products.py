"""Sums of several iterations of a loop are computed together, in tiles that fit the registers.

    parallel i in 0 .. 64 {                 parallel i_block in 0 .. 16 {
      reduction k in 0 .. i {                 local parts: float32[4, 96] {
        parallel j in 0 .. 96 {                 parallel j_block in 0 .. 4 {
          c[i, j] = c[i, j]          ->           local tile: float32[8] { ... of rows and vectors
            + a[i, k] * b[k, j]                     reduction k in 0 .. 4 * i_block {
        }                                             parallel lane in 0 .. 8 {
      }                                                 tile[lane] = tile[lane] + a[...] * b[...]
    }                                             ...
                                                parallel i in 4 * i_block .. 4 * i_block + 4 {
                                                  reduction k in 4 * i_block .. i { ... }
                                                  parallel j in 0 .. 96 {
                                                    c[i, j] = c[i, j] + parts[...]

An element of `b` is then fetched once for all rows of a block, and a sum stays in a register until
it is complete. The terms that all rows of a block have are summed before its first row runs. No row
of the block may write what they read, before the row that they are of: then they are the same
there. So the loop may have an order, as that of a triangular solver has. A row adds the terms of
its own, and the sum, where its terms were: a reduction may be reassociated.

Sums of one element go the same way, `reduction k { s[] = s[] + a[i, k] * b[j, k] }` in a loop over
j: those of several rows wait for each other no longer.

Source: D. Callahan, S. Carr, K. Kennedy, "Improving Register Allocation for Subscripted Variables",
PLDI 1990; the tiles of registers are those of K. Goto, R. van de Geijn, "Anatomy of
High-Performance Matrix Multiplication", TOMS 34(3), 2008.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msops._base.dtypes import as_dtype
from msops._loops.analysis.costs import arithmetic, computed, mean_trips
from msops._loops.analysis.updates import Update, sum_of
from msops._loops.ir.building import integer
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Binary,
    BinaryOp,
    Buffer,
    Expr,
    For,
    FunctionCall,
    Kernel,
    Load,
    Local,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.ranges import Ranges, dtype_range, range_of
from msops._loops.ir.walk import (
    Scope,
    buffers_of,
    loads,
    rewrite_loops,
    rewrite_statements,
    statements,
    substitute,
    variables,
    with_parts,
)
from msops._loops.passes.simplify import simplify
from msops._loops.passes.simplify_expressions import difference
from msops._loops.to_c.blocks import index
from msops._loops.to_c.cost import VECTOR_BYTES
from msops._loops.to_c.strides import coefficient, stride

ROWS = 4
"""Rows of a tile of vectors."""
VECTORS = 3
"""Vectors of each row of a tile. The sums of all rows take 12 of 16 registers."""
DOTS = 4
"""Sums of one element that are computed together; each takes a vector, too."""
_PARTS_BYTES = 1 << 15
"""Of the sums of a block: they stay in the first-level cache."""
_FEWEST_TERMS = 8
LONG_SUM = 128
"""Terms from which on sums of one element go together: short ones end before they wait long."""
_MOST_OPERATIONS = 4
"""Of a term: more of them take longer than to fetch it."""
_DTYPES = ("float32", "float64")


def tile_products(kernel: Kernel) -> Kernel:
    """Returns the kernel with such sums in tiles."""
    tiled = rewrite_loops(kernel, _Products(kernel).loop)
    return kernel if tiled is kernel else unique_names(simplify(tiled))


def is_product(kernel: Kernel, loop: For, scope: Scope) -> bool:
    """Returns whether a loop, which need not be in the kernel, is rows that tiles are made of."""
    (inside,) = scope.inside(loop)
    products = _Products(kernel)
    return any(products.is_worth_it(found, loop, scope) for found in _sums(loop.body, inside))


@dataclass(frozen=True)
class _Sum:
    """A nest of one sum in the body of a loop.

    Attributes:
      nest: its loops, outermost first. The last one is parallel if sums are vectors.
      store: its store.
      update: what that is.
      ranges: of the variables of these loops and those around them.
    """

    nest: tuple[For, ...]
    store: Store
    update: Update
    ranges: Ranges

    @property
    def is_vector(self) -> bool:
        return self.nest[-1].kind == "parallel"

    @property
    def rows(self) -> int:
        """Rows that go together."""
        return ROWS if self.is_vector else DOTS

    @property
    def lanes(self) -> int:
        """Elements in a register."""
        return VECTOR_BYTES // self._itemsize if self.is_vector else 1

    @property
    def width(self) -> int:
        """Elements of a row in a tile."""
        return VECTORS * self.lanes if self.is_vector else 1

    @property
    def columns(self) -> int:
        """The most elements that the sum of a row may have."""
        if not self.is_vector:
            return 1
        span = difference(self.nest[-1].end, self.nest[-1].begin, self.ranges)
        return max(0, span[1]) if span else dtype_range(INDEX_DTYPE)[1]

    @property
    def parts_bytes(self) -> int:
        """The size of the sums of a block."""
        return self.rows * self.columns * self._itemsize

    @property
    def _itemsize(self) -> int:
        return int(as_dtype(self.store.value.dtype).dtype.itemsize)


class _Products:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._names = Names(kernel)
        self._buffers = buffers_of(kernel)

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None to look inside of it."""
        if loads(loop.begin) or loads(loop.end):
            return None
        (inside,) = scope.inside(loop)
        found = [each for each in _sums(loop.body, inside) if self.is_worth_it(each, loop, scope)]
        found = [each for each in found if each.is_vector == found[0].is_vector]
        if not found or not self._are_early(loop, found):
            return None
        return self._in_blocks(loop, found, scope.ranges)

    # Whether.

    def is_worth_it(self, found: _Sum, loop: For, scope: Scope) -> bool:
        """Returns whether rows share what one sum fetches, and tiles can hold it."""
        if found.store.value.dtype not in _DTYPES or found.update.op != "add":
            return False
        if mean_trips(loop, scope.ranges) < 2 * found.rows or not _is_short(found.update.term):
            return False
        bounds = [bound for part in found.nest for bound in (part.begin, part.end)]
        if any(loads(bound) or coefficient(bound, loop.var) is None for bound in bounds):
            return False
        read = loads(found.update.term)
        last = found.nest[-1]
        steps = [stride(load, last.var, self._buffers) for load in read]
        moves = [stride(load, loop.var, self._buffers) for load in read]
        if not {*steps} <= {0, 1} or 1 not in steps or 0 not in moves or not any(moves):
            return False
        if stride(found.store, last.var, self._buffers) != int(found.is_vector):
            return False
        reductions = found.nest[:-1] if found.is_vector else found.nest
        if any(variables(at) & {part.var for part in reductions} for at in found.store.indices):
            return False
        fewest = _FEWEST_TERMS if found.is_vector else LONG_SUM
        if math.prod(mean_trips(part, found.ranges) for part in reductions) < fewest:
            return False
        return not found.is_vector or (
            mean_trips(last, found.ranges) >= found.width and found.parts_bytes <= _PARTS_BYTES
        )

    def _are_early(self, loop: For, found: Sequence[_Sum]) -> bool:
        """Returns whether the terms that rows have in common may be computed before the rows."""
        own = {stmt.buffer.name for stmt in statements(loop.body) if isinstance(stmt, Local)}
        if any(load.buffer in own for each in found for load in loads(each.update.term)):
            return False
        # At the first compile, not with `import msops`.
        from msops._loops.analysis.polyhedral.side_by_side import may_be_read_early

        return all(
            may_be_read_early(self._kernel, loop, each.store, each.update.target) for each in found
        )

    # How.

    def _in_blocks(self, loop: For, found: Sequence[_Sum], ranges: Ranges) -> tuple[Stmt, ...]:
        """Returns the loop over blocks of rows, and that over the rows that are left."""
        rows = found[0].rows
        trips: Expr = index("sub", loop.end, loop.begin)
        if range_of(trips, ranges)[0] < 0:
            trips = index("max", trips, integer(0))
        count = index("floordiv", trips, integer(rows))
        block = self._names.fresh(f"{loop.var}_block")
        first = index("add", loop.begin, index("mul", Var(block), integer(rows)))
        own = with_parts(loop, begin=first, end=index("add", first, integer(rows)))
        tiles = [_Tile(each, own, self._names) for each in found]
        instead = {id(tile.sum.nest[0]): tile.in_row() for tile in tiles}
        body = rewrite_statements(loop.body, lambda stmt: instead.get(id(stmt), (stmt,)), For)
        run: tuple[Stmt, ...] = (with_parts(own, body=body),)
        for tile in tiles:
            run = (Local(tile.parts, (*tile.before_rows(), *run), location=loop.location),)
        rest = index("add", loop.begin, index("mul", count, integer(rows)))
        return (
            For(block, integer(0), count, run, loop.kind, location=loop.location),
            with_parts(loop, begin=rest),
        )


class _Tile:
    """Makes the statements of one sum in a block of rows.

    Attributes:
      sum: the sum.
      parts: of all rows, the sums of the terms that they have in common.
    """

    def __init__(self, found: _Sum, rows: For, names: Names) -> None:
        self.sum = found
        self._loop = rows
        self._names = names
        shape = (found.rows, found.columns) if found.is_vector else (found.rows,)
        dtype = found.store.value.dtype
        self.parts = Buffer(names.fresh(f"{found.store.buffer}_parts"), shape, dtype)
        self._common = [
            (self._innermost(p.begin, 1), self._innermost(p.end, 0)) for p in found.nest
        ]

    def _innermost(self, bound: Expr, is_begin: int) -> Expr:
        """Returns the bound of the iterations that are common to all rows."""
        grows = (coefficient(bound, self._loop.var) or 0) > 0
        return self._of_row(bound, self.sum.rows - 1 if grows == bool(is_begin) else 0)

    def _of_row(self, expr: Expr, row: int) -> Expr:
        return substitute(expr, {self._loop.var: index("add", self._loop.begin, integer(row))})

    def before_rows(self) -> tuple[Stmt, ...]:
        """Returns what sums the terms that all rows have in common."""
        if not self.sum.is_vector:
            return (self._registers(None),)
        last = self.sum.nest[-1]
        begin, end = self._common[-1]
        width = integer(self.sum.width)
        span = index("max", index("sub", end, begin), integer(0))
        count = index("floordiv", span, width)
        block = self._names.fresh(f"{last.var}_block")
        first = index("add", begin, index("mul", Var(block), width))
        rest = index("add", begin, index("mul", count, width))
        return (
            For(block, integer(0), count, (self._registers(first),), "parallel"),
            *(self._columns_left(row, rest, end) for row in range(self.sum.rows)),
        )

    def _registers(self, first: Expr | None) -> Stmt:
        """Returns what sums in registers and keeps the sums; of vectors from a first element."""
        found, dtype = self.sum, self.parts.dtype
        lane = self._names.fresh("lane")
        shape, at = ((), ()) if first is None else ((found.lanes,), (Var(lane),))
        tiles = [
            (Buffer(self._names.fresh("tile"), shape, dtype), row, column)
            for row in range(found.rows)
            for column in self._columns(first, lane)
        ]

        def lanes(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
            if first is None:
                return body
            return (For(lane, integer(0), integer(found.lanes), body, "parallel"),)

        adding = tuple(
            Store(tile.name, at, _sum(Load(tile.name, at, dtype), self._term(row, column)))
            for tile, row, column in tiles
        )
        keeping = tuple(
            Store(self.parts.name, self._part(integer(row), column), Load(tile.name, at, dtype))
            for tile, row, column in tiles
        )
        loops = found.nest if first is None else found.nest[:-1]
        body = (*self._in_common(loops, lanes(adding)), *lanes(keeping))
        for tile, _, _ in reversed(tiles):
            body = (Local(tile, body),)
        return body[0]

    def _columns(self, first: Expr | None, lane: str) -> list[Expr | None]:
        """Returns the columns of a lane: one in each vector from a first element on."""
        if first is None:
            return [None]
        starts = range(0, self.sum.width, self.sum.lanes)
        return [index("add", index("add", first, integer(start)), Var(lane)) for start in starts]

    def _columns_left(self, row: int, begin: Expr, end: Expr) -> Stmt:
        """Returns what sums the last elements of a row, which fill no vector."""
        last = self.sum.nest[-1]
        at = self._part(integer(row), Var(last.var))
        value = _sum(Load(self.parts.name, at, self.parts.dtype), self._term(row, None))
        body = (For(last.var, begin, end, (Store(self.parts.name, at, value),), "parallel"),)
        (stmt,) = self._in_common(self.sum.nest[:-1], body)
        return stmt

    def _in_common(self, loops: Sequence[For], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Returns loops over what rows have in common."""
        for loop, (begin, end) in reversed([*zip(loops, self._common, strict=False)]):
            body = (with_parts(loop, begin=begin, end=end, body=body),)
        return body

    def _term(self, row: int, column: Expr | None) -> Expr:
        term = self._of_row(self.sum.update.term, row)
        return term if column is None else substitute(term, {self.sum.nest[-1].var: column})

    def _part(self, row: Expr, column: Expr | None) -> tuple[Expr, ...]:
        """Returns where a sum is among the parts."""
        if not self.sum.is_vector:
            return (row,)
        assert column is not None
        return (row, index("sub", column, self._common[-1][0]))

    def in_row(self) -> tuple[Stmt, ...]:
        """Returns what a row does where the sum was: the terms of its own, and the sum."""
        found = self.sum
        row = index("sub", Var(self._loop.var), self._loop.begin)
        last = found.nest[-1]
        part = Load(self.parts.name, self._part(row, Var(last.var)), self.parts.dtype)
        op: BinaryOp = "sub" if found.update.is_negated else "add"
        value = Binary(op, found.update.target, part, part.dtype)
        stmt: Stmt = with_parts(found.store, value=value)
        if found.is_vector:
            begin, end = self._common[-1]
            stmt = with_parts(last, begin=begin, end=end, body=(stmt,))
        return (*self._own_terms(0), stmt)

    def _own_terms(self, depth: int) -> Iterator[Stmt]:
        """Yields loops over the terms that not all rows have, from a depth of the nest on."""
        if depth == len(self.sum.nest):
            return
        loop, (begin, end) = self.sum.nest[depth], self._common[depth]
        inside = tuple(self._own_terms(depth + 1))
        if coefficient(loop.begin, self._loop.var):
            yield with_parts(loop, end=index("min", loop.end, begin))
        if inside:
            yield with_parts(loop, begin=begin, end=end, body=inside)
        if coefficient(loop.end, self._loop.var):
            yield with_parts(loop, begin=index("max", begin, end))


def _sums(body: tuple[Stmt, ...], scope: Scope) -> Iterator[_Sum]:
    """Yields the nests of one sum in a body, under nothing but locals."""
    for stmt in body:
        match stmt:
            case Local():
                yield from _sums(stmt.body, *scope.inside(stmt))
            case For(kind="reduction"):
                found = _sum_in(stmt, scope)
                if found:
                    yield found


def _sum_in(stmt: Stmt, scope: Scope) -> _Sum | None:
    """Returns the sum that a nest of reductions is, the last loop of which may be parallel."""
    nest: list[For] = []
    while isinstance(stmt, For) and len(stmt.body) == 1:
        if stmt.kind == "serial" or (nest and nest[-1].kind == "parallel"):
            return None
        nest.append(stmt)
        (scope,) = scope.inside(stmt)
        (stmt,) = stmt.body
    if not isinstance(stmt, Store):
        return None
    update = sum_of(stmt)
    return _Sum(tuple(nest), stmt, update, scope.ranges) if update else None


def _is_short(term: Expr) -> bool:
    return arithmetic(term) <= _MOST_OPERATIONS and not any(
        isinstance(part, FunctionCall) for part in computed(term)
    )


def _sum(left: Expr, right: Expr) -> Expr:
    return Binary("add", left, right, left.dtype)
