"""Keeps elements at fixed places in variables while a loop changes them.

    serial j in 0 .. n {                  local kept: float32[] {
      if x[i, j] > y[i, 0] {                kept[] = y[i, 0]
        y[i, 0] = x[i, j]          ->       serial j in 0 .. n {
      }                                       if x[i, j] > kept[] { kept[] = x[i, j] } }
    }                                       y[i, 0] = kept[] }

Sums of reductions are such elements, see `reductions`. A variable is a register where an element is
stored and loaded again in each iteration, and rows that change variables may go into the lanes of
vectors. An element that the loop only stores stays: where it is stored under a condition, as the
place of the largest is, compilers would choose it at every step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Buffer, Expr, For, Kernel, Load, Local, LoopKind, Stmt, Store
from msops._loops.ir.ranges import Ranges, loop_range
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    buffers_of,
    loads,
    rewrite_all,
    rewrite_inner_loops,
    rewrite_loops,
    rewrite_statements,
    statements,
    variables,
)
from msops._loops.passes.elements import are_apart, exists
from msops._loops.to_c.clean.reductions import Element, is_apart, stores_of, with_sums
from msops._loops.to_c.facts.blocks import if_it_runs

_KINDS: tuple[LoopKind, ...] = ("reduction", "serial")


def keep_in_variables(kernel: Kernel) -> Kernel:
    """Returns the kernel with elements that its serial loops and reductions change in variables."""
    names = Names(kernel)
    buffers = buffers_of(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        if loop.kind == "reduction":
            return with_sums(loop, scope, buffers, names)
        loop = rewrite_inner_loops(loop, scope, change, *_KINDS)
        kept = {
            element: Buffer(names.fresh("kept"), (), scope.buffers[element[0]].dtype)
            for element in _fixed(loop, scope)
        }
        return _with_kept(loop, kept, scope.ranges) if kept else (loop,)

    return rewrite_loops(kernel, change, *_KINDS)


def _fixed(loop: For, scope: Scope) -> list[Element]:
    """Returns the elements that a loop stores to, and touches by the same indices only."""
    inside = statements(loop.body)
    loops = [loop, *(stmt for stmt in inside if isinstance(stmt, For))]
    if any(part.kind == "parallel" for part in loops):
        return []
    ranges = dict(scope.ranges)
    for part in loops:
        ranges[part.var] = loop_range(part, ranges)
    own = {part.var for part in loops}
    accesses = dict.fromkeys(accesses_in(loop.body))

    def is_other(access: Load | Store, element: Element) -> bool:
        name, indices = element
        if access.buffer != name:
            return True
        # An index out of range is clamped for a load; a store is dropped.
        is_where_it_says = isinstance(access, Store) or exists(access, ranges, scope.buffers)
        return is_where_it_says and are_apart(access.indices, indices, ranges)

    found = []
    for store, is_guarded in stores_of(loop.body):
        element = (store.buffer, store.indices)
        if (
            store.indices
            and element not in found
            and any(isinstance(a, Load) and (a.buffer, a.indices) == element for a in accesses)
            and store.buffer in scope.buffers
            and not any(loads(index) or variables(index) & own for index in store.indices)
            # The element is loaded before the loop and stored after it, whatever the condition.
            and exists(store, scope.ranges, scope.buffers)
            and (not is_guarded or is_apart(element, scope))
            and all((a.buffer, a.indices) == element or is_other(a, element) for a in accesses)
        ):
            found.append(element)
    return found


def _with_kept(loop: For, kept: Mapping[Element, Buffer], ranges: Ranges) -> tuple[Stmt, ...]:
    """Returns a loop that changes some elements in variables, which are stored after it."""

    def read(part: Expr) -> Expr:
        if isinstance(part, Load) and (part.buffer, part.indices) in kept:
            return Load(kept[part.buffer, part.indices].name, (), part.dtype)
        return part

    def write(store: Store) -> tuple[Stmt, ...]:
        variable = kept.get((store.buffer, store.indices))
        if variable is None:
            return (store,)
        return (dataclasses.replace(store, buffer=variable.name, indices=()),)

    body = rewrite_all(rewrite_statements(loop.body, write, Store), read)
    around: tuple[Stmt, ...] = (dataclasses.replace(loop, body=body),)
    for (name, indices), variable in kept.items():
        start = Store(variable.name, (), Load(name, indices, variable.dtype))
        end = Store(name, indices, Load(variable.name, (), variable.dtype))
        around = (Local(variable, (start, *around, end), location=loop.location),)
    # The elements of a loop without iterations may not exist.
    return if_it_runs(loop, around, ranges)
