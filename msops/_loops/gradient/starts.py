"""Stores the first term of an adjoint's sum, instead of adding it to 0.

    buffer d_a: float32[4]                        buffer d_a: float32[4]
    parallel i in 0 .. 4 {                        parallel i in 0 .. 4 {
      d_a[i] = d_a[i] + d_b[i]           ->         d_a[i] = d_b[i]
    }                                             }

An adjoint is 0 before its first term. Where nothing has been written for certain, the element need
not be read, and an array that is filled this way need not be zero at the start: for a large one
that is one pass over memory instead of three.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator

from msops._loops.analysis.polyhedral.accesses import Access, analysis
from msops._loops.analysis.polyhedral.dependences import dependences_between
from msops._loops.analysis.polyhedral.library import TooComplex
from msops._loops.analysis.updates import update_of
from msops._loops.ir.algebra import neg
from msops._loops.ir.nodes import Expr, Kernel, Stmt, Store
from msops._loops.ir.operators import is_float
from msops._loops.ir.walk import rewrite_statements, statements, with_body


def store_first_terms(kernel: Kernel) -> Kernel:
    """Returns the kernel with sums that start at their first terms."""
    terms = dict(_terms(kernel))
    first = _first(kernel, terms) if terms else frozenset()

    def change(store: Store) -> tuple[Stmt, ...]:
        if id(store) not in first:
            return (store,)
        return (dataclasses.replace(store, value=terms[id(store)]),)

    return with_body(kernel, rewrite_statements(kernel.body, change, Store)) if first else kernel


def _terms(kernel: Kernel) -> Iterator[tuple[int, Expr]]:
    """Yields the stores, by ids, that add to what is 0 at the start, and what they add."""
    parameters = {buffer.name for buffer in kernel.parameters}
    for stmt in statements(kernel.body):
        if isinstance(stmt, Store) and stmt.buffer not in parameters:
            update = update_of(stmt)
            if update is not None and update.op == "add" and is_float(update.term.dtype):
                yield id(stmt), neg(update.term) if update.is_negated else update.term


def _first(kernel: Kernel, terms: dict[int, Expr]) -> frozenset[int]:
    """Returns the ids of the stores among `terms` that no other store to their element precedes.

    Others may add to the same elements later, but in no other iteration of a loop around both:
    as long as all add, their order is free.
    """

    def drop(store: Stmt, buffer: str) -> None:
        # A statement that reads the buffer may be the first one to add to another.
        if isinstance(store, Store) and store.buffer == buffer:
            first.discard(id(store))

    first = set(terms)
    stores = [stmt for stmt in statements(kernel.body) if isinstance(stmt, Store)]
    sums = {store.buffer for store in stores if id(store) in terms}
    try:
        with analysis(kernel) as accesses:
            groups: dict[str, list[Access]] = defaultdict(list)
            for access in accesses:
                if access.buffer in sums:
                    groups[access.buffer].append(access)
            for name, group in groups.items():
                for found in dependences_between(tuple(group)):
                    if found.carrier is not None:
                        drop(found.source.statement, name)
                    if found.kind == "flow":
                        drop(found.target.statement, name)
    except TooComplex:
        return frozenset()
    return frozenset(first)
