"""Rows that run side by side, each behind the one before by some iterations.

At the beginning and end of a group only some of its rows run. These iterations have loops of their
own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from msops._loops.analysis.polyhedral.side_by_side import least_lag
from msops._loops.ir.algebra import integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Expr, For, Kernel, Local, Stmt, Var
from msops._loops.ir.ranges import range_of
from msops._loops.ir.walk import Scope, statements, with_value
from msops._loops.to_c.facts.blocks import index, with_buffer

_MOST_LAG = 4


@dataclasses.dataclass(frozen=True)
class Skew:
    """Rows of a loop that run side by side.

    Attributes:
      row: the loop of a row.
      outer: the variable of the loop around it.
      first: the value of that variable in the first row.
      count: the number of rows.
      lag: the iterations by which each row is behind the one before.
    """

    row: For
    outer: str
    first: Expr
    count: int
    lag: int

    def around(self, names: Names, together: For) -> tuple[Stmt, ...]:
        """Returns the loop that runs all rows, between two that run only some of them.

        Args:
          names: of the kernel.
          together: the loop that runs all rows.
        """
        if not self.lag:
            return (together,)
        return (self._few(names, is_end=False), together, self._few(names, is_end=True))

    def first_together(self) -> Expr:
        """Returns the iteration of the first row from which on all rows run."""
        return index("add", self.row.begin, integer(self.lag * (self.count - 1)))

    def _few(self, names: Names, *, is_end: bool) -> For:
        """Returns the loop over the first or last iterations, in which only some rows run."""
        row, lag = self.row, self.lag
        var, number = names.fresh(row.var), names.fresh(f"{self.outer}_row")
        started = index("add", index("floordiv", Var(var), integer(lag)), integer(1))
        at = index("add", row.end if is_end else row.begin, Var(var))
        column = before(at, index("mul", integer(lag), Var(number)))
        body = with_value(row.body, row.var, column)
        begin, end = (started, integer(self.count)) if is_end else (integer(0), started)
        body = repeated(body, self.outer, [index("add", self.first, Var(number))], names)
        rows = dataclasses.replace(row, var=number, begin=begin, end=end, body=body)
        steps = integer(lag * (self.count - 1))
        return dataclasses.replace(row, var=var, begin=integer(0), end=steps, body=(rows,))


def find_lag(
    kernel: Kernel, loop: For, row: For, scope: Scope, fewest: int, *, apart: bool = False
) -> int | None:
    """Returns the iterations by which each row must be behind the one before.

    Args:
      kernel: the kernel.
      loop: the loop whose iterations are rows.
      row: the loop of a row.
      scope: where `loop` stands.
      fewest: the fewest iterations that a row must have for each one of the lag.
      apart: whether the iterations that run together must be independent.

    Returns:
      The lag; None if it is not known, or too large for the rows.
    """
    (inside,) = scope.inside(loop)
    begin, end = range_of(row.begin, inside.ranges), range_of(row.end, inside.ranges)
    most = min(_MOST_LAG, (end[0] - begin[1]) // fewest)
    return least_lag(kernel, loop, row, max(0, most), apart=apart)


def repeated(
    body: tuple[Stmt, ...], var: str, values: Sequence[Expr], names: Names
) -> tuple[Stmt, ...]:
    """Returns a body for each value of a variable, each with locals of its own."""
    copies = []
    for value in values:
        copy = with_value(body, var, value)
        for stmt in statements(body):
            if isinstance(stmt, Local):
                name = stmt.buffer.name
                copy = with_buffer(copy, name, names.fresh(name))
        copies.append(copy)
    return tuple(stmt for copy in copies for stmt in copy)


def before(at: Expr, distance: Expr) -> Expr:
    """Returns an index minus a distance."""
    return at if distance == integer(0) else index("sub", at, distance)
