"""Vector loops that add to the same elements in each iteration of a loop add several terms at once.

    reduction k in 0 .. 128 {                  reduction k_group in 0 .. 32 {
      parallel j in 0 .. 512 {                   parallel j in 0 .. 512 {
        g[j] = g[j] + u[k, j]           ->         g[j] = (g[j] + u[4 * k_group, j])
      }                                                         + u[4 * k_group + 1, j] ...
    }                                            }
                                               }

An element is then read and written once for four terms. They are added in their order, so the sum
has the same bits. This is the unroll-and-jam of D. Callahan, S. Carr, K. Kennedy,
"Improving Register Allocation for Subscripted Variables", PLDI 1990.
"""

from __future__ import annotations

from collections.abc import Mapping

from msops._loops.analysis.costs import arithmetic, computed, mean_trips
from msops._loops.analysis.updates import sum_of
from msops._loops.ir.building import element_of, integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Expr, For, FunctionCall, Load, Stmt, Store
from msops._loops.ir.ranges import Ranges
from msops._loops.ir.walk import (
    Scope,
    expressions,
    has_bounds_of_data,
    loads,
    rewrite,
    substitute,
    variables,
    with_parts,
)
from msops._loops.to_c.clean.reductions import SUMMED_IN_FLOAT32
from msops._loops.to_c.facts.blocks import can_swap, in_groups, index
from msops._loops.to_c.facts.strides import step

TERMS = 4
"""Terms that are added to an element at once."""
_FEWEST_TRIPS = 16
"""Iterations of the vector loop; fewer are not worth a group."""
_MOST_OPERATIONS = 8
"""Operations of one term; more of them take longer than reading and writing the element."""


def with_terms_grouped(loop: For, scope: Scope, names: Names) -> tuple[Stmt, ...] | None:
    """Returns a loop unrolled into the vector loop that is its body; None for others."""
    match loop.body:
        case (For(kind="parallel", body=(Store() as store,)) as vectors,) if (
            loop.kind != "parallel" and can_swap(loop, vectors)
        ):
            (inside,) = scope.inside(loop)
            is_long = (
                mean_trips(loop, scope.ranges) >= 2 * TERMS
                and mean_trips(vectors, inside.ranges) >= _FEWEST_TRIPS
            )
            if is_long and _may_be_grouped(store, loop, scope.buffers):
                return _grouped(loop, vectors, store, scope.ranges, names)
    return None


def _may_be_grouped(store: Store, loop: For, buffers: Mapping[str, Buffer]) -> bool:
    """Returns whether a loop only adds short terms to each element, one after another."""
    value, target = store.value, element_of(store)
    if value.dtype in SUMMED_IN_FLOAT32 or expressions(value).count(target) != 1:
        return False
    if arithmetic(value) > _MOST_OPERATIONS or any(
        isinstance(part, FunctionCall) for part in computed(value)
    ):
        return False
    if has_bounds_of_data(loop):
        return False
    if any(loop.var in variables(i) for i in store.indices) or step(store, loop, buffers):
        return False
    # Two iterations of the parallel loop never store to one element. No term may read an
    # element that another term changes: in a reduction none does, or it would have an order.
    read = [load for part in (*store.indices, value) for load in loads(part)]
    is_alone = sum(load.buffer == store.buffer for load in read) == 1
    return is_alone or (loop.kind == "reduction" and sum_of(store) is not None)


def _grouped(
    loop: For, vectors: For, store: Store, ranges: Ranges, names: Names
) -> tuple[Stmt, ...]:
    """Returns the loop over groups of terms, and the loop over the remaining terms."""
    target = element_of(store)

    def inside(first: Expr) -> tuple[Stmt, ...]:
        value: Expr = target
        for number in range(TERMS):
            here = {loop.var: index("add", first, integer(number))}
            value = _with_target(substitute(store.value, here), target, value)
        return (with_parts(vectors, body=(with_parts(store, value=value),)),)

    return in_groups(loop, TERMS, names.fresh(f"{loop.var}_group"), ranges, inside)


def _with_target(value: Expr, target: Load, replacement: Expr) -> Expr:
    """Returns a value with each load of an element replaced."""
    return rewrite(value, lambda part: replacement if part == target else part)
