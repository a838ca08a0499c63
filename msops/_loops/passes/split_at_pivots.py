"""Splits a loop where it passes the one iteration that all others depend on.

serial k in 0 .. n {                        serial k in 0 .. n {
  serial j in 0 .. n {                        serial j in 0 .. k { p[j] = p[j] + p[k] }
    p[j] = p[j] + p[k]              ->        p[k] = p[k] + p[k]
  }                                           serial j in (k + 1) .. n { p[j] = p[j] + p[k] }

The iteration that writes the pivot keeps the loop from being parallel; before and after it nothing
is in the way (shortest paths, Gauss-Jordan elimination). Iterations stay in their order. Polyhedral
compilers call this index set splitting (M. Griebl, P. Feautrier, C. Lengauer, IJPP 2000).

Most iterations of the parts of a short row fill no vector. It stays one loop, in which each
iteration chooses the pivot's old or new value; that takes little where the row is in the first
cache:

                                              held[] = p[k]
                                              next[] = held[] + held[]
                                    ->        serial j in 0 .. n {
                                                p[j] = p[j] + (j <= k ? held[] : next[])
                                              }
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from msops._loops.analysis.updates import update_of
from msops._loops.ir.algebra import binary, element_of, integer
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import Buffer, Expr, For, Kernel, Load, Select, Stmt, Store, Var
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    exchanged,
    loads,
    loads_in,
    rewrite_inner_loops,
    rewrite_loops,
    statements,
    substitute,
    variables,
    with_parts,
    with_value,
    within_locals,
)
from msops._loops.passes.elements import are_apart
from msops._loops.passes.simplify import simplify
from msops._loops.passes.simplify_expressions import difference

_MOST_STATEMENTS = 8
"""Of a loop that is split: each of them is there three times after."""
_MOST_TRIPS = 256
"""Iterations of a row that stays one loop. Measured of shortest paths, with as many rows: rows of
64 take 0.34 of the time of their parts, of 200 0.81, of 256 0.71, of 320 1.20, of 400 1.27, of 500
1.18 to 1.64."""


def split_at_pivots(kernel: Kernel) -> Kernel:
    """Returns the kernel with loops split at their pivots, and the loops inside of them."""
    split = rewrite_loops(kernel, partial(_split, Names(kernel)))
    return kernel if split.body == kernel.body else simplify(unique_names(split))


def _split(names: Names, loop: For, scope: Scope) -> tuple[Stmt, ...]:
    """Returns what replaces a loop, and those inside of it."""
    pivot = _pivot(loop, scope)
    if pivot is None or len(statements(loop.body)) > _MOST_STATEMENTS:
        return (rewrite_inner_loops(loop, scope, partial(_split, names)),)
    if _stays_whole(loop, pivot, scope):
        return _whole(loop, pivot, names)
    after = binary("add", pivot, integer(1))
    at = with_parts(loop, begin=pivot, end=after, body=with_value(loop.body, loop.var, pivot))
    parts = (with_parts(loop, end=pivot), at, with_parts(loop, begin=after))
    return tuple(rewrite_inner_loops(part, scope, partial(_split, names)) for part in parts)


def _whole(loop: For, pivot: Var, names: Names) -> tuple[Stmt, ...]:
    """Returns a row as one loop whose iterations choose the old or the new pivot."""
    (row,) = loop.body
    assert isinstance(row, Store)
    at = {loop.var: pivot}
    element = substitute(element_of(row), at)
    held, later = (Buffer(names.fresh(name), (), element.dtype) for name in ("held", "next"))
    old, new = Load(held.name, (), held.dtype), Load(later.name, (), later.dtype)
    chosen = Select(binary("le", Var(loop.var), pivot), old, new, element.dtype)
    whole = with_parts(row, value=exchanged(row.value, element, chosen))
    return within_locals(
        (held, later),
        (
            Store(held.name, (), element),
            Store(later.name, (), exchanged(substitute(row.value, at), element, old)),
            with_parts(loop, body=(whole,)),
        ),
    )


def _stays_whole(loop: For, pivot: Var, scope: Scope) -> bool:
    """Returns whether a loop is a short row with a pivot.

    Of what it stores an iteration may read its own element, the pivot, and what none of them store.
    """
    ranges = scope.ranges
    trips = difference(loop.end, loop.begin, ranges)
    if trips is None or trips[1] > _MOST_TRIPS or loop.hint == "serial" or len(loop.body) != 1:
        return False
    (store,) = loop.body
    if not isinstance(store, Store):
        return False
    moving = [axis for axis, i in enumerate(store.indices) if loop.var in variables(i)]
    if len(moving) != 1 or store.indices[moving[0]] != Var(loop.var):
        return False
    own = element_of(store)
    element = substitute(own, {loop.var: pivot})
    read = [load for load in loads(store.value) if load.buffer == store.buffer]

    def fixed(access: Load | Store) -> tuple[Expr, ...]:
        return tuple(index for axis, index in enumerate(access.indices) if axis not in moving)

    return element in read and all(
        load in (own, element) or are_apart(fixed(load), fixed(store), ranges, scope.loops)
        for load in read
    )


def _pivot(loop: For, scope: Scope) -> Var | None:
    """Returns the variable around a loop that picks an element which one iteration writes."""
    accesses = accesses_in(loop.body)
    written = {
        (store.buffer, axis)
        for store in accesses
        if isinstance(store, Store)
        for axis, index in enumerate(store.indices)
        if index == Var(loop.var)
    }
    candidates = (
        (index, load.buffer)
        for load in accesses
        if isinstance(load, Load)
        for axis, index in enumerate(load.indices)
        if (load.buffer, axis) in written
    )
    for index, name in candidates:
        if not isinstance(index, Var) or index.name == loop.var:
            continue
        if _is_passed(index, loop, scope) and name not in _sums(loop):
            return index
    return None


def _sums(loop: For) -> set[str]:
    """Returns the buffers that a loop only updates, all by one operation: in any order."""
    stores = [stmt for stmt in statements(loop.body) if isinstance(stmt, Store)]
    ops: dict[str, set[str]] = {store.buffer: set() for store in stores}
    for store in stores:
        update = update_of(store)
        ops[store.buffer].add(update.op if update else "")
    read = Counter(load.buffer for load in loads_in(loop.body))
    stored = Counter(store.buffer for store in stores)
    return {name for name, own in ops.items() if len(own) == 1 and own != {""}
            and read[name] == stored[name]}  # fmt: skip


def _is_passed(pivot: Var, loop: For, scope: Scope) -> bool:
    """Returns whether a loop always has an iteration where its variable equals another one."""
    if pivot.name not in scope.ranges:
        return False
    from_begin = difference(pivot, loop.begin, scope.ranges)
    to_end = difference(loop.end, pivot, scope.ranges)
    return from_begin is not None and from_begin[0] >= 0 and to_end is not None and to_end[0] >= 1
