"""Indices that a loop computes for its stores are computed ahead of them, in vectors.

    reduction k in 0 .. 100 {               local at: int32[100] {
      local at: int32[] {                     parallel k_1 in 0 .. 100 {
        at[] = int32(x[k] * 8)      ->          at[k_1] = int32(x[k_1] * 8)
        bins[at[]] = bins[at[]] + 1           }
      }                                       reduction k in 0 .. 100 {
    }                                           bins[at[k]] = bins[at[k]] + 1

No compiler makes vectors of a loop that adds to elements which data pick, as two of them may be the
same: histograms, and votes for lines and circles. Nor does gcc if each iteration adds to a row of
its own, but under a condition. What comes before the first such store gets a loop of its own, block
by block. That gains where floats become integers, as scalar code compares each with the range of
the integers, and where what these floats are made of lies side by side, or nearly: the coordinates
of a point are few. Under a condition they are computed in any case, and so is whether it holds.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from msops._loops.analysis.updates import update_of
from msops._loops.ir.building import binary
from msops._loops.ir.elements import exists
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import (
    Buffer,
    Cast,
    Const,
    For,
    If,
    Kernel,
    Load,
    Select,
    Stmt,
    Store,
)
from msops._loops.ir.operators import is_float
from msops._loops.ir.walk import (
    Scope,
    expressions,
    is_innermost,
    loads,
    loads_in,
    own_expressions,
    rewrite_loops,
    statements,
    stored_in,
    with_parts,
)
from msops._loops.passes.simplify_expressions import difference
from msops._loops.to_c.blocks import in_two_loops
from msops._loops.to_c.strides import stride
from msops._loops.to_c.widening import without_locals
from msops._loops.to_c.work import work

_BLOCK = 256
"""Iterations whose indices are kept together, on the stack."""
_FEWEST_TRIPS = 16
_FURTHEST = 4
"""Elements between those of neighbouring iterations."""
_MOST_WORK = 32
"""Operations that are computed although their condition may seldom hold."""


def compute_picks_ahead(kernel: Kernel) -> Kernel:
    """Returns the kernel with the indices of such loops in arrays."""
    names = Names(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        least, trips = difference(loop.end, loop.begin, scope.ranges) or (0, 0)
        if least != trips or trips < _FEWEST_TRIPS:
            return None
        if not is_innermost(loop):
            return None
        ahead, rest, variables = _split(loop, scope, names)
        if stored_in(ahead) & stored_in(rest) or not _are_picks(ahead, rest, loop, scope):
            return None
        return in_two_loops(loop, trips, _BLOCK, names, ahead, rest, variables)

    changed = rewrite_loops(kernel, change)
    return kernel if changed.body == kernel.body else unique_names(changed)


def _split(
    loop: For, scope: Scope, names: Names
) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...], Sequence[Buffer]]:
    """Returns what of a loop may run ahead, the rest, and the locals of both.

    Where a condition is around all of a body, its values may be computed in any case, and whether
    it holds is one of them.
    """
    match loop.body:
        case (If(condition=condition, then=then, otherwise=()) as branch,):
            inner, variables = without_locals(then)
            ahead = _ahead(inner, loop, variables)
            (inside,) = scope.inside(loop)
            read = [*loads(condition), *loads_in(ahead)]
            changed = stored_in(loop.body) - stored_in(ahead)
            own = {buffer.name for buffer in variables}
            if 0 < work(ahead) <= _MOST_WORK and all(
                load.buffer not in changed
                and (load.buffer in own or exists(load, inside.ranges, inside.buffers))
                for load in read
            ):
                holds = Buffer(names.fresh("holds"), (), "int32")
                is_held = Select(condition, Const(1, "int32"), Const(0, "int32"), "int32")
                test = binary("gt", Load(holds.name, (), "int32"), Const(0, "int32"))
                rest = with_parts(branch, condition=test, then=inner[len(ahead) :])
                return (Store(holds.name, (), is_held), *ahead), (rest,), [holds, *variables]
    inner, variables = without_locals(loop.body)
    ahead = _ahead(inner, loop, variables)
    return ahead, inner[len(ahead) :], variables


def _ahead(body: tuple[Stmt, ...], loop: For, variables: Sequence[Buffer]) -> tuple[Stmt, ...]:
    """Returns the first statements, as far as they store values to variables of an iteration.

    Args:
      body: the body of the loop, without locals.
      loop: the loop.
      variables: its locals.
    """
    own = {buffer.name for buffer in variables if not buffer.shape and buffer.dtype != "bool"}
    changing = stored_in(loop.body) - own

    def is_ahead(stmt: Stmt) -> bool:
        return (
            isinstance(stmt, Store)
            and stmt.buffer in own
            and changing.isdisjoint(load.buffer for load in loads(stmt.value))
        )

    return tuple(itertools.takewhile(is_ahead, body))


def _are_picks(ahead: Sequence[Stmt], rest: tuple[Stmt, ...], loop: For, scope: Scope) -> bool:
    """Returns whether values are indices of what the rest of a loop stores, and gain in vectors."""
    names = {stmt.buffer for stmt in ahead if isinstance(stmt, Store)}
    picked = any(
        load.buffer in names
        for stmt in statements(rest)
        if isinstance(stmt, Store) and (loop.kind != "parallel" or update_of(stmt))
        for at in stmt.indices
        for load in loads(at)
    )
    parts = [part for stmt in ahead for own in own_expressions(stmt) for part in expressions(own)]
    return (
        picked
        and any(isinstance(part, Cast) and _is_rounding(part) for part in parts)
        and all(
            stride(part, loop.var, scope.buffers) in range(_FURTHEST + 1)
            for part in parts
            if isinstance(part, Load) and part.buffer in scope.buffers
        )
    )


def _is_rounding(cast: Cast) -> bool:
    return is_float(cast.operand.dtype) and not is_float(cast.dtype)
