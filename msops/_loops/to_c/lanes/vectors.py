"""Innermost loops that run in vectors are marked for the printer.

    parallel i in 0 .. 4096 {           parallel i in 0 .. 4096 @vector(lanes) {
      b[i] = a[i]                 ->      b[i] = a[i]
    }                                   }

All are printed as statements on vectors (`printing.lane_code`), but for those of few iterations.
Sums of few elements that are no neighbours have no mark.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping

from msops._loops.analysis.costs import estimated_trips, nested_trips
from msops._loops.analysis.updates import sum_of
from msops._loops.ir.nodes import Buffer, For, Kernel, Load, Stmt, Store, VectorForm, Within
from msops._loops.ir.walk import (
    Scope,
    buffers_of,
    declared_in,
    has_bounds_of_data,
    is_innermost,
    loads,
    loads_in,
    rewrite_loops,
    statements,
    stored_in,
    variables,
    with_parts,
)
from msops._loops.to_c.clean.reductions import fixed_updates
from msops._loops.to_c.facts.strides import is_of_its_own, step, stride
from msops._loops.to_c.facts.work import MOST_EFFORT, work

_FEW_TRIPS = 8
_FEW_TRIPS_OF_DATA = 3
"""Estimated terms of a sum whose length is data: in vectors, sums of 2 take twice as long."""
_FEW_PICKED = 16
"""Most terms of a sum that are added one by one if they are no neighbours in memory, and little is
computed for each. 8 lookups in a table took 1.4 ns, and 11 ns as a vector."""


def mark_vectors(kernel: Kernel) -> Kernel:
    """Returns the kernel with the form of each innermost loop that runs in vectors.

    Those that have one keep it.
    """
    buffers = functools.cache(lambda: buffers_of(kernel))

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        if loop.vector or not may_run_in_vectors(loop):
            return None
        form: VectorForm = "lanes"
        if loop.kind == "reduction":
            scalars = {name for name in scope.depths if not scope.buffers[name].shape}
            form = form_of_reduction(loop, scope, buffers(), scalars)
        return (with_parts(loop, vector=form),)

    return rewrite_loops(kernel, change)


def may_run_in_vectors(loop: For) -> bool:
    """Returns whether a loop is innermost, and its iterations may run in any order."""
    return loop.kind != "serial" and is_innermost(loop)


def form_of_reduction(
    loop: For, scope: Scope, buffers: Mapping[str, Buffer], scalars: Collection[str]
) -> VectorForm:
    """Returns the form of an innermost reduction; it runs in vectors if its sums are variables.

    Args:
      loop: the loop.
      scope: that around it.
      buffers: the buffers of the kernel, locals too, by name.
      scalars: the names of the locals around the loop that are variables of C.
    """
    sums = {
        name: update for (name, _), update in fixed_updates(loop, scope.ranges, buffers).items()
    }
    is_of_data = has_bounds_of_data(loop)
    trips = estimated_trips(loop, scope) if is_of_data else nested_trips(loop, scope)
    is_light = work(statements(loop.body)) <= MOST_EFFORT
    fewest = _FEW_TRIPS_OF_DATA if is_of_data else _FEW_TRIPS if is_light else _FEW_TRIPS // 2
    if trips < fewest or not sums.keys() <= set(scalars):
        return ""
    if is_of_data and not _may_gather(loop, scope, buffers):
        return ""
    is_short = is_light and not is_of_data and trips <= _FEW_PICKED
    if (is_short and _picks(loop, buffers)) or _meet(loop, set(sums)):
        return ""
    return "lanes" if sums else ""


def _may_gather(loop: For, scope: Scope, buffers: Mapping[str, Buffer]) -> bool:
    """Returns whether a reduction whose length is data reads, or picks by, neighbours that exist.

    Elements that are evenly apart gain less from vectors than gathering them costs, and a gather
    waits until what the loop around stored just before is in the cache.
    """
    moving = {
        index
        for load in loads_in(loop.body)
        for index in load.indices
        if loop.var in variables(index) and not loads(index)
    }
    if not moving or not all(isinstance(index, Within) for index in moving):
        return False
    serial = scope.loops and scope.loops[-1].kind == "serial"
    around = scope.loops[-1].body if serial else ()
    stored = stored_in(around) - declared_in(around)
    return all(
        step(load, loop, buffers) in (None, -1, 0, 1)
        and not (load.indices and load.buffer in stored)
        for load in loads_in(loop.body)
    )


def _picks(loop: For, buffers: Mapping[str, Buffer]) -> bool:
    """Returns whether a vector of what a loop reads is a gather: its elements are no neighbours."""
    var = loop.var

    def is_gather(load: Load) -> bool:
        step = stride(load, var, buffers)
        is_data = any(var in variables(inner) for at in load.indices for inner in loads(at))
        return is_data or step is None or abs(step) > 1

    return any(map(is_gather, loads_in(loop.body)))


def _meet(loop: For, sums: Collection[str]) -> bool:
    """Returns whether iterations may update the same element of a buffer other than the sums.

    Iterations of a reduction meet in updates alone, such as `h[t[j]] = h[t[j]] + 1.0`. A compiler
    must not take these as independent: it would load for several iterations before it stores.
    """
    updated = {
        inner.buffer
        for inner in statements(loop.body)
        if isinstance(inner, Store) and sum_of(inner) is not None
    }
    own = declared_in(loop.body)
    others = updated - own - set(sums)
    return not all(is_of_its_own(name, loop) for name in others)
