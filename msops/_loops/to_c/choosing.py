"""Conditions become choices of values, as the lanes of a vector take no branches of their own.

    if (m[] < 4.0) {                       local chosen: bool[] {
      m[] = f(m[])                           chosen[] = m[] < 4.0
      n[] = n[] + 1                 ->       m[] = chosen[] ? f(m[]) : m[]
    }                                        n[] = chosen[] ? (n[] + 1) : n[]
                                           }

Every target is a variable, or an element that no other iteration of the loop around touches. So it
may be stored to whether or not the condition holds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from msops._loops.ir.building import element_of
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, For, If, Load, Local, Select, Stmt, Store
from msops._loops.ir.ranges import exists
from msops._loops.ir.walk import Scope, rewrite_statements, statements, with_parts
from msops._loops.to_c.strides import is_of_its_own


def with_choices(loop: For, scope: Scope, buffers: Mapping[str, Buffer], names: Names) -> For:
    """Returns a loop with choices in place of the conditions in the serial loops inside.

    Args:
      loop: a parallel loop.
      scope: the scope around it.
      buffers: the buffers of the kernel, locals too, by name.
      names: the names of the kernel.
    """
    (inside,) = scope.inside(loop)

    def is_of_the_iteration(store: Store) -> bool:
        return not store.indices or (
            is_of_its_own(store.buffer, loop) and exists(store, inside.ranges, buffers)
        )

    def choices(stmt: If) -> tuple[Stmt, ...]:
        stores = [inner for inner in statements(stmt.then) if not isinstance(inner, Local)]
        if stmt.otherwise or not all(
            isinstance(inner, Store) and is_of_the_iteration(inner) for inner in stores
        ):
            return (stmt,)
        return (_chosen(stmt, names.fresh("chosen")),)

    def without_branches(row: For) -> tuple[Stmt, ...]:
        if row.kind != "serial":
            return (row,)
        return (with_parts(row, body=rewrite_statements(row.body, choices, If)),)

    return with_parts(loop, body=rewrite_statements(loop.body, without_branches, For))


def _chosen(stmt: If, name: str) -> Stmt:
    """Returns the stores of a condition as stores of chosen values."""
    # The stores may change what the condition reads.
    condition = Load(name, (), "bool")

    def choose(store: Store) -> tuple[Stmt, ...]:
        old = element_of(store)
        value = Select(condition, store.value, old, store.value.dtype)
        return (dataclasses.replace(store, value=value),)

    body = rewrite_statements(stmt.then, choose, Store)
    return Local(Buffer(name, (), "bool"), (Store(name, (), stmt.condition), *body))
