"""Conditions become choices of values, as the lanes of a vector take no branches of their own.

    if (m[] < 4.0) {                       local chosen: bool[] {
      m[] = f(m[])                           chosen[] = m[] < 4.0
    } else {                                 m[] = chosen[] ? f(m[]) : m[]
      n[] = n[] + 1                 ->       n[] = chosen[] ? n[] : (n[] + 1)
    }                                      }

Every target is a variable, or an element that no other iteration of the loop around touches. So it
may be stored to whether or not the condition holds; what only a branch uses needs no choice. A
condition that is the same in all iterations of the loop around stays, if no other is around it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from msops._loops.ir.building import element_of
from msops._loops.ir.elements import exists
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Expr, For, If, Load, Local, Select, Stmt, Store
from msops._loops.ir.ranges import nested_ranges
from msops._loops.ir.walk import (
    Scope,
    declared_in,
    loads,
    map_bodies,
    rewrite_statements,
    statements,
    with_parts,
)
from msops._loops.to_c.facts.blocks import is_alike
from msops._loops.to_c.facts.strides import is_of_its_own


def with_choices(loop: For, scope: Scope, buffers: Mapping[str, Buffer], names: Names) -> For:
    """Returns a loop with choices in place of the conditions in the serial loops inside.

    Args:
      loop: a parallel loop.
      scope: the scope around it.
      buffers: the buffers of the kernel, locals too, by name.
      names: the names of the kernel.
    """

    def without_branches(row: For) -> tuple[Stmt, ...]:
        return (row,) if row.kind != "serial" else (choices.within(row),)

    choices = _Choices(loop, scope, buffers, names)
    return with_parts(loop, body=rewrite_statements(loop.body, without_branches, For))


def with_all_choices(loop: For, scope: Scope, buffers: Mapping[str, Buffer], names: Names) -> For:
    """Returns a loop with choices in place of all conditions inside; see `with_choices`."""
    return _Choices(loop, scope, buffers, names).within(loop)


class _Choices:
    def __init__(
        self, loop: For, scope: Scope, buffers: Mapping[str, Buffer], names: Names
    ) -> None:
        self._loop, self._buffers, self._names = loop, buffers, names
        self._declared = declared_in(loop.body)
        inner = [part for part in statements(loop.body) if isinstance(part, For)]
        self._ranges = nested_ranges((loop, *inner), {**scope.contents(), **scope.ranges})

    def within(self, loop: For) -> For:
        """Returns a loop with choices in place of the conditions inside."""
        return with_parts(loop, body=rewrite_statements(loop.body, self._choices, If))

    def _choices(self, stmt: If) -> tuple[Stmt, ...]:
        if is_alike(stmt.condition, self._loop):
            return (stmt,)
        inner = map_bodies(stmt, lambda body: rewrite_statements(body, self._chosen, If))
        assert isinstance(inner, If)
        return self._chosen(inner)

    def _chosen(self, stmt: If) -> tuple[Stmt, ...]:
        inside = statements((*stmt.then, *stmt.otherwise))
        stores = [inner for inner in inside if not isinstance(inner, Local)]
        if not all(
            isinstance(inner, Store) and self._is_of_the_iteration(inner) for inner in stores
        ):
            return (stmt,)
        return (self._with_choices(stmt, self._names.fresh("chosen")),)

    def _is_of_the_iteration(self, store: Store) -> bool:
        name = store.buffer
        is_own = name in self._declared or is_of_its_own(name, self._loop)
        return not store.indices or (is_own and exists(store, self._ranges, self._buffers))

    def _with_choices(self, stmt: If, name: str) -> Stmt:
        """Returns the stores of a condition as stores of chosen values."""
        # The stores may change what the condition reads.
        condition = Load(name, (), "bool")
        own = declared_in((stmt,))

        def choices(body: tuple[Stmt, ...], is_then: bool) -> tuple[Stmt, ...]:
            def choose(store: Store) -> tuple[Stmt, ...]:
                if store.buffer in own and self._may_be_computed(store.value):
                    return (store,)
                old = element_of(store)
                then, otherwise = (store.value, old) if is_then else (old, store.value)
                value = Select(condition, then, otherwise, store.value.dtype)
                return (dataclasses.replace(store, value=value),)

            return rewrite_statements(body, choose, Store)

        body = (
            Store(name, (), stmt.condition),
            *choices(stmt.then, True),
            *choices(stmt.otherwise, False),
        )
        return Local(Buffer(name, (), "bool"), body)

    def _may_be_computed(self, value: Expr) -> bool:
        """Returns whether all elements that a value reads exist, whatever is around it."""
        return all(
            not load.indices or exists(load, self._ranges, self._buffers) for load in loads(value)
        )
