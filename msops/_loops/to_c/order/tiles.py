"""One sum in tiles of registers: the sums of several rows, side by side in vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msops._loops.ir.algebra import integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Binary, BinaryOp, Buffer, Expr, For, Load, Local, Stmt, Store, Var
from msops._loops.ir.walk import rewrite, substitute, with_parts
from msops._loops.to_c.facts.blocks import index
from msops._loops.to_c.facts.strides import coefficient
from msops._loops.to_c.order.packing import Panels, Strip, pack_rows
from msops._loops.to_c.order.sums import Sum


class Tile:
    """Builds the statements of one sum in a block of rows.

    Attributes:
      sum: the sum.
      parts: the sums of the terms that are common to all rows, one for each row.
    """

    def __init__(self, found: Sum, rows: For, panels: Sequence[Panels], names: Names) -> None:
        self.sum = found
        self._panels = panels
        self._loop = rows
        self._names = names
        # Panels hold whole tiles, of which rows of different lengths have some elements each.
        self._is_whole = bool(panels) and found.common_tiles(rows) == 0
        # The iterations that all rows have.
        self._common = [(self._greatest(p.begin), self._least(p.end)) for p in found.nest]
        columns = found.columns
        if self._is_whole:
            last = found.nest[-1]
            self._common[-1] = (self._least(last.begin), self._greatest(last.end))
            columns = (-(-(columns + found.rows) // found.width) + 1) * found.width
        dtype = found.store.value.dtype
        name = names.fresh(f"{found.store.buffer}_parts")
        self.parts = Buffer(name, (found.rows, columns), dtype)
        self._strips = pack_rows(found, rows, names)

    def _greatest(self, bound: Expr) -> Expr:
        """Returns the greatest value that a bound has in any row of the block."""
        grows = (coefficient(bound, self._loop.var) or 0) > 0
        return self._of_row(bound, self.sum.rows - 1 if grows else 0)

    def _least(self, bound: Expr) -> Expr:
        """Returns the least value that a bound has in any row of the block."""
        grows = (coefficient(bound, self._loop.var) or 0) > 0
        return self._of_row(bound, 0 if grows else self.sum.rows - 1)

    def _of_row(self, expr: Expr, row: int) -> Expr:
        return substitute(expr, {self._loop.var: index("add", self._loop.begin, integer(row))})

    def before_rows(self) -> tuple[Stmt, ...]:
        """Returns the statements that sum the terms common to all rows."""
        body = self._tiles()
        for strip in self._strips:
            body = (Local(strip.buffer, (self._filling(strip), *body)),)
        return body

    def _filling(self, strip: Strip) -> Stmt:
        """Returns the loops that fill a strip."""
        store = Store(strip.buffer.name, strip.load.indices, strip.value)
        rows = with_parts(self._loop, body=(store,), kind="parallel")
        (stmt,) = self._in_common(self.sum.nest[:-1], (rows,))
        return stmt

    def _tiles(self) -> tuple[Stmt, ...]:
        """Returns the loops that sum vectors."""
        last = self.sum.nest[-1]
        begin, end = self._common[-1]
        width = integer(self.sum.width)
        if self._is_whole:
            return (self._whole_tiles(),)
        span = index("max", index("sub", end, begin), integer(0))
        count = index("floordiv", span, width)
        block = self._names.fresh(f"{last.var}_block")
        first = index("add", begin, index("mul", Var(block), width))
        tile = self._registers(self._packed(Var(block), first), first, self.sum.width)
        whole = For(block, integer(0), count, (tile,), "parallel")
        last_width = self.sum.last_width(self._loop)
        if last_width is None:
            rest = index("add", begin, index("mul", count, width))
            return (whole, *(self._columns_left(row, rest, end) for row in range(self.sum.rows)))
        if last_width == 0:
            return (whole,)
        at = index("sub", end, integer(last_width))
        return (whole, self._registers(self._packed(count, at), at, last_width))

    def _whole_tiles(self) -> Stmt:
        """Returns the loop over the tiles of panels that have columns of any row."""
        last = self.sum.nest[-1]
        width, origin = self.sum.width, integer(self.sum.first_column)
        begin, end = (index("sub", bound, origin) for bound in self._common[-1])
        block = self._names.fresh(f"{last.var}_block")
        first = index("add", origin, index("mul", Var(block), integer(width)))
        tile = self._registers(self._packed(Var(block), first), first, width)
        count = index("floordiv", index("add", end, integer(width - 1)), integer(width))
        begin = index("floordiv", begin, integer(width))
        return For(block, begin, count, (tile,), "parallel")

    def _packed(self, tile: Expr, first: Expr) -> Expr:
        """Returns the term with the parts that are in strips and panels, for one tile."""
        loads = {strip.value: strip.load for strip in self._strips}
        loads |= {each.value: each.load(self.sum.nest, tile, first) for each in self._panels}
        return _replaced(self.sum.update.term, loads)

    def _registers(self, term: Expr, first: Expr, width: int) -> Stmt:
        """Returns the statements that sum in registers and store the sums in `parts`.

        Args:
          term: the term of the sums.
          first: the first element of a row.
          width: the number of elements of a row.
        """
        found, dtype = self.sum, self.parts.dtype
        lane = self._names.fresh("lane")
        at = (Var(lane),)
        tiles = [
            (Buffer(self._names.fresh("tile"), (found.lanes,), dtype), row, column)
            for row in range(found.rows)
            for column in self._columns(first, lane, width)
        ]

        def lanes(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
            return (For(lane, integer(0), integer(found.lanes), body, "parallel"),)

        adding = tuple(
            Store(tile.name, at, _sum(Load(tile.name, at, dtype), self._term(term, row, column)))
            for tile, row, column in tiles
        )
        keeping = tuple(
            Store(self.parts.name, self._part(integer(row), column), Load(tile.name, at, dtype))
            for tile, row, column in tiles
        )
        body = (*self._in_common(found.reductions, lanes(adding)), *lanes(keeping))
        for tile, _, _ in reversed(tiles):
            body = (Local(tile, body),)
        return body[0]

    def _columns(self, first: Expr, lane: str, width: int) -> list[Expr]:
        """Returns the columns of a lane, one for each vector from a first element on."""
        starts = range(0, width, self.sum.lanes)
        return [index("add", index("add", first, integer(start)), Var(lane)) for start in starts]

    def _columns_left(self, row: int, begin: Expr, end: Expr) -> Stmt:
        """Returns the loops that sum the last elements of a row, which fill no vector."""
        last = self.sum.nest[-1]
        at = self._part(integer(row), Var(last.var))
        value = _sum(
            Load(self.parts.name, at, self.parts.dtype), self._term(self.sum.update.term, row, None)
        )
        body = (For(last.var, begin, end, (Store(self.parts.name, at, value),), "parallel"),)
        (stmt,) = self._in_common(self.sum.nest[:-1], body)
        return stmt

    def _in_common(self, loops: Sequence[For], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Returns loops over the iterations that all rows have in common."""
        for loop, (begin, end) in reversed([*zip(loops, self._common, strict=False)]):
            body = (with_parts(loop, begin=begin, end=end, body=body),)
        return body

    def _term(self, term: Expr, row: int, column: Expr | None) -> Expr:
        term = self._of_row(term, row)
        return term if column is None else substitute(term, {self.sum.nest[-1].var: column})

    def _part(self, row: Expr, column: Expr) -> tuple[Expr, ...]:
        """Returns the indices of a sum in `parts`."""
        return (row, index("sub", column, self._first_part))

    @property
    def _first_part(self) -> Expr:
        """The column of the first element of `parts`."""
        begin, _ = self._common[-1]
        if not self._is_whole:
            return begin
        origin, width = integer(self.sum.first_column), integer(self.sum.width)
        tile = index("floordiv", index("sub", begin, origin), width)
        return index("add", origin, index("mul", tile, width))

    def in_row(self) -> tuple[Stmt, ...]:
        """Returns the statements of a row: its own terms, and then the sum of the common ones."""
        found = self.sum
        row = index("sub", Var(self._loop.var), self._loop.begin)
        last = found.nest[-1]
        part = Load(self.parts.name, self._part(row, Var(last.var)), self.parts.dtype)
        op: BinaryOp = "sub" if found.update.is_negated else "add"
        value = Binary(op, found.update.target, part, part.dtype)
        begin, end = (last.begin, last.end) if self._is_whole else self._common[-1]
        adding = with_parts(found.store, value=value)
        return (*self._own_terms(0), with_parts(last, begin=begin, end=end, body=(adding,)))

    def _own_terms(self, depth: int) -> Iterator[Stmt]:
        """Yields loops over the terms not common to all rows, from a depth of the nest on."""
        if depth == len(self.sum.nest) - self._is_whole:
            return
        loop, (begin, end) = self.sum.nest[depth], self._common[depth]
        inside = tuple(self._own_terms(depth + 1))
        if coefficient(loop.begin, self._loop.var):
            yield with_parts(loop, end=index("min", loop.end, begin))
        if inside:
            yield with_parts(loop, begin=begin, end=end, body=inside)
        if coefficient(loop.end, self._loop.var):
            yield with_parts(loop, begin=index("max", begin, end))


def _sum(left: Expr, right: Expr) -> Expr:
    return Binary("add", left, right, left.dtype)


def _replaced(expr: Expr, parts: Mapping[Expr, Expr]) -> Expr:
    return rewrite(expr, lambda part: parts.get(part, part))
