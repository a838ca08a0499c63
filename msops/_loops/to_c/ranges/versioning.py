"""Loops whose indices depend on data get a version in which these are proven to be in range.

    serial k in 0 .. 100 {                 if (int64(at[i]) >= 0 && int64(at[i]) <= 801) {
      y[i, k] = x[at[i] + k]                 serial k in 0 .. 100 {
    }                                ->        y[i, k] = x[within(int64(at[i]) + int64(k), 0, 900)]
                                             }
                                           } else {
                                             serial k_1 in 0 .. 100 { ... }
                                           }

An index that may be out of range is clamped at each access (rule 3 of `_loops/README.md`), and is
no longer one that moves by the same distance from one iteration to the next. An index of the first
version is in range in the first and in the last iteration, and so between them. Loops over data,
such as ``first[i] .. first[i + 1]``, have such indices too. The other version keeps the guarded
accesses. Compilers call this loop versioning.

Indices that are the same in all iterations are proven with them for elements that are stored, since
the guard of a store is a branch, and for elements that a choice reads, which then needs no branch.
Where each iteration then adds to elements of its own, the iterations are parallel: with guards, two
of them may read the same element.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Set

from msops._loops.ir.algebra import add, binary, both
from msops._loops.ir.names import unique_names
from msops._loops.ir.nodes import Expr, For, If, Kernel, Load, Select, Stmt, Store, Var, Within
from msops._loops.ir.ranges import Range, is_within, range_of
from msops._loops.ir.walk import (
    A,
    Scope,
    accesses_in,
    declared_in,
    expressions,
    is_innermost,
    loads,
    map_accesses,
    rewrite_loops,
    statements,
    stored_in,
    variables,
    with_parts,
)
from msops._loops.passes.elements import exists
from msops._loops.passes.simplify_expressions import simplified
from msops._loops.to_c.facts.moving import MovingIndex, exact, exact_number, moving_index
from msops._loops.to_c.facts.strides import is_of_its_own


def version_loops_over_data(kernel: Kernel) -> Kernel:
    """Returns the kernel with two versions of its innermost loops whose indices depend on data."""
    changed = rewrite_loops(kernel, _versions)
    return kernel if changed is kernel else unique_names(changed)


def _versions(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
    changing = stored_in(loop.body) | declared_in(loop.body)
    bounding = {load.buffer for bound in (loop.begin, loop.end) for load in loads(bound)}
    if bounding & changing or not is_innermost(loop):
        return None
    (inside,) = scope.inside(loop)
    found: dict[Expr, tuple[MovingIndex, int]] = {}
    fixed: dict[Expr, int] = {}
    chosen = _chosen_loads(loop)
    for access in accesses_in(loop.body):
        shape = scope.buffers[access.buffer].shape if access.buffer in scope.buffers else ()
        for index, size in zip(access.indices, shape, strict=False):
            if is_within(range_of(index, inside.ranges), (0, size - 1)):
                continue
            # What does not depend on data is known without conditions. Data are read before the
            # loop, which may not read them in any iteration. Other arrays may have the same index.
            if moving := moving_index(index, loop.var, changing):
                read = loads(moving.rest)
                if (bounding or read) and all(exists(x, scope.ranges, scope.buffers) for x in read):
                    found[index] = (moving, min(size, found.get(index, (moving, size))[1]))
            elif (access.buffer in changing or access in chosen) and _is_fixed(
                index, loop.var, changing, scope
            ):
                fixed[index] = min(size, fixed.get(index, size))
    conditions = _conditions(loop, found, scope)
    if not conditions:
        return None
    conditions += _conditions_of_fixed(fixed, scope)

    def within(access: A) -> A:
        return dataclasses.replace(access, indices=tuple(map(known, access.indices)))

    def known(index: Expr) -> Expr:
        if index in fixed:
            return Within(index, 0, fixed[index] - 1)
        if index not in found:
            return index
        moving, size = found[index]
        return Within(moving.at(Var(loop.var)), 0, size - 1)

    version = with_parts(loop, body=map_accesses(loop.body, within))
    if _are_apart(version, inside):
        version = with_parts(version, kind="parallel")
    return (If(both(conditions), (version,), (loop,), location=loop.location),)


def _chosen_loads(loop: For) -> set[Load]:
    """Returns the loads in branches of the choices that a loop stores."""
    choices = (
        part
        for stmt in statements(loop.body)
        if isinstance(stmt, Store)
        for part in expressions(stmt.value)
        if isinstance(part, Select)
    )
    return {load for part in choices for load in (*loads(part.then), *loads(part.otherwise))}


def _conditions(
    loop: For, found: Mapping[Expr, tuple[MovingIndex, int]], scope: Scope
) -> list[Expr] | None:
    """Returns what holds where indices are in range in all iterations; None if they never are.

    Args:
      loop: the loop.
      found: its indices, and the sizes of their dimensions.
      scope: the scope around the loop.
    """
    limits: dict[MovingIndex, Range] = {}
    for moving, size in found.values():
        low, high = -moving.constant, size - 1 - moving.constant
        alike = dataclasses.replace(moving, constant=0)
        known = limits.get(alike, (low, high))
        limits[alike] = (max(low, known[0]), min(high, known[1]))
    conditions: dict[Expr, None] = {}
    for moving, (low, high) in limits.items():
        if low > high:
            return None
        first = simplified(moving.at(loop.begin), scope.ranges)
        last = simplified(moving.at(add(exact(loop.end), exact_number(-1))), scope.ranges)
        least, greatest = (first, last) if moving.factor > 0 else (last, first)
        if range_of(least, scope.ranges)[0] < low:
            conditions[binary("ge", least, exact_number(low))] = None
        if range_of(greatest, scope.ranges)[1] > high:
            conditions[binary("le", greatest, exact_number(high))] = None
    return list(conditions)


def _is_fixed(index: Expr, var: str, changing: Set[str], scope: Scope) -> bool:
    """Returns whether an index is the same in all iterations of a loop and known before it."""
    return var not in variables(index) and all(
        load.buffer not in changing and exists(load, scope.ranges, scope.buffers)
        for load in loads(index)
    )


def _conditions_of_fixed(fixed: Mapping[Expr, int], scope: Scope) -> list[Expr]:
    """Returns what holds where fixed indices are in range, by the sizes of their dimensions."""
    conditions: list[Expr] = []
    for index, size in fixed.items():
        whole = exact(index)
        low, high = range_of(index, scope.ranges)
        if low < 0:
            conditions.append(binary("ge", whole, exact_number(0)))
        if high >= size:
            conditions.append(binary("le", whole, exact_number(size - 1)))
    return conditions


def _are_apart(loop: For, inside: Scope) -> bool:
    """Returns whether each iteration of an innermost loop stores elements that no other touches.

    These are in range: an element that is read may be another one where its index is not.
    """
    stored = stored_in(loop.body) - declared_in(loop.body)
    return all(is_of_its_own(name, loop) for name in stored) and all(
        exists(access, inside.ranges, inside.buffers)
        for access in accesses_in(loop.body)
        if access.buffer in stored
    )
