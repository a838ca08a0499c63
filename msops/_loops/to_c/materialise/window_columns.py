"""Sums over windows whose terms depend on their position in a row by a column only.

In ``s[] = s[] + a[i + p, j + q]`` the column is ``j + q``. The offset `q` is written as the column
less a multiple of the position `j`; then neither of the two is left in the term.
"""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import dataclass

from msops._loops.analysis.costs import (
    computed,
    effort,
    fixed_span,
    mean_trips,
    width_in_float32s,
)
from msops._loops.analysis.updates import update_of
from msops._loops.ir.building import binary
from msops._loops.ir.nodes import (
    Binary,
    BinaryOp,
    Const,
    Expr,
    For,
    If,
    Load,
    Stmt,
    Store,
)
from msops._loops.ir.operators import is_float
from msops._loops.ir.ranges import Ranges, dtype_range, nested_ranges, range_of
from msops._loops.ir.walk import (
    Scope,
    declared_in,
    loads,
    loads_in,
    map_all,
    own_expressions,
    rewrite_statements,
    statements,
    substitute,
    variables,
    with_parts,
)
from msops._loops.passes.simplify_expressions import simplified
from msops._loops.to_c.clean.reductions import SUMMED_IN_FLOAT32
from msops._loops.to_c.facts.blocks import from_zero
from msops._loops.to_c.facts.strides import stride
from msops._loops.to_c.materialise.column_places import COLUMN, Places, places_of

_FARTHEST = 4
"""Elements from one column to the next; vectors that skip more are slow."""
_APART = 3
"""Operations of an element in a vector of elements that are not side by side."""
_ROW = 800
"""Operations of a row of columns: its loop starts and ends, and the next one waits for its stores.
"""
_EXTREMES = 5000
"""Further operations where floats are compared: vectors with masks wait longer."""


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
    def compares_floats(self) -> bool:
        """Whether it is an extreme of floats."""
        return self.op != "add" and is_float(self.target.dtype)

    @property
    def neutral(self) -> Const:
        """The number that changes no sum."""
        dtype = self.target.dtype
        if self.op == "add":
            # -0.0 + x is x for 0.0, too.
            return Const(-0.0, dtype) if is_float(dtype) else Const(0, dtype)
        if is_float(dtype):
            return Const(math.inf if self.op == "min" else -math.inf, dtype)
        low, high = dtype_range(dtype)
        return Const(high if self.op == "min" else low, dtype)


@dataclass(frozen=True)
class ColumnWindow:
    """A window whose terms depend on its positions by their column only.

    Attributes:
      places: its columns.
      loops: its loops but the one across it, outermost first.
      body: what they run for each column, with sums in variables of the names of their buffers.
      sums: its sums.
      ranges: of the variables around `body`.
    """

    places: Places
    loops: tuple[For, ...]
    body: tuple[Stmt, ...]
    sums: tuple[WindowSum, ...]
    ranges: Ranges

    @property
    def terms(self) -> float:
        """Of a column."""
        return math.prod(mean_trips(loop, self.ranges) for loop in self.loops)

    @property
    def gain(self) -> float:
        """About the time of the windows of a row, divided by that with columns."""
        places = self.places
        begin, end = places.offsets
        # Where positions skip columns, vectors are put together from elements apart.
        load = 1 if places.step == 1 else _APART
        terms = places.positions * (end - begin)
        before = terms * self.terms * self._effort(load)
        columns = places.size * (self.terms * self._effort(1) + len(self.sums))
        after = columns + terms * (load + 1) * len(self.sums)
        width = max(width_in_float32s(one.target.dtype) for one in self.sums)
        extremes = sum(one.compares_floats and places.step == 1 for one in self.sums)
        waiting = _ROW * len(self.sums) + _EXTREMES * extremes
        return width * before / (width * after + waiting)

    def _effort(self, load: int) -> int:
        """Returns the operations of a term, in which an element takes `load` to read."""
        values = [e for stmt in statements(self.body) for e in _values(stmt)]
        return sum(_effort(part, load) for value in values for part in computed(value))


def _values(stmt: Stmt) -> tuple[Expr, ...]:
    match stmt:
        case Store(value=value):
            return (value,)
        case If(condition=condition):
            return (condition,)
    return ()


def _effort(part: Expr, load: int) -> int:
    match part:
        case Load(indices=indices):
            return load if indices else 0
        case Binary(op="min" | "max", dtype=dtype) if is_float(dtype):
            # A comparison, and a test for NaN.
            return 2
    return effort(part)


def window_in_columns(
    stmt: For, row: For, positions: int, scope: Scope, stored: Set[str]
) -> ColumnWindow | None:
    """Returns a nest of loops as a window in columns; None if it is none.

    Args:
      stmt: the nest.
      row: the loop over positions around it.
      positions: the most that it has.
      scope: the scope of the nest.
      stored: the buffers that `row` stores to.
    """
    loops: list[For] = []
    body: tuple[Stmt, ...] = (stmt,)
    while len(body) == 1 and isinstance(loop := body[0], For) and loop.kind == "reduction":
        if fixed_span(loop) is None and row.var not in variables(loop.begin):
            # Around a row a window may have a fixed length.
            moved = from_zero(loop, scope.ranges)
            loop = loop if fixed_span(moved) is None else moved
        loops.append(loop)
        body = loop.body
    if len(loops) < 2 or any(isinstance(part, For) for part in statements(body)):
        return None
    sums = _sums(body, {loop.var for loop in loops})
    if not sums:
        return None
    for number in reversed(range(len(loops))):
        others = (*loops[:number], *loops[number + 1 :])
        places = places_of(row, positions, loops[number], others, body, stored)
        window = places and _in_columns(places, others, body, sums, scope, stored)
        if window:
            return window
    return None


def _in_columns(
    places: Places,
    others: tuple[For, ...],
    body: tuple[Stmt, ...],
    sums: tuple[WindowSum, ...],
    scope: Scope,
    stored: Set[str],
) -> ColumnWindow | None:
    """Returns a window in columns; None if a term depends on more than its column."""
    position = places.substitution
    if position is None or not places.touch:
        return None
    ranges = dict(nested_ranges((places.across, *others), scope.ranges))
    first, after = (range_of(end, ranges) for end in places.columns)
    ranges[COLUMN] = (first[0], after[1] - 1)

    def at_column(expr: Expr) -> Expr:
        return simplified(substitute(expr, position), ranges)

    column = map_all(_in_variables(body, sums), at_column)
    moving = {places.row.var, places.across.var}
    found = [e for stmt in statements(column) for e in own_expressions(stmt)]
    if any(not moving.isdisjoint(variables(e)) for e in found):
        return None
    strides = [
        stride(load, COLUMN, scope.buffers)
        for load in loads_in(column)
        if load.buffer in scope.buffers
    ]
    if any(step is not None and abs(step) > _FARTHEST for step in strides):
        return None
    known = declared_in(column) | {one.target.buffer for one in sums}
    if any(load.buffer in stored - known for load in loads_in(column)):
        return None
    return ColumnWindow(places, others, column, sums, ranges)


def _sums(body: tuple[Stmt, ...], inner: set[str]) -> tuple[WindowSum, ...]:
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


def _in_variables(body: tuple[Stmt, ...], sums: tuple[WindowSum, ...]) -> tuple[Stmt, ...]:
    """Returns statements that add to variables with the names of the buffers of the sums."""
    targets = {one.target.buffer for one in sums}

    def change(store: Store) -> tuple[Stmt, ...]:
        update = update_of(store) if store.buffer in targets else None
        if update is None:
            return (store,)
        old = Load(store.buffer, (), update.target.dtype)
        op = "sub" if update.is_negated else update.op
        return (with_parts(store, indices=(), value=binary(op, old, update.term)),)

    return rewrite_statements(body, change, Store)
