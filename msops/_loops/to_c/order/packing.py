"""Factors of large products, copied once into the order in which tiles read them.

A tile goes down its columns, so that each of its terms is in another row of the factor, often in
another page. Every block of rows would fetch an array in this way, even one too large for the
caches near the processor. A panel has the columns of one tile, row after row, so each block reads
it forwards. A panel may also hold an expression of the factor, such as `x[k, j] - mean[j]`, which
is then computed once.

Where the columns of a factor are apart in memory, as those of `w[j, k]`, vectors of them exist in
panels alone. Then a small product has panels, too, also one whose rows have different lengths, as
of a triangle: a block of rows then computes all tiles that any of its rows reaches.

Source: K. Goto, R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication", TOMS 34(3),
2008.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from msops._loops.analysis.costs import CACHE_BYTES, fixed_trips
from msops._loops.ir.algebra import integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Cast,
    Expr,
    For,
    Load,
    Local,
    Stmt,
    Store,
    Unary,
    Var,
)
from msops._loops.ir.operators import itemsize, size_bytes
from msops._loops.ir.walk import (
    declared_in,
    loads,
    loads_in,
    map_bodies,
    operands,
    own_expressions,
    rewrite,
    statements,
    stored_in,
    substitute,
    variables,
    with_parts,
)
from msops._loops.passes.elements import exists
from msops._loops.passes.simplify_expressions import difference
from msops._loops.to_c.facts.blocks import index
from msops._loops.to_c.facts.strides import coefficient, stride
from msops._loops.to_c.order.sums import Sum

_FEWEST_BYTES = CACHE_BYTES // 2
"""Bytes of panels: a cache has to hold the other factor and the sums, too."""
_FEWEST_ROWS = 32
"""Rows that read a panel: with so many, filling it takes a small share of the time."""
_LONG_SUM = 128
_FEWEST_COLUMNS = 16
"""Columns of a panel in which long sums of columns apart are faster than one by one."""
_FEWEST_TILES = 4
"""Tiles that read a strip: with so many, filling it takes a small share of the time."""
_MOST_STRIP_BYTES = 1 << 14
"""Bytes of a strip: half of the first-level cache, so that it stays there."""


@dataclass(frozen=True)
class Panels:
    """A part of the terms of a sum, in the order in which its tiles read it.

    Attributes:
      value: the part.
      buffer: their memory, indexed by tile, term and column of the tile.
      firsts: the first iterations of the loops over terms.
    """

    value: Expr
    buffer: Buffer
    firsts: tuple[int, ...]

    def load(self, nest: Sequence[For], tile: Expr, first: Expr) -> Load:
        """Returns the load of the part from the panels.

        Args:
          nest: the loops of the sum.
          tile: the number of the tile.
          first: its first column.
        """
        *terms, last = nest
        at = (tile, *_offsets(terms, self.firsts), index("sub", Var(last.var), first))
        return Load(self.buffer.name, at, self.buffer.dtype)


@dataclass(frozen=True)
class Strip:
    """A part of the terms of a block of rows, in the order in which all their tiles read it.

    Attributes:
      value: the part.
      buffer: its memory, indexed by term and row.
      load: the load of the part from the strip.
    """

    value: Expr
    buffer: Buffer
    load: Load


def pack(
    found: Sum, rows: For, buffers: Mapping[str, Buffer], names: Names
) -> tuple[tuple[Panels, tuple[Stmt, ...]], ...]:
    """Returns panels for the terms of a sum, each with the loops that fill it.

    A small product has none, unless columns are apart in memory.

    Args:
      found: the sum.
      rows: the loop over its rows.
      buffers: the buffers of the kernel, by name.
      names: the names of the kernel.
    """
    made = []
    for value, shape in _packed(found, rows, buffers).items():
        panels = Panels(value, Buffer(names.fresh("panels"), shape, value.dtype), found.firsts)
        made.append((panels, tuple(_filling(panels, found, rows, names))))
    return tuple(made)


def parts_with_columns_apart(
    found: Sum, rows: For, buffers: Mapping[str, Buffer]
) -> tuple[Expr, ...]:
    """Returns the parts of terms whose columns are apart in memory, and that `pack` packs.

    Args:
      found: the sum.
      rows: the loop over its rows.
      buffers: the buffers of the kernel, by name.
    """
    packed = _packed(found, rows, buffers)
    return tuple(value for value in packed if _is_strided(value, found, buffers))


def _packed(found: Sum, rows: For, buffers: Mapping[str, Buffer]) -> dict[Expr, tuple[int, ...]]:
    """Returns the parts of terms that panels hold, with the shapes of these."""
    packable = dict(_packable(found, rows, buffers))
    apart = [value for value in packable if _is_strided(value, found, buffers)]
    is_long_and_narrow = found.terms >= _LONG_SUM and found.mean_columns < _FEWEST_COLUMNS
    if fixed_trips(rows) is None or is_long_and_narrow:
        apart = []
    if found.common_tiles(rows) == 0:
        return packable if apart and _is_all(packable, found) else {}
    return {
        value: shape
        for value, shape in packable.items()
        if value in apart or math.prod(shape) * itemsize(value.dtype) > _FEWEST_BYTES
    }


def _is_strided(value: Expr, found: Sum, buffers: Mapping[str, Buffer]) -> bool:
    """Returns whether neighbouring columns of a value are no neighbours in memory."""
    return any(stride(load, found.nest[-1].var, buffers) not in (0, 1) for load in loads(value))


def _is_all(values: Mapping[Expr, object], found: Sum) -> bool:
    """Returns whether nothing that a term loads along its columns is outside of some values."""
    rest = rewrite(found.update.term, lambda part: integer(0) if part in values else part)
    return not any(found.nest[-1].var in variables(load) for load in loads(rest))


def _exists(value: Expr, found: Sum, buffers: Mapping[str, Buffer]) -> bool:
    """Returns whether a value exists for each column of any row with each term of any row."""
    return all(exists(load, found.ranges, buffers) for load in loads(value))


def _packable(
    found: Sum, rows: For, buffers: Mapping[str, Buffer]
) -> Iterator[tuple[Expr, tuple[int, ...]]]:
    """Yields the parts of terms that panels may hold, with the shapes of these."""
    if (difference(rows.end, rows.begin, found.ranges) or (0, 0))[0] < _FEWEST_ROWS:
        return
    bounds = [bound for part in found.nest for bound in (part.begin, part.end)]
    # Then about each number between the first and the last term of any row is a term of some row.
    if any(coefficient(bound, rows.var) not in (-1, 0, 1) for bound in bounds):
        return
    changing = stored_in(rows.body) | declared_in(rows.body)
    if found.common_tiles(rows) == 0:
        tiles = -(-found.column_extent // found.width)
    else:
        tiles = found.common_tiles(rows) + bool(found.last_width(rows))
    shape = (tiles, *found.extents, found.width)
    for value in _parts_along(found.update.term, found.nest[-1].var, rows.var):
        read = {load.buffer for load in loads(value)}
        size = math.prod(shape) * itemsize(value.dtype)
        is_small = size <= 2 * max(size_bytes(buffers[name]) for name in read)
        if is_small and not read & changing and _exists(value, found, buffers):
            yield value, shape


def pack_rows(found: Sum, rows: For, names: Names) -> tuple[Strip, ...]:
    """Returns strips for the parts of terms that a row does not read forwards as they are.

    These are expressions, and loads that touch another line of memory for each term.

    Args:
      found: the sum.
      rows: the loop over the rows of a block.
      names: of the kernel.
    """
    if found.common_tiles(rows) < _FEWEST_TILES:
        return ()
    *terms, last = found.nest
    strips = []
    for value in _parts_along(found.update.term, rows.var, last.var):
        buffer = Buffer(names.fresh("strip"), (*found.extents, found.rows), value.dtype)
        at = (*_offsets(terms, found.firsts), index("sub", Var(rows.var), rows.begin))
        is_forwards = isinstance(value, Load) and value.indices[-1] == Var(terms[-1].var)
        if not is_forwards and size_bytes(buffer) <= _MOST_STRIP_BYTES:
            strips.append(Strip(value, buffer, Load(buffer.name, at, buffer.dtype)))
    return tuple(strips)


def _parts_along(term: Expr, moving: str, still: str) -> dict[Expr, None]:
    """Returns the largest parts of a term that move with one loop variable, and not with another.

    Parts of a choice are left out: the one that is not chosen may be out of range.
    """
    used = variables(term)
    if moving in used and still not in used and loads(term):
        return {term: None}
    found: dict[Expr, None] = {}
    if isinstance(term, Binary | Unary | Cast):
        for part in operands(term):
            found |= _parts_along(part, moving, still)
    return found


def _offsets(loops: Sequence[For], firsts: Sequence[int]) -> tuple[Expr, ...]:
    """Returns the number of iterations of each loop that came before."""
    pairs = zip(loops, firsts, strict=True)
    return tuple(index("sub", Var(loop.var), integer(first)) for loop, first in pairs)


def _filling(panels: Panels, found: Sum, rows: For, names: Names) -> Iterator[Stmt]:
    """Yields the loops that copy the terms of all rows: for the whole tiles, and for the last."""
    last = found.nest[-1]
    tile, width = names.fresh(f"{last.var}_block"), found.width
    last_width = found.last_width(rows) or 0
    if found.common_tiles(rows) == 0:
        count = found.column_extent // width
        begin: Expr = integer(found.first_column)
        last_width = found.column_extent % width
        last_first: Expr = integer(found.first_column + count * width)
    else:
        count = found.common_tiles(rows)
        begin = last.begin
        last_first = index("sub", last.end, integer(last_width))
    first = index("add", begin, index("mul", Var(tile), integer(width)))
    body = (_filling_of_tile(panels, found, rows, names, Var(tile), first, width),)
    yield For(tile, integer(0), integer(count), body, "parallel", location=rows.location)
    if last_width:
        yield _filling_of_tile(panels, found, rows, names, integer(count), last_first, last_width)


def _filling_of_tile(
    panels: Panels, found: Sum, rows: For, names: Names, tile: Expr, first: Expr, width: int
) -> Stmt:
    """Returns the loops that copy the terms of one tile."""
    *reductions, last = found.nest
    lane = names.fresh("lane")
    column = index("add", first, Var(lane))
    load = panels.load(found.nest, tile, first)
    at = tuple(substitute(each, {last.var: column}) for each in load.indices)
    stmt: Stmt = Store(load.buffer, at, substitute(panels.value, {last.var: column}))
    stmt = For(lane, integer(0), integer(width), (stmt,), "parallel")
    end_row = index("sub", rows.end, integer(1))
    for part in reversed(reductions):
        begins_later = (coefficient(part.begin, rows.var) or 0) > 0
        ends_later = (coefficient(part.end, rows.var) or 0) > 0
        begin = substitute(part.begin, {rows.var: rows.begin if begins_later else end_row})
        end = substitute(part.end, {rows.var: end_row if ends_later else rows.begin})
        stmt = with_parts(part, begin=begin, end=end, body=(stmt,), kind="parallel")
    return stmt


def fill_once(body: tuple[Stmt, ...], panels: Collection[str]) -> tuple[Stmt, ...]:
    """Returns statements with panels filled before the loops that do not change what they hold.

    Args:
      body: the statements.
      panels: the names of the panels. Each is a local that its first statements fill.
    """
    return tuple(stmt for part in body for stmt in _filled(*_outside(part, panels)))


def _filled(panels: Sequence[Local], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Returns statements inside of panels."""
    for local in reversed(panels):
        body = (with_parts(local, body=(*local.body, *body)),)
    return body


def _outside(stmt: Stmt, panels: Collection[str]) -> tuple[list[Local], tuple[Stmt, ...]]:
    """Returns the panels that may be filled before a statement, and it without these.

    Each panel is a local with what fills it as its body.
    """
    outside: list[Local] = []
    match stmt:
        case Local(buffer=Buffer(name=name), body=body) if name in panels:
            fills = tuple(itertools.takewhile(lambda part: stored_in((part,)) == {name}, body))
            outside.append(with_parts(stmt, body=fills))
            inside = body[len(fills) :]
        case For(body=inside) | Local(body=inside):
            pass
        case _:
            return [], (map_bodies(stmt, partial(fill_once, panels=panels)),)
    run: tuple[Stmt, ...] = ()
    for part in inside:
        found, rest = _outside(part, panels)
        leaving = [_may_leave(local, stmt) for local in found]
        outside += itertools.compress(found, leaving)
        run += _filled([*itertools.compress(found, (not may for may in leaving))], rest)
    is_panel = isinstance(stmt, Local) and stmt.buffer.name in panels
    return outside, run if is_panel else (with_parts(stmt, body=run),)


def _may_leave(panel: Local, around: For | Local) -> bool:
    """Returns whether a panel may be filled before a statement around it."""
    changed = stored_in(around.body) | declared_in((around,))
    if any(load.buffer in changed for load in loads_in(panel.body)):
        return False
    used = (expr for part in statements(panel.body) for expr in own_expressions(part))
    return not isinstance(around, For) or all(around.var not in variables(expr) for expr in used)
