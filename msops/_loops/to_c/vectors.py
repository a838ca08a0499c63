"""Innermost loops that run in vectors are marked with the way to ask a compiler for them.

    parallel i in 0 .. 4096 {           parallel i in 0 .. 4096 @vector(ivdep) {
      b[i] = a[i]                 ->      b[i] = a[i]
    }                                   }
    reduction i in 0 .. 4096 {          reduction i in 0 .. 4096 @vector(simd) {
      sum[] = sum[] + a[i]        ->      sum[] = sum[] + a[i]
    }                                   }

`ivdep` is `#pragma GCC ivdep`: no iteration depends on another. `simd` is `#pragma omp simd`, which
also keeps a compiler from unrolling a short loop instead, and lets it reassociate sums of floats.
OpenMP's minimum and maximum of floats lose NaN, so `lanes` stands for a loop of our own: it keeps
one minimum or maximum for each lane of a vector and combines them at the end.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence, Set

from msops._loops.analysis.affine import affine
from msops._loops.analysis.costs import fixed_trips, mean_trips
from msops._loops.analysis.updates import sum_of
from msops._loops.ir.nodes import Buffer, For, Kernel, Load, Stmt, Store, VectorForm
from msops._loops.ir.operators import is_float
from msops._loops.ir.ranges import Ranges
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    bodies,
    buffers_of,
    declared_in,
    is_innermost,
    loads,
    loads_in,
    own_expressions,
    rewrite_loops,
    statements,
    stored_in,
    variables,
    with_parts,
)
from msops._loops.to_c.apart import are_apart
from msops._loops.to_c.reductions import fixed_updates
from msops._loops.to_c.strides import is_of_its_own, stride

_FEW_TRIPS = 8
# GCC's max-completely-peel-times; it leaves loops under `omp simd` alone.
PEELED_TRIPS = 16


def mark_vectors(kernel: Kernel) -> Kernel:
    """Returns the kernel with the form of each innermost loop that runs in vectors."""
    buffers = functools.cache(lambda: buffers_of(kernel))

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        if not may_run_in_vectors(loop) or _may_be_reordered(loop, scope, buffers()):
            return None
        form: VectorForm = "simd" if _is_peeled(loop) else "ivdep"
        if loop.kind == "reduction":
            variables = {name for name in scope.depths if not scope.buffers[name].shape}
            form = form_of_reduction(loop, scope.ranges, buffers(), variables)
        return (with_parts(loop, vector=form),)

    return rewrite_loops(kernel, change)


def may_run_in_vectors(loop: For) -> bool:
    """Returns whether a loop is innermost, and its iterations may run in any order."""
    return loop.kind != "serial" and is_innermost(loop)


def _may_be_reordered(loop: For, scope: Scope, buffers: Mapping[str, Buffer]) -> bool:
    """Returns whether a compiler may confuse accesses of the same iteration of a marked loop.

    In such a loop gcc takes elements for different ones if it does not know their distance. It
    loads neighbours, like `a[i, 0]` and `a[i, 1]`, together with the first of them, and stores them
    together with the last one: past `a[i, k]`, which may be one of them.
    """
    (inside,) = scope.inside(loop)
    loops = (*scope.loops, loop)
    for name in stored_in(loop.body) - declared_in(loop.body):
        accesses = [access for access in accesses_in(loop.body) if access.buffer == name]
        elements = {access.indices for access in accesses}
        strides = {stride(access, loop.var, buffers) for access in accesses}
        # Two neighbours and another element, that are apart from one iteration to the next.
        if len(elements) < 3 or strides <= {0, 1}:
            continue
        stored = {access.indices for access in accesses if isinstance(access, Store)}
        if not all(
            one == other or are_apart(one, other, inside.ranges, loops)
            for one in stored
            for other in elements
        ):
            return True
    return False


def seems_carried(loop: For) -> bool:
    """Returns whether a loop reads what a compiler takes for the result of an earlier iteration.

    The pragma of a parallel loop is for where a compiler cannot tell. It can tell which iteration
    writes the element before this one, but not that only every second iteration does, and leaves
    the loop without vectors.
    """
    stores = [stmt for stmt in statements(loop.body) if isinstance(stmt, Store)]
    return any(
        _is_behind(load, store, loop.var)
        for store in stores
        for load in loads_in(loop.body)
        if load.buffer == store.buffer and load.indices
    )


def _is_behind(load: Load, store: Store, var: str) -> bool:
    """Returns whether a load reads what an earlier iteration writes, if that does write."""
    *outer, last = store.indices
    *outer_of_load, last_of_load = load.indices
    own, read = affine(last, {var}), affine(last_of_load, {var})
    if outer != outer_of_load or own is None or read is None or not own.along:
        return False
    distance, step = own - read, own.along[0][1]
    return not distance.terms and distance.constant % step == 0 and distance.constant // step > 0


def gcc_confuses_iterations(loop: For, buffers: Mapping[str, Buffer]) -> bool:
    """Returns whether gcc may change the order of accesses of several iterations of a loop.

    Where a statement stores what a later one touches in a later iteration, gcc 12 only asks that
    the vectors of both keep this order. Then it stores neighbours together with the last of them,
    and loads neighbours together with the first: past the other access. It does so once it has
    written out the short loops inside.

    Args:
      loop: the loop, as it is printed.
      buffers: the buffers of the kernel, by name.
    """
    order = _in_order(loop.body)
    if loop.kind == "parallel" or loop.vector or order is None:
        return False
    inside = {stmt.var for stmt in statements(loop.body) if isinstance(stmt, For)}
    stored = stored_in(loop.body) - declared_in(loop.body)

    def moves(access: Load | Store, others: Sequence[Load | Store]) -> bool:
        return any(
            type(access) is type(other) and _are_neighbours(access, other, loop, inside, buffers)
            for other in others
        )

    for name in stored:
        own = [access for access in order if access.buffer == name]
        for first, store in enumerate(own):
            for at, access in enumerate(own[first + 1 :], first + 1):
                if (
                    isinstance(store, Store)
                    and _may_be_touched_later(access, store, loop.var)
                    and (
                        moves(store, own[at + 1 :])
                        or (isinstance(access, Load) and moves(access, own[:first]))
                    )
                ):
                    return True
    return False


def _are_neighbours(
    one: Load | Store,
    other: Load | Store,
    loop: For,
    inside: Set[str],
    buffers: Mapping[str, Buffer],
) -> bool:
    """Returns whether two elements may lie between those of the next iteration.

    Args:
      one: an access of an iteration.
      other: another one, to the same array.
      loop: the loop.
      inside: the variables of the loops inside, which are written out.
      buffers: the buffers of the kernel, by name.
    """
    steps = {stride(each, loop.var, buffers) for each in (one, other)}
    (step,) = steps if len(steps) == 1 else (None,)
    if step is None or abs(step) < 2:
        return False
    apart, size = 0, 1
    axes = zip(one.indices, other.indices, buffers[one.buffer].shape, strict=True)
    for left, right, length in reversed(list(axes)):
        sums = affine(left, ()), affine(right, ())
        if (
            sums[0] is None
            or sums[1] is None
            or not inside.isdisjoint(variables(left) | variables(right))
        ):
            return True
        difference = sums[0] - sums[1]
        if difference.terms:
            return False
        apart += difference.constant * size
        size *= length
    return abs(apart) < abs(step)


def _in_order(body: Sequence[Stmt]) -> list[Load | Store] | None:
    """Returns accesses in their order, of loops twice; None if a loop is not written out."""
    order: list[Load | Store] = []
    for stmt in body:
        order += [load for expr in own_expressions(stmt) for load in loads(expr)]
        if isinstance(stmt, Store):
            order.append(stmt)
        trips = fixed_trips(stmt) if isinstance(stmt, For) else 1
        if trips is None or trips > PEELED_TRIPS or (isinstance(stmt, For) and stmt.vector):
            return None
        for part in bodies(stmt):
            inside = _in_order(part)
            if inside is None:
                return None
            order += inside * min(trips, 2)
    return order


def _may_be_touched_later(access: Load | Store, store: Store, var: str) -> bool:
    """Returns whether an access is some iterations behind a store, for all a compiler can tell."""
    is_behind = False
    for written, touched in zip(store.indices, access.indices, strict=True):
        if var not in variables(written) | variables(touched):
            continue
        own, other = affine(written, {var}), affine(touched, {var})
        if own is None or other is None or own.along != other.along:
            return False
        if not own.along:
            continue
        distance, step = own - other, own.along[0][1]
        if not distance.terms and (distance.constant % step or distance.constant // step <= 0):
            return False
        is_behind = True
    return is_behind


def _is_peeled(loop: For) -> bool:
    """Returns whether a compiler would unroll a loop completely before it looks for vectors."""
    trips = fixed_trips(loop)
    return trips is not None and trips <= PEELED_TRIPS


def form_of_reduction(
    loop: For, ranges: Ranges, buffers: Mapping[str, Buffer], variables: Collection[str]
) -> VectorForm:
    """Returns the form of an innermost reduction; it runs in vectors if its sums are variables.

    Args:
      loop: the loop.
      ranges: the ranges of the variables around it.
      buffers: the buffers of the kernel, locals too, by name.
      variables: the names of the locals around the loop that are variables of C.
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
    # A compiler may reassociate sums of integers without being asked.
    return "simd" if floats else ""


def _meet(loop: For, sums: Collection[str], buffers: Mapping[str, Buffer]) -> bool:
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
