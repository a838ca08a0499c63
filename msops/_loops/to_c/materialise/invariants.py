"""What a loop does not change is computed once for all its iterations, also in loops inside of it.

    parallel c in 0 .. 64 {                  local s: float32[64] {
      local s: float32[] {                     reduction k in 0 .. 4 {
        reduction k in 0 .. 4 {                  local y: float32[] {
          local y: float32[] {                     y[] = max(a[] + b[] * k, 0)
            y[] = max(a[] + b[] * k, 0)   ->       parallel c in 0 .. 64 {
            s[] = s[] + f[c, int(y[])]               s[c] = s[c] + f[c, int(y[])]
          }                                      } } }
        }                                      parallel c_1 in 0 .. 64 { out[c_1] = s[c_1] }
        out[c] = s[]                         }
      }
    }

The coordinates and weights of samples do not depend on the channel that is sampled. A compiler
moves such values out of a loop only where they do not change inside of it. Here the loop goes
inside: it is split and moved around the statements that depend on it, and the locals that do get an
element for each iteration, as in widening.py. Iterations of a parallel loop do not order each
other. Done where the loops inside are short, so that none of them is one for vectors, and where the
loop goes over no positions of windows, which are written out in vectors (windows.py).

Source: R. Allen, K. Kennedy, "Optimizing Compilers for Modern Architectures", 5.3 and 5.8.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from msops._loops.analysis.costs import arithmetic, fixed_trips
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import Buffer, Expr, For, If, Kernel, Local, Stmt, Store, Var
from msops._loops.ir.sizes import size_bytes
from msops._loops.ir.walk import (
    Scope,
    bodies,
    is_innermost,
    loads,
    own_expressions,
    rewrite_loops,
    statements,
    variables,
    with_parts,
    with_value,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.order.widening import in_arrays
from msops._loops.to_c.order.windows import is_over_positions

_FEWEST_TRIPS = 8
_MOST_TRIPS = 1024
"""Iterations whose elements are still in a cache when the loops inside go on."""
_MOST_TRIPS_INSIDE = 8
"""Iterations of the loops inside; longer ones may run in vectors themselves."""
_FEWEST_OPERATIONS = 8
"""Operations in the loops inside that do not depend on the loop."""
_MOST_BYTES = 1 << 14
"""Bytes of the locals with an element for each iteration: half of the first-level cache."""


def compute_invariants_once(kernel: Kernel) -> Kernel:
    """Returns the kernel with such loops moved inwards."""
    moved = rewrite_loops(kernel, _Invariants(kernel).loop, "parallel")
    return kernel if moved.body == kernel.body else unique_names(simplify(moved))


class _Invariants:
    def __init__(self, kernel: Kernel) -> None:
        self._names = Names(kernel)

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None to look inside of it."""
        trips = fixed_trips(loop)
        inner = [stmt for stmt in statements(loop.body) if isinstance(stmt, For)]
        if trips is None or not _FEWEST_TRIPS <= trips <= _MOST_TRIPS or not inner:
            return None
        if is_over_positions(loop, scope):
            return None
        spans = map(fixed_trips, inner)
        if any(span is None or span > _MOST_TRIPS_INSIDE for span in spans):
            return None
        moving = _MovingLoop(loop, trips, self._names)
        is_small = sum(map(size_bytes, moving.arrays.values())) <= _MOST_BYTES
        if not is_small or moving.operations_saved() < _FEWEST_OPERATIONS:
            return None
        return moving.body(loop.body, frozenset())


class _MovingLoop:
    """A parallel loop on its way inwards.

    Attributes:
      arrays: the locals that depend on the loop, with an element for each iteration.
    """

    def __init__(self, loop: For, trips: int, names: Names) -> None:
        self._loop = loop
        self._names = names
        self._changing = _changing(loop)
        self.arrays: Mapping[str, Buffer] = {
            stmt.buffer.name: dataclasses.replace(stmt.buffer, shape=(*stmt.buffer.shape, trips))
            for stmt in statements(loop.body)
            if isinstance(stmt, Local) and stmt.buffer.name in self._changing
        }

    def operations_saved(self) -> int:
        """Returns the operations of the stores in loops that do not depend on the loop."""
        return sum(
            arithmetic(stmt.value)
            for inner in statements(self._loop.body)
            if isinstance(inner, For) and is_innermost(inner)
            for stmt in statements(inner.body)
            if isinstance(stmt, Store) and not self._depends(stmt)
        )

    def _depends(self, stmt: Stmt) -> bool:
        """Returns whether a statement itself depends on the loop; not those inside of it."""
        if isinstance(stmt, Store) and stmt.buffer in self._changing:
            return True
        return any(_moves(expr, self._loop.var, self._changing) for expr in own_expressions(stmt))

    def body(self, body: tuple[Stmt, ...], arrays: frozenset[str]) -> tuple[Stmt, ...]:
        """Returns a body with the loop around the statements in it that depend on it.

        Args:
          body: the body.
          arrays: the locals around it that have an element for each iteration.
        """
        moved: list[Stmt] = []
        together: list[Stmt] = []
        for stmt in body:
            if self._depends(stmt):
                together.append(stmt)
                continue
            moved += self._around(together, arrays)
            together = []
            moved.append(self._inside(stmt, arrays))
        return (*moved, *self._around(together, arrays))

    def _inside(self, stmt: Stmt, arrays: frozenset[str]) -> Stmt:
        """Returns a statement that does not depend on the loop, with the loop inside of it."""
        match stmt:
            case Local(buffer=buffer):
                if buffer.name in self.arrays:
                    stmt = with_parts(stmt, buffer=self.arrays[buffer.name])
                    arrays |= {buffer.name}
                return with_parts(stmt, body=self.body(stmt.body, arrays))
            case For():
                return with_parts(stmt, body=self.body(stmt.body, arrays))
            case If(then=then, otherwise=otherwise):
                parts = self.body(then, arrays), self.body(otherwise, arrays)
                return with_parts(stmt, then=parts[0], otherwise=parts[1])
        return stmt

    def _around(self, body: list[Stmt], arrays: frozenset[str]) -> Iterator[Stmt]:
        """Yields the loop around statements that depend on it."""
        if not body:
            return
        var = self._names.fresh(self._loop.var)
        inside = with_value(tuple(body), self._loop.var, Var(var))
        yield in_arrays(with_parts(self._loop, var=var, body=inside), arrays)


def _moves(expr: Expr, var: str, changing: frozenset[str]) -> bool:
    return var in variables(expr) or any(load.buffer in changing for load in loads(expr))


def _changing(loop: For) -> frozenset[str]:
    """Returns the buffers in which a parallel loop stores what depends on its iteration."""
    found: frozenset[str] = frozenset()

    def dependent(body: tuple[Stmt, ...], is_moving: bool) -> Iterator[str]:
        for stmt in body:
            moves = is_moving or any(_moves(e, loop.var, found) for e in own_expressions(stmt))
            if isinstance(stmt, Store) and moves:
                yield stmt.buffer
            for inner in bodies(stmt):
                yield from dependent(inner, moves and not isinstance(stmt, Store))

    while not found >= (more := frozenset(dependent(loop.body, False))):
        found |= more
    return found
