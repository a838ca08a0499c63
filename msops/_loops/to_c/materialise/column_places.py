"""The columns of windows: those of each position along a row, and of each offset in a window.

In ``a[i + p, 2 * j + q]`` the column is ``2 * j + q``, of the position `j` and the offset `q`.
Where a loop goes from ``max(j - 3, 0)`` to ``min(j + 4, 100)``, its variable is the column itself,
between the limits 0 and 100, and the offsets go from -3 to 4.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Set
from dataclasses import dataclass

from msops._loops.analysis.affine import INDEX_DTYPES, affine
from msops._loops.analysis.boxes import Span
from msops._loops.analysis.costs import fixed_span
from msops._loops.ir.building import integer
from msops._loops.ir.nodes import Binary, BinaryOp, Expr, For, Stmt, Var
from msops._loops.ir.walk import expressions, loads, own_expressions, statements, variables
from msops._loops.to_c.facts.blocks import index

COLUMN = "<column>"
"""The variable of columns, until it has a name of its own."""


@dataclass(frozen=True)
class Places:
    """The columns of a window at each position: `step` * position + `stride` * offset.

    Attributes:
      row: the loop over positions.
      positions: the most of them.
      across: the loop over the columns of a window.
      offsets: the first offset, and the one after the last.
      step: columns from one position to the next; above 0.
      stride: columns from one offset to the next.
      low: a bound of the columns, if there is one.
      high: likewise, of those after the last.
      is_direct: whether the variable of `across` is the column, and not the offset.
    """

    row: For
    positions: int
    across: For
    offsets: Span
    step: int
    stride: int
    low: Expr | None = None
    high: Expr | None = None
    is_direct: bool = False

    @property
    def touch(self) -> bool:
        """Whether each column between the first and the last is in a window."""
        begin, end = self.offsets
        return begin < end and (self.step == 1 or self.step <= end - begin)

    @property
    def size(self) -> int:
        """The most columns of a row."""
        low, high = self._sides
        return self.step * (self.positions - 1) + high - low + 1

    @property
    def columns(self) -> tuple[Expr, Expr]:
        """The first column of a row, and the one after the last."""
        low, high = self._sides
        step = integer(self.step)
        first = index("add", index("mul", self.row.begin, step), integer(low))
        last = index("mul", index("sub", self.row.end, integer(1)), step)
        return first, index("add", last, integer(high + 1))

    @property
    def _sides(self) -> tuple[int, int]:
        """The first and the last column of the window at position 0."""
        begin, end = self.offsets
        sides = (self.stride * begin, self.stride * (end - 1))
        return min(sides), max(sides)

    def column(self) -> Expr:
        """Returns the column of a position and an offset."""
        parts = ((self.step, self.row.var), (self.stride, self.across.var))
        left, right = (index("mul", Var(var), integer(size)) for size, var in parts)
        return index("add", left, right)

    @property
    def substitution(self) -> Mapping[str, Expr] | None:
        """The position or the offset, by the column; None if it is a quotient."""
        column = Var(COLUMN)
        if self.is_direct:
            return {self.across.var: column}
        if abs(self.stride) == 1:
            offset = index("sub", column, index("mul", Var(self.row.var), integer(self.step)))
            return {self.across.var: index("mul", offset, integer(self.stride))}
        if self.step == 1:
            offset = index("mul", Var(self.across.var), integer(self.stride))
            return {self.row.var: index("sub", column, offset)}
        return None


def places_of(
    row: For,
    positions: int,
    across: For,
    others: tuple[For, ...],
    body: tuple[Stmt, ...],
    stored: Set[str],
) -> Places | None:
    """Returns the columns of a loop across a window; None if its offsets are not fixed.

    Args:
      row: the loop over positions.
      positions: the most that it has.
      across: the loop.
      others: the other loops of the window.
      body: what they run.
      stored: the buffers that `row` stores to.
    """
    bounds = [bound for loop in others for bound in (loop.begin, loop.end)]
    if not all(is_fixed(e, row, stored) and across.var not in variables(e) for e in bounds):
        return None
    span = fixed_span(across)
    if span is not None:
        steps = _steps(body, row.var, across.var)
        return steps and Places(row, positions, across, span, *steps)
    begin, end = _bound(across.begin, "max", row.var), _bound(across.end, "min", row.var)
    if begin is None or end is None or begin.step != end.step or begin.step <= 0:
        return None
    names = {loop.var for loop in others}
    limits = [limit for limit in (begin.limit, end.limit) if limit is not None]
    if not all(is_fixed(e, row, stored) and names.isdisjoint(variables(e)) for e in limits):
        return None
    offsets = (begin.constant, end.constant)
    return Places(
        row, positions, across, offsets, begin.step, 1, begin.limit, end.limit, is_direct=True
    )


def is_fixed(expr: Expr, row: For, stored: Set[str]) -> bool:
    """Returns whether an expression is the same at all positions of a row."""
    return row.var not in variables(expr) and not any(load.buffer in stored for load in loads(expr))


def _steps(body: tuple[Stmt, ...], position: str, offset: str) -> tuple[int, int] | None:
    """Returns the step and the stride of the first column that an expression computes."""
    for stmt in statements(body):
        for part in (part for e in own_expressions(stmt) for part in expressions(e)):
            if part.dtype not in INDEX_DTYPES:
                continue
            found = affine(part, {position, offset})
            steps = dict(found.along) if found else {}
            if len(steps) == 2:
                common = math.gcd(*steps.values()) * (1 if steps[position] > 0 else -1)
                return steps[position] // common, steps[offset] // common
    return None


@dataclass(frozen=True)
class _Bound:
    """The bound `step` * position + `constant`, or the extreme of that and of a limit."""

    step: int
    constant: int
    limit: Expr | None


def _bound(expr: Expr, op: BinaryOp, position: str) -> _Bound | None:
    """Returns a bound that moves with the position; None if it does not, or in another way.

    Args:
      expr: the bound.
      op: the operation that combines these.
      position: the variable of the position.
    """
    moving, limits = [], []
    ahead = [expr]
    while ahead:
        part = ahead.pop()
        if isinstance(part, Binary) and part.op == op:
            ahead += (part.right, part.left)
        elif position in variables(part):
            moving.append(affine(part, {position}))
        else:
            limits.append(part)
    if len(moving) != 1 or moving[0] is None or moving[0].scalars or not moving[0].along:
        return None
    limit = functools.reduce(lambda a, b: index(op, a, b), limits) if limits else None
    ((_, step),) = moving[0].along
    return _Bound(step, moving[0].constant, limit)
