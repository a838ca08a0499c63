"""Splits a loop where it passes the one iteration that all others depend on.

serial k in 0 .. n {                        serial k in 0 .. n {
  serial j in 0 .. n {                        serial j in 0 .. k { p[j] = p[j] + p[k] }
    p[j] = p[j] + p[k]              ->        p[k] = p[k] + p[k]
  }                                           serial j in (k + 1) .. n { p[j] = p[j] + p[k] }

The iteration that writes the pivot keeps the loop from being parallel; before and after it nothing
is in the way (shortest paths, Gauss-Jordan elimination). Iterations stay in their order. Polyhedral
compilers call this index set splitting (M. Griebl, P. Feautrier, C. Lengauer, IJPP 2000).
"""

from __future__ import annotations

from collections import Counter

from msops._loops.analysis.updates import update_of
from msops._loops.ir.building import binary, integer
from msops._loops.ir.names import unique_names
from msops._loops.ir.nodes import For, Kernel, Load, Stmt, Store, Var
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    loads_in,
    rewrite_inner_loops,
    rewrite_loops,
    statements,
    with_parts,
)
from msops._loops.passes.simplify import simplify
from msops._loops.passes.simplify_expressions import difference

_MOST_STATEMENTS = 8
"""Of a loop that is split: each of them is there three times after."""


def split_at_pivots(kernel: Kernel) -> Kernel:
    """Returns the kernel with loops split at their pivots, and the loops inside of them."""
    split = rewrite_loops(kernel, _split)
    return kernel if split.body == kernel.body else simplify(unique_names(split))


def _split(loop: For, scope: Scope) -> tuple[Stmt, ...]:
    """Returns what replaces a loop, those inside of it first."""
    loop = rewrite_inner_loops(loop, scope, _split)
    pivot = _pivot(loop, scope)
    if pivot is None or len(statements(loop.body)) > _MOST_STATEMENTS:
        return (loop,)
    after = binary("add", pivot, integer(1))
    return (
        with_parts(loop, end=pivot),
        with_parts(loop, begin=pivot, end=after),
        with_parts(loop, begin=after),
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
