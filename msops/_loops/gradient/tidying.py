"""The adjoint kernel, tidied: loops count up again, and sums start at their first terms.

    parallel i in 0 .. 4 {                             parallel i in 0 .. 4 {
      d_a[3 - i] = d_a[3 - i] + d_b[3 - i]      ->       d_a[i] = d_b[i]

Reversing a kernel turns every loop. What remains turned after `ascend` really runs backwards.

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
from msops._loops.ir.mirror import mirror, turned
from msops._loops.ir.nodes import Expr, For, Kernel, Stmt, Store, Var
from msops._loops.ir.operators import is_float
from msops._loops.ir.walk import (
    expressions,
    map_all,
    own_expressions,
    rewrite_statements,
    statements,
    with_body,
)


def ascend(kernel: Kernel) -> Kernel:
    """Returns the kernel with loops that may run in any order counting up.

    These are the loops whose bodies use the variable only counted from the end.
    """

    def change(stmt: For) -> tuple[Stmt, ...]:
        if stmt.kind == "serial":
            return (stmt,)
        back, var = mirror(stmt, stmt.var), Var(stmt.var)
        parts = [
            part
            for inner in statements(stmt.body)
            for expr in own_expressions(inner)
            for part in expressions(expr)
            if part in (back, var)
        ]
        if parts.count(back) < parts.count(var):
            return (stmt,)

        body = map_all(stmt.body, lambda expr: turned(expr, back, var))
        return (dataclasses.replace(stmt, body=body),)

    return with_body(kernel, rewrite_statements(kernel.body, change, For))


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
