"""Loops in which gcc would put accesses into an order that changes the results.

    serial j in 0 .. 12 {
      y[j + 1, 0] = p[0]
      y[j, 0] = y[j, 0] + 1.0        the load may come before the store of the iteration before
      y[j + 1, 1] = p[1]
    }

To make vectors, gcc stores neighbours together with the last of them, and loads them together with
the first. Found in gcc 12 with random loops; other compilers are not known to do so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from msops._loops.analysis.affine import affine
from msops._loops.analysis.costs import fixed_trips
from msops._loops.ir.nodes import Buffer, For, If, Load, Stmt, Store
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    bodies,
    declared_in,
    loads,
    own_expressions,
    statements,
    stored_in,
    variables,
)
from msops._loops.to_c.facts.apart import are_apart
from msops._loops.to_c.facts.strides import stride

# GCC's max-completely-peel-times; it leaves loops under `omp simd` alone.
PEELED_TRIPS = 16


def gcc_confuses_elements(loop: For, scope: Scope, buffers: Mapping[str, Buffer]) -> bool:
    """Returns whether gcc may change the order of accesses of one iteration of a marked loop.

    In such a loop it takes elements for different ones if it does not know their distance. It
    loads neighbours, like `a[i, 0]` and `a[i, 1]`, together with the first of them, and stores them
    together with the last one: past `a[i, k]`, which may be one of them. Where it stores neighbours
    under conditions it does so past every other access.
    """
    (inside,) = scope.inside(loop)
    loops = (*scope.loops, loop)
    for name in stored_in(loop.body) - declared_in(loop.body):
        accesses = [access for access in accesses_in(loop.body) if access.buffer == name]
        elements = {access.indices for access in accesses}
        strides = {stride(access, loop.var, buffers) for access in accesses}
        # Elements that are side by side from one iteration to the next are safe.
        if len(elements) < 2 or strides <= {0, 1}:
            continue
        if _is_stored_under_conditions(name, loop.body):
            return True
        # Else it takes two neighbours and another element.
        if len(elements) < 3:
            continue
        stored = {access.indices for access in accesses if isinstance(access, Store)}
        if not all(
            one == other or are_apart(one, other, inside.ranges, loops)
            for one in stored
            for other in elements
        ):
            return True
    return False


def _is_stored_under_conditions(name: str, body: tuple[Stmt, ...]) -> bool:
    return any(
        isinstance(stmt, If) and name in stored_in((*stmt.then, *stmt.otherwise))
        for stmt in statements(body)
    )


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


def gcc_fills_masks(loop: For) -> bool:
    """Returns whether gcc may read past the end of an array if it unrolls a loop over groups.

    gcc 12 compiles a masked load whose mask it knows as a load of the whole vector, of which it
    drops lanes (with -O3 and AVX-512). It knows the mask of the last group once it has written out
    all groups, so the printer hides their number from it.
    """
    return any(
        isinstance(inner, For) and inner.vector and any(isinstance(s, If) for s in inner.body)
        for inner in statements(loop.body)
    )


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
