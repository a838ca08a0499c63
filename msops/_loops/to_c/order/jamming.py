"""Rows that each run in order go side by side, so that their chains of operations overlap.

    serial i in 0 .. 512 {                      serial i_group in 0 .. 128 {
      serial j in 0 .. 512 {                      serial j in 0 .. 512 {
        b[i + 1, j + 1] = ...          ->           b[4 * i_group + 1, j + 1] = ...
      }                                             b[4 * i_group + 2, j + 1] = ...
    }                                               ...

In one such row of floats, a processor waits for a result before it starts the next operation; with
several rows it works on all of them meanwhile. Rows of a parallel loop may always run side by side,
other rows may if no dependence forbids it.

A row of Gauss and Seidel's method needs the next element of the row before it. Such rows run side
by side if each is delayed by the number of iterations that the dependences ask for: this is
unroll-and-jam of a skewed nest (M. Wolfe, "Loop skewing: the wavefront method revisited", 1986).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from msops._loops.analysis.costs import fixed_trips, mean_trips
from msops._loops.ir.algebra import integer
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import Expr, For, Kernel, Local, Stmt, Store, Var
from msops._loops.ir.operators import is_float
from msops._loops.ir.walk import Scope, rewrite_loops, statements, with_parts, with_value
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.facts.blocks import can_swap, in_groups, index, with_buffer
from msops._loops.to_c.facts.skewing import Skew, before, find_lag, repeated

ROWS = 4
"""Rows that run side by side."""
_FEWEST_TRIPS = 8
_MOST_STATEMENTS = 16


def unroll_and_jam(kernel: Kernel) -> Kernel:
    """Returns the kernel with loops unrolled into the rows in them."""
    jammed = rewrite_loops(kernel, _Jamming(kernel).loop)
    return kernel if jammed is kernel else unique_names(simplify(jammed))


class _Jamming:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._names = Names(kernel)

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None if it is not jammed."""
        around, body = _apart(loop.body)
        # Dependences are looked for in what a row has of its own.
        if around and loop.kind != "parallel":
            return None
        rows = self._rows(loop, body, scope)
        lag = self._lag(loop, rows, scope) if rows else None
        return None if lag is None else self._jammed(loop, lag, scope)

    # Legality.

    def _rows(self, loop: For, body: tuple[Stmt, ...], scope: Scope) -> list[For]:
        """Returns the serial loops in a loop's body, if jamming pays; else none.

        Args:
          loop: the loop.
          body: its statements, without the locals around them.
          scope: the scope around the loop.
        """
        rows = [stmt for stmt in statements(body) if isinstance(stmt, For)]
        if not all(row in body and row.kind == "serial" and can_swap(loop, row) for row in rows):
            return []
        others = [stmt for stmt in statements(body) if not isinstance(stmt, For | Local)]
        trips = fixed_trips(loop)
        # Operations on integers take a cycle: a chain of them leaves little to overlap.
        if trips is None or trips < 2 * ROWS or not all(map(_stores_float, others)):
            return []
        (inside,) = scope.inside(loop)
        if any(mean_trips(row, inside.ranges) < _FEWEST_TRIPS for row in rows):
            return []
        return rows if len(others) <= _MOST_STATEMENTS else []

    def _lag(self, loop: For, rows: list[For], scope: Scope) -> int | None:
        """Returns how far each row is behind the one before; None if rows run one by one."""
        if loop.kind == "parallel":
            return 0
        if len(loop.body) != 1:
            return None
        # All rows of a group run in some iterations together.
        return find_lag(self._kernel, loop, rows[0], scope, fewest=ROWS)

    # Rewriting.

    def _jammed(self, loop: For, lag: int, scope: Scope) -> tuple[Stmt, ...]:
        """Returns the loop over groups of rows, and the loop over the remaining rows."""
        around, body = _apart(loop.body)

        def inside(first: Expr) -> tuple[Stmt, ...]:
            rows = [
                _RowCopy(
                    index("add", first, integer(number)),
                    {local.buffer.name: self._names.fresh(local.buffer.name) for local in around},
                )
                for number in range(ROWS)
            ]
            jammed = tuple(
                part
                for stmt in body
                for part in (
                    self._side_by_side(stmt, loop.var, rows, lag)
                    if isinstance(stmt, For)
                    else [part for one in rows for part in self._copy((stmt,), loop.var, one)]
                )
            )
            for one in rows:
                for local in around:
                    name = one.locals[local.buffer.name]
                    buffer = dataclasses.replace(local.buffer, name=name)
                    jammed = (with_parts(local, buffer=buffer, body=jammed),)
            return jammed

        group = self._names.fresh(f"{loop.var}_group")
        return in_groups(loop, ROWS, group, scope.ranges, inside)

    def _side_by_side(
        self, row: For, outer: str, rows: list[_RowCopy], lag: int
    ) -> tuple[Stmt, ...]:
        skew = Skew(row, outer, rows[0].value, ROWS, lag)
        var = self._names.fresh(row.var)
        body = tuple(
            part
            for number, one in enumerate(rows)
            for part in self._copy(
                with_value(row.body, row.var, before(Var(var), integer(lag * number))), outer, one
            )
        )
        first = skew.first_together()
        together = dataclasses.replace(row, var=var, begin=first, body=body)
        return skew.around(self._names, together)

    def _copy(self, body: tuple[Stmt, ...], outer: str, row: _RowCopy) -> tuple[Stmt, ...]:
        """Returns statements of a row, on locals of its own."""
        copy = repeated(body, outer, [row.value], self._names)
        for name, new in row.locals.items():
            copy = with_buffer(copy, name, new)
        return copy


@dataclasses.dataclass(frozen=True)
class _RowCopy:
    """A row of those that run side by side.

    Attributes:
      value: of the variable of the loop around the rows.
      locals: the names of the row's own locals, by those around the row that is copied.
    """

    value: Expr
    locals: Mapping[str, str]


def _apart(body: tuple[Stmt, ...]) -> tuple[list[Local], tuple[Stmt, ...]]:
    """Returns the scalar locals around statements, and the statements without them."""
    around: list[Local] = []
    apart: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Local) and not stmt.buffer.shape:
            further, inner = _apart(stmt.body)
            around += [stmt, *further]
            apart += inner
        else:
            apart.append(stmt)
    return around, tuple(apart)


def _stores_float(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and is_float(stmt.value.dtype)
