"""Variables of a loop that it does not change get their values before the loop.

    parallel j in 0 .. 900 {                 local y: int32[] {
      local y: int32[] {                       y[] = int32(at[i])
        y[] = int32(at[i])            ->       parallel j in 0 .. 900 {
        out[i, j] = x[y[], j] * f[j]             out[i, j] = x[y[], j] * f[j]
      }                                        }
    }                                        }

Compilers do so with arithmetic. gcc leaves choices inside, as that of the nearest integer for a
float, and makes no vectors of a loop with a condition that is the same for all lanes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msops._loops.analysis.costs import fixed_trips
from msops._loops.ir.nodes import For, Kernel, Local, Stmt, Store
from msops._loops.ir.walk import (
    Scope,
    is_innermost,
    loads,
    loads_in,
    rewrite_loops,
    statements,
    stored_in,
    variables,
    with_parts,
    within_locals,
)
from msops._loops.to_c.widening import without_locals


def hoist_variables(kernel: Kernel) -> Kernel:
    """Returns the kernel with such variables around innermost loops inside of others."""
    return rewrite_loops(kernel, _hoist)


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
