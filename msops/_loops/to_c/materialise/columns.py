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

Where the terms depend on `j` and `q` only by the column `j + q`, or `2 * j + q`, a window of n * n
terms takes about 2 * n. The other loops of the window may be any. Conditions on the column are part
of its terms: a column without terms holds the number that changes no sum. The loop over positions
may be of any kind, for it stores nothing that the columns read. Each row computes its columns anew,
so that rows stay independent.

Source: G. Gautam, S. Rajopadhye, "Simplifying Reductions" (POPL 2006).
"""

from __future__ import annotations

from msops._loops.analysis.costs import fixed_trips
from msops._loops.ir.algebra import binary, integer
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import Buffer, For, Kernel, Load, Local, Stmt, Store, Var
from msops._loops.ir.walk import (
    Scope,
    is_innermost,
    map_bodies_within,
    rewrite_inner_loops,
    rewrite_loops,
    with_parts,
    with_value,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.facts.blocks import index, with_buffer
from msops._loops.to_c.materialise.window_columns import COLUMN, ColumnWindow, window_in_columns

_FEWEST_POSITIONS = 32
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
        is_short = (fixed_trips(loop) or 0) < _FEWEST_POSITIONS
        if changed is not loop or is_short or is_innermost(loop):
            return (changed,)
        columns: list[_Columns] = []

        def rest_of(body: tuple[Stmt, ...], scope: Scope) -> tuple[Stmt, ...]:
            return tuple(without_columns(stmt, scope) for stmt in body)

        def without_columns(stmt: Stmt, scope: Scope) -> Stmt:
            window = window_in_columns(stmt, loop, scope) if isinstance(stmt, For) else None
            if window is not None and window.gain >= _LEAST_GAIN:
                columns.append(_Columns(window, self._names))
                return columns[-1].left()
            return map_bodies_within(stmt, scope, rest_of) if isinstance(stmt, Local) else stmt

        (inside,) = scope.inside(loop)
        left = with_parts(loop, body=rest_of(loop.body, inside))
        found: tuple[Stmt, ...] = (*(part.summed() for part in columns), left)
        for part in reversed(columns):
            for array in reversed(part.arrays):
                found = (Local(array, found, location=loop.location),)
        return found


class _Columns:
    """The columns of a window.

    Attributes:
      arrays: one for each sum, with an element for each column.
    """

    def __init__(self, window: ColumnWindow, names: Names) -> None:
        self._window = window
        self._names = names
        shape = (window.size,)
        self.arrays = tuple(
            Buffer(names.fresh("column"), shape, one.target.dtype) for one in window.sums
        )

    def left(self) -> For:
        """Returns the loop that adds up the columns of each window."""
        window = self._window
        at = index("sub", window.column, window.bounds[0])
        stores = tuple(
            Store(
                one.target.buffer,
                one.target.indices,
                binary(one.op, one.target, Load(array.name, (at,), array.dtype)),
                location=window.across.location,
            )
            for one, array in zip(window.sums, self.arrays, strict=True)
        )
        begin, end = map(integer, window.offsets)
        return with_parts(window.across, begin=begin, end=end, body=stores)

    def summed(self) -> For:
        """Returns the loop that sums each column in variables, and stores it."""
        window = self._window
        first, after = window.bounds
        var = self._names.fresh("x")
        body = window.body
        for loop in reversed(window.loops):
            body = (with_parts(loop, body=body),)
        variables = [Buffer(self._names.fresh("sum"), (), array.dtype) for array in self.arrays]
        starts: list[Stmt] = []
        ends: list[Stmt] = []
        for one, array, variable in zip(window.sums, self.arrays, variables, strict=True):
            body = with_buffer(body, one.target.buffer, variable.name)
            starts.append(Store(variable.name, (), one.neutral))
            at = index("sub", Var(var), first)
            ends.append(Store(array.name, (at,), Load(variable.name, (), variable.dtype)))
        body = (*starts, *with_value(body, COLUMN, Var(var)), *ends)
        for variable in reversed(variables):
            body = (Local(variable, body),)
        return For(var, first, after, body, "parallel", location=window.row.location)
