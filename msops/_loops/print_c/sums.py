"""Finds sums that read the array they are stored in, at other elements.

    serial k in 0 .. j {                          reduction k in 0 .. j {
      b[i, j] = b[i, j] - b[i, k] * b[j, k]   ->    ...

Such a loop runs in order for all who may not look at values closer; its updates may be reassociated
as those of other sums if no term reads the element.
"""

from __future__ import annotations

import dataclasses

from msops._loops.ir import For, Kernel, Stmt, Store
from msops._loops.print_c.reductions import sum_of
from msops._loops.updates import update_of
from msops._loops.walk import map_bodies, statements, with_body


def mark_sums(kernel: Kernel) -> Kernel:
    """Returns the kernel with the loops of such sums marked as reductions."""
    candidates = {
        loop.var: loop.body[0]
        for loop in statements(kernel.body)
        if isinstance(loop, For) and loop.kind == "serial" and loop.hint != "serial"
        if len(loop.body) == 1 and _is_candidate(loop.body[0])
    }
    if not candidates:
        return kernel
    sums = candidates.keys() - _ordered(kernel, candidates)

    def change(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        marked = (
            dataclasses.replace(stmt, kind="reduction")
            if isinstance(stmt, For) and stmt.var in sums
            else stmt
            for stmt in body
        )
        return tuple(map_bodies(stmt, change) for stmt in marked)

    return with_body(kernel, change(kernel.body))


def _is_candidate(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and update_of(stmt) is None and sum_of(stmt) is not None


def _ordered(kernel: Kernel, candidates: dict[str, Stmt]) -> set[str]:
    """Returns the loops that carry a dependence which is not that of the sum on itself."""
    from msops._loops.polyhedral.dependences import dependences
    from msops._loops.polyhedral.library import TooComplex

    try:
        found = dependences(kernel)
    except TooComplex:
        return set(candidates)
    ordered = set()
    for dependence in found:
        store = candidates.get(dependence.carrier or "")
        if isinstance(store, Store) and not all(
            access.node.indices == store.indices
            for access in (dependence.source, dependence.target)
        ):
            ordered.add(dependence.carrier or "")
    return ordered
