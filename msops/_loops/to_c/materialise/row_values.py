"""Values that loops compute for each iteration, and that a loop before them computes once for all.

    reduction j in 0 .. 2000 {            local row: float32[2000] {
      s[] = s[] + exp(x[j] - top[])         parallel j_2 in 0 .. 2000 {
    }                                         row[j_2] = exp(x[j_2] - top[])
    parallel j_1 in 0 .. 2000 {             }
      y[j_1] = exp(x[j_1] - top[])   ->     reduction j in 0 .. 2000 {
        / s[]                                 s[] = s[] + row[j]
    }                                       }
                                            parallel j_1 in 0 .. 2000 {
                                              y[j_1] = row[j_1] / s[]
                                            ...

A softmax over rows is such a kernel, and so is the gradient of one. Done for values that call a
function, which takes many times as long as a load, where nothing that they read changes between
the loops: if several loops compute them, or one that runs in order, or whose iterations may meet in
an element. Such a loop runs without vectors, and a function takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from functools import cached_property

from msops._loops.analysis.boxes import Span
from msops._loops.analysis.costs import FIRST_CACHE_BYTES, fixed_span, mean_trips
from msops._loops.ir.algebra import integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Expr, For, Load, Store, Var
from msops._loops.ir.operators import itemsize
from msops._loops.ir.ranges import range_of
from msops._loops.ir.walk import (
    Scope,
    declared_in,
    is_innermost,
    loads,
    statements,
    substitute,
    variables,
)
from msops._loops.to_c.facts.blocks import index
from msops._loops.to_c.facts.strides import is_of_its_own

_FEWEST_TRIPS = 8
_MOST_BYTES = FIRST_CACHE_BYTES // 2
"""Bytes of the values of a row, which is in the cache beside what the loops read and write."""
_ANY = "any iteration"
"""Stands for the variable of a loop in a value that is compared with those of other loops."""


@dataclass(eq=False)
class RowValue:
    """A value that loops compute for each iteration, in statements that run one after another.

    Attributes:
      value: the value, of the iteration `_ANY`.
      scope: that of the loops.
      loops: the loops, by number; all are known before anything else is asked.
      table: what keeps the value, once a loop fills it.
    """

    value: Expr
    scope: Scope
    loops: dict[int, For] = field(default_factory=dict)
    table: Buffer | None = None

    @cached_property
    def is_worth_a_table(self) -> bool:
        """Whether the loops are several, or run without vectors, and the table is small."""
        loops = self.loops.values()
        low, past = self._span
        is_small = 0 < (past - low) * itemsize(self.value.dtype) <= _MOST_BYTES
        is_long = all(mean_trips(loop, self.scope.ranges) >= _FEWEST_TRIPS for loop in loops)
        return (
            is_small
            and is_long
            and (len(loops) > 1 or any(self._is_scalar(loop) for loop in loops))
        )

    def _is_scalar(self, loop: For) -> bool:
        """Returns whether a loop runs without vectors.

        One in order does, unless loops around it are parallel: then its rows may go into lanes.
        """
        if loop.kind == "serial":
            return not self.scope.is_parallel
        return loop.kind == "reduction" and is_innermost(loop) and _may_meet(loop)

    @cached_property
    def _bounds(self) -> tuple[Expr, Expr]:
        """The first iteration of all loops and the end of the last; none if these are apart."""
        loops = [*self.loops.values()]
        spans = [span for loop in loops if (span := fixed_span(loop)) is not None]
        if not spans:
            return loops[0].begin, loops[0].end
        firsts, ends = zip(*spans, strict=True)
        return integer(min(firsts)), integer(max(ends) if max(firsts) < min(ends) else min(firsts))

    @cached_property
    def _span(self) -> Span:
        """The least first iteration, and the greatest end."""
        begin, end = self._bounds
        return range_of(begin, self.scope.ranges)[0], range_of(end, self.scope.ranges)[1]

    def fill(self, names: Names) -> tuple[For, Buffer]:
        """Returns the loop that fills the table, and the table."""
        loop = next(iter(self.loops.values()))
        begin, end = self._bounds
        low, past = self._span
        self.table = Buffer(names.fresh("row"), (past - low,), self.value.dtype)
        var = names.fresh(loop.var)
        value = substitute(self.value, {_ANY: Var(var)})
        store = Store(self.table.name, self.element(var).indices, value)
        return For(var, begin, end, (store,), "parallel", location=loop.location), self.table

    def element(self, var: str) -> Load:
        """Returns the element of the table for an iteration."""
        assert self.table
        at = index("sub", Var(var), integer(self._span[0]))
        return Load(self.table.name, (at,), self.table.dtype)


class Succession:
    """Statements that run one after another, and what their loops compute for each iteration.

    Attributes:
      tables: of these values.
    """

    def __init__(self) -> None:
        self.tables: list[Buffer] = []
        self._values: dict[object, RowValue] = {}

    def value(self, expr: Expr, loop: For, number: int, scope: Scope) -> RowValue:
        """Returns the value that a loop of the statements computes.

        Args:
          expr: the value, in terms of what the loop does not change.
          loop: the loop.
          number: tells it from others.
          scope: that of the loop.
        """
        value = of_any_iteration(expr, loop)
        # Loops of all fixed spans may share a table.
        span = None if fixed_span(loop) else (loop.begin, loop.end)
        found = self._values.setdefault((value, span), RowValue(value, scope))
        found.loops[number] = loop
        return found

    def forget(self, stored: Set[str]) -> None:
        """Forgets values that are others once some buffers are stored to."""

        def is_read(value: RowValue) -> bool:
            loop = next(iter(value.loops.values()))
            read = (load.buffer for e in (value.value, loop.begin, loop.end) for load in loads(e))
            return not stored.isdisjoint(read)

        self._values = {key: each for key, each in self._values.items() if not is_read(each)}


def of_any_iteration(expr: Expr, loop: For) -> Expr:
    """Returns what a loop computes, of the iteration `_ANY`."""
    return substitute(expr, {loop.var: Var(_ANY)})


def _may_meet(loop: For) -> bool:
    """Returns whether iterations of a reduction may meet in an element of an array."""
    stored = {
        stmt.buffer
        for stmt in statements(loop.body)
        if isinstance(stmt, Store)
        and any(loads(at) or loop.var in variables(at) for at in stmt.indices)
    }
    return not all(is_of_its_own(name, loop) for name in stored - declared_in(loop.body))
