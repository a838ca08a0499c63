"""Variables of a loop that it does not change get their values before the loop.

    parallel j in 0 .. 900 {                 local y: int32[] {
      local y: int32[] {                       y[] = int32(at[i])
        y[] = int32(at[i])            ->       parallel j in 0 .. 900 {
        out[i, j] = x[y[], j] * f[j]             out[i, j] = x[y[], j] * f[j]
      }                                        }
    }                                        }

gcc moves arithmetic out of loops, but not all: a choice stays inside, such as that of the nearest
integer for a float, and a loop with a condition that is the same for all lanes gets no vectors.

Elements that the loop reads at positions that it does not change are held in variables as well.
gcc leaves those inside that only a branch reads, since they may not exist; here they are read ahead
if they do exist. So are elements of an array that the loop stores to, if the indices show that it
stores other ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msops._loops.analysis.costs import fixed_trips
from msops._loops.ir.elements import exists
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Expr, For, If, Kernel, Load, Local, Stmt, Store
from msops._loops.ir.walk import (
    Scope,
    bodies,
    declared_in,
    is_innermost,
    loads,
    loads_in,
    rewrite_all,
    rewrite_loops,
    statements,
    stored_in,
    variables,
    with_parts,
    within_locals,
)
from msops._loops.to_c.apart import are_apart
from msops._loops.to_c.vectors import may_run_in_vectors
from msops._loops.to_c.widening import without_locals

_FEWEST_IN_VECTOR = 4
"""Iterations of a loop that gains from vectors."""


def hoist_variables(kernel: Kernel) -> Kernel:
    """Returns the kernel with such variables around innermost loops inside of others."""
    names = Names(kernel)
    hoisted = rewrite_loops(kernel, _hoist)
    return rewrite_loops(hoisted, lambda loop, scope: _hold(loop, scope, names))


def _hoist(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
    # Indices in a loop that does not run may be out of range.
    if not is_innermost(loop) or not scope.loops or not fixed_trips(loop):
        return None
    body, buffers = without_locals(loop.body)
    moved = tuple(_unchanged(body, loop, {buffer.name for buffer in buffers if not buffer.shape}))
    if not moved:
        return None
    names = stored_in(moved)
    around = [buffer for buffer in buffers if buffer.name in names]
    inside = tuple(_without(loop.body, names))
    return within_locals(reversed(around), (*moved, with_parts(loop, body=inside)))


def _without(body: tuple[Stmt, ...], names: set[str]) -> Iterator[Stmt]:
    """Yields a loop's statements without its own variables of these names."""
    for stmt in body:
        if isinstance(stmt, Local):
            rest = tuple(_without(stmt.body, names))
            yield from rest if stmt.buffer.name in names else (with_parts(stmt, body=rest),)
        elif not (isinstance(stmt, Store) and stmt.buffer in names):
            yield stmt


def _unchanged(body: tuple[Stmt, ...], loop: For, own: set[str]) -> Iterator[Store]:
    """Yields the only stores to variables whose values each iteration computes again.

    Args:
      body: the body of the loop, without locals.
      loop: the loop.
      own: the variables of an iteration.
    """
    stores = Counter(stmt.buffer for stmt in statements(body) if isinstance(stmt, Store))
    changing = {*stores}
    loaded: set[str] = set()
    for stmt in body:
        if (
            isinstance(stmt, Store)
            and stmt.buffer in own - loaded
            and stores[stmt.buffer] == 1
            and loop.var not in variables(stmt.value)
            and changing.isdisjoint(load.buffer for load in loads(stmt.value))
        ):
            changing.discard(stmt.buffer)
            yield stmt
        loaded |= {load.buffer for load in loads_in((stmt,))}


def _hold(loop: For, scope: Scope, names: Names) -> tuple[Stmt, ...] | None:
    """Returns a loop with the elements in variables that it reads under conditions alone."""
    if not may_run_in_vectors(loop) or not scope.loops:
        return None
    trips = fixed_trips(loop)
    if trips is not None and trips < _FEWEST_IN_VECTOR:
        return None
    branches = (stmt for stmt in statements(loop.body) if isinstance(stmt, If))
    masked = (load for stmt in branches for body in bodies(stmt) for load in loads_in(body))
    (inside,) = scope.inside(loop)
    changing = stored_in(loop.body) | declared_in(loop.body)
    stores = [stmt for stmt in statements(loop.body) if isinstance(stmt, Store)]

    def is_apart(load: Load) -> bool:
        """Returns whether a loop stores no element that a load reads, outside of its own arrays."""
        return load.buffer not in declared_in(loop.body) and all(
            are_apart(load.indices, store.indices, inside.ranges, inside.loops)
            for store in stores
            if store.buffer == load.buffer
        )

    held: dict[Expr, Buffer] = {}
    for load in dict.fromkeys(masked):
        picked = {part.buffer for index in load.indices for part in loads(index)}
        # Of local arrays compilers see that elements exist.
        if (
            load.buffer not in scope.depths
            and loop.var not in variables(load)
            and changing.isdisjoint(picked)
            and is_apart(load)
            and exists(load, scope.ranges, scope.buffers)
        ):
            held[load] = Buffer(names.fresh("held"), (), load.dtype)
    if not held:
        return None

    def instead(part: Expr) -> Expr:
        return Load(held[part].name, (), part.dtype) if part in held else part

    run: tuple[Stmt, ...] = (with_parts(loop, body=rewrite_all(loop.body, instead)),)
    for element, variable in held.items():
        run = (Local(variable, (Store(variable.name, (), element), *run)),)
    return run
