"""Sums over windows: each column is summed once for all the windows that hold it.

    parallel j in 3 .. 97 {                  local column: float32[100] {
      local s: float32[] {                     parallel x in 0 .. 100 {
        s[] = 0.0                                local sum: float32[] {
        reduction p in -3 .. 4 {                   sum[] = -0.0
          reduction q in -3 .. 4 {                 reduction p in -3 .. 4 {
            s[] = s[] + a[i + p, j + q]   ->         sum[] = sum[] + a[i + p, x]
          }                                        }
        }                                          column[x] = sum[]
        out[i, j] = s[]                          }
      }                                        }
    }                                          parallel j in 3 .. 97 {
                                                 local s: float32[] {
                                                   s[] = 0.0
                                                   reduction q in -3 .. 4 {
                                                     s[] = s[] + column[j + q]
                                                   }
                                                   out[i, j] = s[]
                                                 }
                                               }
                                             }

Where the terms depend on `j` and `q` only by the column `j + q`, a window of n * n terms takes
about 2 * n. The column may be any multiple of `j` plus one of `q`, and the other loops of the
window may be any. Conditions on the column are part of its terms: a column without terms holds the
number that changes no sum. The loop over positions may be of any kind, for it stores nothing that
the columns read. Where the window is inside of another loop, a parallel loop over positions moves
in there first, as in invariants.py. Each row computes its columns anew, so that rows stay
independent.

Source: G. Gautam, S. Rajopadhye, "Simplifying Reductions" (POPL 2006).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

from msops._loops.analysis.costs import fixed_trips
from msops._loops.analysis.updates import update_of
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import Buffer, For, If, Kernel, Local, Stmt, Store, Var
from msops._loops.ir.operators import is_float
from msops._loops.ir.sizes import size_bytes
from msops._loops.ir.walk import (
    Scope,
    bodies,
    declared_in,
    is_innermost,
    map_bodies_within,
    own_expressions,
    rewrite_inner_loops,
    rewrite_loops,
    statements,
    stored_in,
    with_parts,
    with_value,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.facts.blocks import in_even_blocks
from msops._loops.to_c.materialise.column_loops import Columns
from msops._loops.to_c.materialise.column_places import is_fixed
from msops._loops.to_c.materialise.window_columns import ColumnWindow, window_in_columns
from msops._loops.to_c.order.widening import in_arrays

_FEWEST_POSITIONS = 32
_BLOCK = (128, 256)
"""Positions of a block of a longer row: its columns are still in a cache when they are added."""
_MOST_BYTES = 1 << 17
"""Bytes of the locals with an element for each position: they stay in the second-level cache."""
_LEAST_GAIN = 1.1


def sum_columns(kernel: Kernel) -> Kernel:
    """Returns the kernel with the columns of its windows summed once, where that pays."""
    summed = rewrite_loops(kernel, _Rows(kernel).loop)
    return kernel if summed is kernel else unique_names(simplify(summed))


class _Rows:
    def __init__(self, kernel: Kernel) -> None:
        self._names = Names(kernel)

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...]:
        """Returns what replaces a loop over positions; the loops inside come first."""
        changed = rewrite_inner_loops(loop, scope, self.loop)
        trips = fixed_trips(loop)
        if changed is not loop or trips is None or is_innermost(loop):
            return (changed,)
        if trips < _FEWEST_POSITIONS:
            return (loop,)
        most = (trips, trips) if _has_float_extremes(loop) else _BLOCK
        return in_even_blocks(loop, scope, most, self._names, self._block) or (loop,)

    def _block(self, loop: For, trips: int, scope: Scope) -> tuple[Stmt, ...]:
        """Returns what replaces a block of positions; nothing if there are no such windows."""
        row = _Positions(loop, trips, self._names)
        (inside,) = scope.inside(loop)
        own = sum(size_bytes(s.buffer) for s in statements(loop.body) if isinstance(s, Local))
        is_small = trips * own <= _MOST_BYTES
        if is_small and any(row.has_windows(stmt, inside) for stmt in loop.body):
            return row.body(loop.body, inside, {})
        return ()


def _has_float_extremes(loop: For) -> bool:
    """Returns whether a loop compares floats: such rows are faster as a whole."""
    stores = (stmt for stmt in statements(loop.body) if isinstance(stmt, Store))
    updates = (update_of(store) for store in stores)
    return any(u and u.op != "add" and is_float(u.target.dtype) for u in updates)


class _Positions:
    """A loop over the positions of windows."""

    def __init__(self, loop: For, trips: int, names: Names) -> None:
        self._loop = loop
        self._trips = trips
        self._names = names
        self._stored = stored_in(loop.body) | declared_in(loop.body)

    def has_windows(self, stmt: Stmt, scope: Scope, *, only_inside: bool = False) -> bool:
        """Returns whether a statement has windows whose columns can be summed.

        Args:
          stmt: the statement.
          scope: the scope of it.
          only_inside: whether these must be inside of another loop, or of a condition.
        """
        if isinstance(stmt, For | If):
            if isinstance(stmt, For) and self._window(stmt, scope):
                return not only_inside
            only_inside = False
            fixed = (is_fixed(e, self._loop, self._stored) for e in own_expressions(stmt))
            if self._loop.kind != "parallel" or not all(fixed):
                return False
        return any(
            self.has_windows(part, inside, only_inside=only_inside)
            for body, inside in zip(bodies(stmt), scope.inside(stmt), strict=True)
            for part in body
        )

    def body(
        self, body: tuple[Stmt, ...], scope: Scope, arrays: Mapping[str, Buffer]
    ) -> tuple[Stmt, ...]:
        """Returns a body of the loop with the loop inside of it.

        Args:
          body: the body.
          scope: the scope of it.
          arrays: the locals around it, with an element for each position.
        """
        found: list[Stmt] = []
        together: list[Stmt] = []
        for stmt in body:
            if not self.has_windows(stmt, scope, only_inside=True):
                together.append(stmt)
                continue
            found += self._positions(together, scope, arrays)
            together = []
            inner = arrays
            if isinstance(stmt, Local):
                shape = (*stmt.buffer.shape, self._trips)
                array = dataclasses.replace(stmt.buffer, shape=shape)
                stmt, inner = with_parts(stmt, buffer=array), {**arrays, array.name: array}
            entered = functools.partial(self.body, arrays=inner)
            found.append(map_bodies_within(stmt, scope, entered))
        return (*found, *self._positions(together, scope, arrays))

    def _positions(
        self, body: list[Stmt], scope: Scope, arrays: Mapping[str, Buffer]
    ) -> tuple[Stmt, ...]:
        """Returns the sums of columns, and the loop over positions around statements."""
        if not body:
            return ()
        columns: list[Columns] = []

        def rest_of(body: tuple[Stmt, ...], scope: Scope) -> tuple[Stmt, ...]:
            return tuple(without_columns(stmt, scope) for stmt in body)

        def without_columns(stmt: Stmt, scope: Scope) -> Stmt:
            window = self._window(stmt, scope) if isinstance(stmt, For) else None
            if window is not None:
                columns.append(Columns(window, self._names))
                return columns[-1].left()
            return map_bodies_within(stmt, scope, rest_of) if isinstance(stmt, Local) else stmt

        left = rest_of(tuple(body), scope)
        var = self._names.fresh(self._loop.var)
        inside = with_value(left, self._loop.var, Var(var))
        loop: Stmt = in_arrays(with_parts(self._loop, var=var, body=inside), arrays)
        found = (*(stmt for part in columns for stmt in part.summed()), loop)
        for part in reversed(columns):
            for array in reversed(part.arrays):
                found = (Local(array, found, location=self._loop.location),)
        return found

    def _window(self, stmt: For, scope: Scope) -> ColumnWindow | None:
        """Returns a nest of loops as a window that gains from its columns; else None."""
        window = window_in_columns(stmt, self._loop, self._trips, scope, self._stored)
        return window if window and window.gain >= _LEAST_GAIN else None
