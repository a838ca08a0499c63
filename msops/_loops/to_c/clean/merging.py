"""Stores that both branches of a condition make become one store of a chosen value.

    if (c) { d[i] = x } else { d[i] = y }   ->   d[i] = (c ? x : y)

A compiler then knows that the element is written, and can keep it in a register. Several stores,
as of the colours of a pixel, become as many, so that the loop around can run in vectors.
"""

from __future__ import annotations

import dataclasses

from msops._loops.ir.nodes import Expr, If, Kernel, Select, Stmt, Store
from msops._loops.ir.walk import loads, loads_in, rewrite_statements, stored_in, with_body


def merge_branches(kernel: Kernel) -> Kernel:
    """Returns the kernel with such conditions turned into expressions."""
    return with_body(kernel, rewrite_statements(kernel.body, _merged, If))


def _merged(stmt: If) -> tuple[Stmt, ...]:
    if len(stmt.then) != len(stmt.otherwise) or not stmt.then:
        return (stmt,)
    merged = [
        _chosen(stmt.condition, *pair) for pair in zip(stmt.then, stmt.otherwise, strict=True)
    ]
    if not all(merged) or (len(merged) > 1 and _reads_what_it_stores(stmt)):
        return (stmt,)
    return tuple(store for store in merged if store)


def _chosen(condition: Expr, then: Stmt, other: Stmt) -> Store | None:
    """Returns the store that two stores to one element are; None if they are something else."""
    match then, other:
        case Store(), Store() if (then.buffer, then.indices) == (other.buffer, other.indices):
            value = Select(condition, then.value, other.value, then.value.dtype)
            return dataclasses.replace(then, value=value)
    return None


def _reads_what_it_stores(stmt: If) -> bool:
    """Returns whether the first store of a branch may change what another one is."""
    read = {load.buffer for load in (*loads_in((stmt,)), *loads(stmt.condition))}
    return not read.isdisjoint(stored_in((stmt,)))
