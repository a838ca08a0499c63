"""Innermost loops that run in vectors are marked with the form in which C says so.

    parallel i in 0 .. 4096 {           parallel i in 0 .. 4096 @vector(ivdep) {
      b[i] = a[i]                 ->      b[i] = a[i]
    }                                   }
    reduction i in 0 .. 4096 {          reduction i in 0 .. 4096 @vector(simd) {
      sum[] = sum[] + a[i]        ->      sum[] = sum[] + a[i]
    }                                   }

`ivdep` states that no iteration depends on another. `simd` also asks for vectors where a compiler
would write a short loop out, and lets it reassociate sums of floats. OpenMP has no sign for a
minimum or maximum of floats that keeps NaN: `lanes` is a loop with one in each of some lanes.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping

from msops._loops.analysis.costs import fixed_trips, mean_trips
from msops._loops.analysis.updates import Update, sum_of
from msops._loops.ir.nodes import Buffer, For, Kernel, Local, Stmt, Store, VectorForm
from msops._loops.ir.operators import is_float
from msops._loops.ir.ranges import Ranges
from msops._loops.ir.walk import (
    Scope,
    buffers_of,
    rewrite_loops,
    statements,
    with_parts,
)
from msops._loops.to_c.reductions import fixed_updates
from msops._loops.to_c.storage import names_on_stack
from msops._loops.to_c.strides import is_of_its_own

_FEW_TRIPS = 8
# GCC's max-completely-peel-times; it leaves loops under `omp simd` alone.
_PEELED_TRIPS = 16


def mark_vectors(kernel: Kernel) -> Kernel:
    """Returns the kernel with the form of each innermost loop that runs in vectors."""
    buffers = functools.cache(lambda: buffers_of(kernel))
    on_stack = functools.cache(lambda: names_on_stack(kernel))

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        form: VectorForm = "simd" if _is_peeled(loop) else "ivdep"
        if any(isinstance(inner, For) for inner in statements(loop.body)):
            return None
        if loop.kind == "reduction":
            around = {*on_stack(), *scope.depths}
            variables = {name for name in around if not scope.buffers[name].shape}
            form = _form_of_reduction(loop, scope.ranges, buffers(), variables)
        return (with_parts(loop, vector=form),)

    return rewrite_loops(kernel, change, "parallel", "reduction")


def sums_of(loop: For) -> dict[str, Update]:
    """Returns the variables around a reduction that it updates, and one update of each."""
    own = _own(loop)
    found: dict[str, Update] = {}
    for stmt in statements(loop.body):
        if isinstance(stmt, Store) and not stmt.indices and stmt.buffer not in own:
            update = sum_of(stmt)
            if update is not None:
                found.setdefault(stmt.buffer, update)
    return found


def _is_peeled(loop: For) -> bool:
    """Returns whether a compiler would write a loop out before it looks for vectors."""
    trips = fixed_trips(loop)
    return trips is not None and trips <= _PEELED_TRIPS


def _form_of_reduction(
    loop: For, ranges: Ranges, buffers: Mapping[str, Buffer], variables: Collection[str]
) -> VectorForm:
    """Returns the form of an innermost reduction: a vector only if its sums are in variables.

    Args:
      loop: the loop.
      ranges: of the loops around it.
      buffers: of the kernel, locals too, by name.
      variables: names of those around the loop that are variables of C.
    """
    sums = {name: update for (name, _), update in fixed_updates(loop, ranges, buffers).items()}
    if mean_trips(loop, ranges) < _FEW_TRIPS or not sums.keys() <= set(variables):
        return ""
    if _meet(loop, set(sums), buffers):
        return ""
    floats = [update.op for update in sums.values() if is_float(update.target.dtype)]
    has_extremes = "min" in floats or "max" in floats
    if has_extremes:
        return "lanes" if len(sums) == 1 else ""
    # Integers need no leave to be reassociated.
    return "simd" if floats else ""


def _meet(loop: For, sums: Collection[str], buffers: Mapping[str, Buffer]) -> bool:
    """Returns whether iterations may update the same element of anything but these sums.

    Iterations of a reduction meet in updates alone, `h[t[j]] = h[t[j]] + 1.0`. The
    compiler may not take them as independent: it would load for several before it stores.
    """
    updated = {
        inner.buffer
        for inner in statements(loop.body)
        if isinstance(inner, Store) and sum_of(inner) is not None
    }
    others = updated - _own(loop) - set(sums)
    return not all(is_of_its_own(name, loop, buffers) for name in others)


def _own(loop: For) -> set[str]:
    """Returns the locals that a loop declares."""
    return {stmt.buffer.name for stmt in statements(loop.body) if isinstance(stmt, Local)}
