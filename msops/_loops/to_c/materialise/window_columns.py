"""Sums over windows whose terms depend on their position in a row by a column only.

In ``s[] = s[] + a[i + p, 2 * j + q]`` the column is ``2 * j + q``, of the position `j` and the
offset `q`. The offset is written as the column less a multiple of the position; then neither of the
two is left in the term.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from msops._loops.analysis.affine import INDEX_DTYPES, affine
from msops._loops.analysis.boxes import Span
from msops._loops.analysis.costs import (
    computed,
    effort,
    fixed_span,
    fixed_trips,
    mean_trips,
    width_in_float32s,
)
from msops._loops.analysis.updates import update_of
from msops._loops.ir.algebra import binary, both, integer
from msops._loops.ir.nodes import Binary, BinaryOp, Const, Expr, For, If, Load, Stmt, Store, Var
from msops._loops.ir.operators import is_float
from msops._loops.ir.ranges import Ranges, nested_ranges, range_of
from msops._loops.ir.scalars import identity
from msops._loops.ir.walk import (
    Scope,
    declared_in,
    expressions,
    loads,
    loads_in,
    map_accesses,
    map_all,
    operands,
    own_expressions,
    statements,
    stored_in,
    substitute,
    variables,
    with_parts,
    with_value,
)
from msops._loops.passes.simplify_expressions import simplified
from msops._loops.to_c.clean.reductions import SUMMED_IN_FLOAT32
from msops._loops.to_c.facts.blocks import from_zero, index
from msops._loops.to_c.facts.strides import stride

COLUMN = "<column>"
"""The variable of columns, until it has a name of its own."""
_FARTHEST = 4
"""Elements from one column to the next; vectors that skip more are slow."""
_APART = 3
"""Operations of an element in a vector of elements that are not side by side."""
_ROW = 800
"""Operations of a row of columns: its loop starts and ends, and the next one waits for its stores.
"""


@dataclass(frozen=True)
class WindowSum:
    """An element that a window adds to.

    Attributes:
      target: the element.
      op: "add", "min" or "max".
    """

    target: Load
    op: BinaryOp

    @property
    def neutral(self) -> Const:
        """The number that changes no sum."""
        dtype = self.target.dtype
        # -0.0 + x is x for 0.0, too.
        is_zero = self.op == "add" and is_float(dtype)
        return Const(-0.0 if is_zero else identity(self.op, dtype), dtype)


@dataclass(frozen=True)
class ColumnWindow:
    """A window whose terms depend on its positions by their column only.

    Attributes:
      row: the loop over positions.
      across: the loop over the columns of a window.
      offsets: the first offset, and the one after the last.
      step: columns from one position to the next; above 0.
      loops: the loops of a window but the one across it, outermost first.
      body: what they run for each column, with sums in variables of the names of their buffers.
      sums: its sums.
      ranges: of the variables around `body`.
    """

    row: For
    across: For
    offsets: Span
    step: int
    loops: tuple[For, ...]
    body: tuple[Stmt, ...]
    sums: tuple[WindowSum, ...]
    ranges: Ranges

    @property
    def column(self) -> Expr:
        """The column of a position and an offset."""
        start = index("mul", Var(self.row.var), integer(self.step))
        return index("add", start, Var(self.across.var))

    @property
    def bounds(self) -> tuple[Expr, Expr]:
        """The first column of a row, and the one after the last."""
        begin, end = self.offsets
        first = index("mul", self.row.begin, integer(self.step))
        last = index("mul", index("sub", self.row.end, integer(1)), integer(self.step))
        return index("add", first, integer(begin)), index("add", last, integer(end))

    @property
    def positions(self) -> int:
        """The number of positions of a row."""
        return fixed_trips(self.row) or 0

    @property
    def size(self) -> int:
        """The number of columns of a row."""
        begin, end = self.offsets
        return self.step * (self.positions - 1) + end - begin

    @property
    def gain(self) -> float:
        """About the time of the windows of a row, divided by that with columns."""
        begin, end = self.offsets
        # Where positions skip columns, vectors are put together from elements apart.
        load = 1 if self.step == 1 else _APART
        offsets = self.positions * (end - begin)
        terms = math.prod(mean_trips(loop, self.ranges) for loop in self.loops)
        before = offsets * terms * self._effort(load)
        columns = self.size * (terms * self._effort(1) + len(self.sums))
        after = columns + offsets * (load + 1) * len(self.sums)
        width = max(width_in_float32s(one.target.dtype) for one in self.sums)
        return width * before / (width * after + _ROW * len(self.sums))

    def _effort(self, load: int) -> int:
        """Returns the operations of a term, in which an element takes `load` to read."""
        values = [
            expr
            for stmt in statements(self.body)
            if isinstance(stmt, Store | If)
            for expr in own_expressions(stmt)
        ]
        return sum(_effort(part, load) for value in values for part in computed(value))


def _effort(part: Expr, load: int) -> int:
    match part:
        case Load(indices=indices):
            return load if indices else 0
        case Binary(op="min" | "max", dtype=dtype) if is_float(dtype):
            # A comparison, and a test for NaN.
            return 2
    return effort(part)


def window_in_columns(stmt: For, row: For, scope: Scope) -> ColumnWindow | None:
    """Returns a nest of loops as a window in columns; None if it is none.

    Args:
      stmt: the nest.
      row: the loop over positions around it; it has a fixed number of them.
      scope: the scope of the nest.
    """
    loops: list[For] = []
    conditions: list[Expr] = []
    body: tuple[Stmt, ...] = (stmt,)
    while len(body) == 1 and isinstance(loop := body[0], For) and loop.kind == "reduction":
        if fixed_span(loop) is None:
            # Around a row a window may have a fixed length.
            moved = from_zero(loop, scope.ranges)
            is_fixed = row.var not in variables(loop.begin) and fixed_span(moved) is not None
            loop, limits = (moved, []) if is_fixed else _whole(loop, row.var)
            conditions += limits
        loops.append(loop)
        body = loop.body
    if conditions:
        body = (If(both(conditions), body),)
    if len(loops) < 2 or any(isinstance(part, For) for part in statements(body)):
        return None
    sums = _sums(body, {loop.var for loop in loops})
    if not sums:
        return None
    splits = ((loops[n], (*loops[:n], *loops[n + 1 :])) for n in reversed(range(len(loops))))
    found = (_in_columns(row, *split, body, sums, scope) for split in splits)
    return next((window for window in found if window), None)


def _whole(loop: For, position: str) -> tuple[For, list[Expr]]:
    """Returns a loop over columns that limits cut as one over all offsets, with conditions.

    For `q in max(j - 3, 0) .. min(j + 4, 99)` that is `q in -3 .. 4`, whose column `j + q` is at
    least 0 and less than 99. Another loop stays as it is.
    """
    begin, end = _bound(loop.begin, "max", position), _bound(loop.end, "min", position)
    if begin is None or end is None or begin.start != end.start:
        return loop, []
    column = index("add", begin.start, Var(loop.var))
    conditions: list[Expr] = [binary("ge", column, limit) for limit in begin.limits]
    conditions += [binary("lt", column, limit) for limit in end.limits]
    offsets = integer(begin.offset), integer(end.offset)
    body = with_value(loop.body, loop.var, column)
    return with_parts(loop, begin=offsets[0], end=offsets[1], body=body), conditions


class _Bound(NamedTuple):
    """The bound `start` + `offset`, of which the first moves with the position, within limits."""

    start: Expr
    offset: int
    limits: Sequence[Expr]


def _bound(expr: Expr, op: BinaryOp, position: str) -> _Bound | None:
    """Returns a bound that moves with the position; None if it does not, or in another way.

    Args:
      expr: the bound.
      op: the operation that combines it with limits.
      position: the variable of the position.
    """
    parts = [expr]
    while any(_combines(part, op) for part in parts):
        parts = [
            each for part in parts for each in (operands(part) if _combines(part, op) else (part,))
        ]
    moving = [part for part in parts if position in variables(part)]
    found = affine(moving[0], {position}) if len(moving) == 1 else None
    if found is None or found.scalars or not found.along:
        return None
    ((_, step),) = found.along
    start = index("mul", Var(position), integer(step))
    return _Bound(start, found.constant, [part for part in parts if part is not moving[0]])


def _combines(part: Expr, op: BinaryOp) -> bool:
    return isinstance(part, Binary) and part.op == op


def _in_columns(
    row: For,
    across: For,
    others: tuple[For, ...],
    body: tuple[Stmt, ...],
    sums: tuple[WindowSum, ...],
    scope: Scope,
) -> ColumnWindow | None:
    """Returns a window in columns; None if a term depends on more than its column."""
    offsets, step = fixed_span(across), _step(body, row.var, across.var)
    # Each column between the first and the last is in a window.
    if offsets is None or step is None or not step <= offsets[1] - offsets[0]:
        return None
    stored = stored_in(row.body) | declared_in(row.body)
    for bound in (bound for loop in others for bound in (loop.begin, loop.end)):
        read = {load.buffer for load in loads(bound)}
        if not {row.var, across.var}.isdisjoint(variables(bound)) or read & stored:
            return None
    ranges = dict(nested_ranges((across, *others), scope.ranges))
    window = ColumnWindow(row, across, offsets, step, others, (), sums, ranges)
    first, after = (range_of(end, ranges) for end in window.bounds)
    ranges[COLUMN] = (first[0], after[1] - 1)
    start = index("mul", Var(row.var), integer(step))
    position: dict[str, Expr] = {across.var: index("sub", Var(COLUMN), start)}
    targets = {one.target.buffer for one in sums}
    summed = map_accesses(
        body, lambda a: dataclasses.replace(a, indices=()) if a.buffer in targets else a
    )
    column = map_all(summed, lambda expr: simplified(substitute(expr, position), ranges))
    found = [e for stmt in statements(column) for e in own_expressions(stmt)]
    if any(not {row.var, across.var}.isdisjoint(variables(e)) for e in found):
        return None
    known = declared_in(column) | targets
    if any(load.buffer in stored - known for load in loads_in(column)):
        return None
    read_ = [load for load in loads_in(column) if load.buffer in scope.buffers]
    strides = [stride(load, COLUMN, scope.buffers) for load in read_]
    if any(each is not None and abs(each) > _FARTHEST for each in strides):
        return None
    return ColumnWindow(row, across, offsets, step, others, column, sums, ranges)


def _step(body: tuple[Stmt, ...], position: str, offset: str) -> int | None:
    """Returns the columns from one position to the next, by the first column that is computed."""
    for stmt in statements(body):
        for part in (part for e in own_expressions(stmt) for part in expressions(e)):
            if part.dtype not in INDEX_DTYPES:
                continue
            found = affine(part, {position, offset})
            steps = dict(found.along) if found else {}
            if len(steps) == 2:
                step, rest = divmod(steps[position], steps[offset])
                return step if step > 0 and not rest else None
    return None


def _sums(body: tuple[Stmt, ...], inner: Set[str]) -> tuple[WindowSum, ...]:
    """Returns the sums that statements add to; none if they do anything else.

    Args:
      body: the statements in the innermost loop of a window.
      inner: the variables of the loops of the window.
    """
    own = declared_in(body)
    found: dict[str, WindowSum] = {}
    read: set[str] = set()
    for stmt in statements(body):
        if not isinstance(stmt, Store) or stmt.buffer in own:
            read |= {load.buffer for e in own_expressions(stmt) for load in loads(e)}
            continue
        update = update_of(stmt)
        if update is None or update.op not in ("add", "min", "max"):
            return ()
        target = update.target
        if target.dtype == "bool" or (update.op == "add" and target.dtype in SUMMED_IN_FLOAT32):
            return ()
        if any(loads(e) or not inner.isdisjoint(variables(e)) for e in target.indices):
            return ()
        one = WindowSum(target, update.op)
        if found.setdefault(target.buffer, one) != one:
            return ()
        read |= {load.buffer for load in loads(update.term)}
    return tuple(found.values()) if read.isdisjoint(found) else ()
