"""The loops that sum the columns of a window, and the loop that adds up columns.

A column is summed in variables where its terms are few, and written out. Otherwise each term is
added to all columns, so that conditions on whole rows are around the loop over columns.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

from msops._loops.analysis.conditions import conjuncts
from msops._loops.analysis.costs import fixed_trips
from msops._loops.ir.algebra import both
from msops._loops.ir.building import binary, integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Expr, For, If, Load, Local, Stmt, Store, Var
from msops._loops.ir.walk import variables, with_parts, with_value
from msops._loops.passes.simplify_expressions import where
from msops._loops.to_c.facts.blocks import index, with_buffer, with_index
from msops._loops.to_c.materialise.column_places import COLUMN
from msops._loops.to_c.materialise.window_columns import ColumnWindow, WindowSum

_MOST_WRITTEN_OUT = 32
"""Terms of a column that are written out, so that it is summed in a variable; see windows.py."""


class Columns:
    """The columns of a window.

    Attributes:
      arrays: one for each sum, with an element for each column.
    """

    def __init__(self, window: ColumnWindow, names: Names) -> None:
        self._window = window
        self._names = names
        self._low, self._high = window.places.columns
        shape = (window.places.size,)
        self.arrays = tuple(
            Buffer(names.fresh("column"), shape, one.target.dtype) for one in window.sums
        )

    def left(self) -> For:
        """Returns the loop that adds up the columns of each window."""
        places = self._window.places
        at = self._at(places.column())
        stores = tuple(
            Store(
                one.target.buffer,
                one.target.indices,
                binary(one.op, one.target, Load(array.name, at, array.dtype)),
                location=places.across.location,
            )
            for one, array in self._pairs()
        )
        begin, end = map(integer, places.offsets)
        return with_parts(places.across, begin=begin, end=end, body=stores)

    def summed(self) -> tuple[Stmt, ...]:
        """Returns the loops that sum the columns."""
        low, high = self._low, self._high
        places = self._window.places
        first = low if places.low is None else index("max", places.low, low)
        after = high if places.high is None else index("min", places.high, high)
        if not self._is_written_out():
            return (self._filled(low, high), *self._term_by_term(first, after))
        found: tuple[Stmt, ...] = (self._loop(first, after, self._in_variables()),)
        if places.high is not None:
            found = (self._filled(index("max", places.high, low), high), *found)
        if places.low is not None:
            found = (self._filled(low, index("min", places.low, high)), *found)
        return found

    def _is_written_out(self) -> bool:
        """Returns whether a column is summed in variables, in loops that are written out."""
        trips = [fixed_trips(loop) for loop in self._window.loops]
        terms = math.prod(count or math.inf for count in trips)
        return terms <= _MOST_WRITTEN_OUT and not self._conditions.rows

    @functools.cached_property
    def _conditions(self) -> _Conditions:
        match self._window.body:
            case (If(condition=condition, then=body, otherwise=()),):
                parts = conjuncts(condition)
                rows = tuple(part for part in parts if COLUMN not in variables(part))
                columns = tuple(part for part in parts if COLUMN in variables(part))
                return _Conditions(rows, columns, body)
        return _Conditions((), (), self._window.body)

    def _in_variables(self) -> tuple[Stmt, ...]:
        """Returns the sum of one column in variables, and its stores."""
        at = self._at(Var(COLUMN))
        body = self._nest(self._window.body)
        starts: list[Stmt] = []
        ends: list[Stmt] = []
        variables_: list[Buffer] = []
        for one, array in self._pairs():
            variable = Buffer(self._names.fresh("sum"), (), array.dtype)
            variables_.append(variable)
            body = with_buffer(body, one.target.buffer, variable.name)
            starts.append(Store(variable.name, (), one.neutral))
            ends.append(Store(array.name, at, Load(variable.name, (), variable.dtype)))
        body = (*starts, *body, *ends)
        for variable in reversed(variables_):
            body = (Local(variable, body),)
        return body

    def _term_by_term(self, first: Expr, after: Expr) -> tuple[Stmt, ...]:
        """Returns the loops that add one term after the other to all columns between bounds."""
        rows, columns, body = self._conditions
        if columns:
            condition = both(columns)
            least, greatest = where(condition, self._window.ranges)[COLUMN]
            first, after = (
                index("max", first, integer(least)),
                index("min", after, integer(greatest + 1)),
            )
            body = (If(condition, body),)
        for one, array in self._pairs():
            body = with_buffer(body, one.target.buffer, array.name)
        body = with_index(body, {array.name for array in self.arrays}, *self._at(Var(COLUMN)))
        row: tuple[Stmt, ...] = (self._loop(first, after, body),)
        return self._nest((If(both(rows), row),) if rows else row)

    def _filled(self, begin: Expr, end: Expr) -> Stmt:
        """Returns the loop that begins the sums of some columns."""
        at = self._at(Var(COLUMN))
        stores = tuple(Store(array.name, at, one.neutral) for one, array in self._pairs())
        return self._loop(begin, end, stores)

    def _loop(self, begin: Expr, end: Expr, body: tuple[Stmt, ...]) -> For:
        """Returns the loop over some columns."""
        var = self._names.fresh("x")
        inside = with_value(body, COLUMN, Var(var))
        return For(var, begin, end, inside, "parallel", location=self._window.places.row.location)

    def _nest(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Returns the loops over the terms of a column around statements."""
        for loop in reversed(self._window.loops):
            body = (with_parts(loop, body=body),)
        return body

    def _pairs(self) -> Iterator[tuple[WindowSum, Buffer]]:
        return zip(self._window.sums, self.arrays, strict=True)

    def _at(self, column: Expr) -> tuple[Expr]:
        return (index("sub", column, self._low),)


class _Conditions(NamedTuple):
    """The conditions of all terms of a window.

    Attributes:
      rows: those that are the same for all columns.
      columns: the others.
      body: what runs under them.
    """

    rows: tuple[Expr, ...]
    columns: tuple[Expr, ...]
    body: tuple[Stmt, ...]
