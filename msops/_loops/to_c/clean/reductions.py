"""Keeps the sums of an innermost reduction in variables, which vector registers can hold.

    reduction j in 0 .. 8 {               local sum: float32[] {
      s[i] = s[i] + a[i, j]        ->       sum[] = s[i]
    }                                       reduction j in 0 .. 8 { sum[] = sum[] + a[i, j] }
                                            s[i] = sum[] }

float16 and bfloat16 are summed in float32 and rounded once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msops._loops.analysis.updates import Update, sum_of
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Binary, Buffer, Cast, Expr, For, If, Load, Local, Stmt, Store
from msops._loops.ir.ranges import Ranges, loop_range
from msops._loops.ir.walk import (
    Scope,
    bodies,
    is_innermost,
    loads,
    own_expressions,
    rewrite_statements,
    statements,
)
from msops._loops.passes.elements import are_apart, exists
from msops._loops.to_c.facts.blocks import if_it_runs
from msops._loops.to_c.facts.strides import offset, step

SUMMED_IN_FLOAT32 = ("float16", "bfloat16")
"""Float dtypes that are added up in float32."""

Element: TypeAlias = tuple[str, tuple[Expr, ...]]
"""The name of a buffer, and indices."""

Updates: TypeAlias = dict[Element, Update]
"""Updates by the element that they update."""


def with_sums(
    loop: For, scope: Scope, buffers: Mapping[str, Buffer], names: Names
) -> tuple[Stmt, ...] | None:
    """Returns a reduction with its sums in variables; None if it has none that may be there.

    Args:
      loop: the reduction.
      scope: the scope around it.
      buffers: the buffers of the kernel, locals too, by name.
      names: the names of the kernel.
    """
    updates = fixed_updates(loop, scope.ranges, buffers, scope.loops)
    # A condition may keep iterations of the parallel loops around apart. A sum that is written
    # back without the condition could meet another one.
    guarded = {(s.buffer, s.indices) for s, is_guarded in stores_of(loop.body) if is_guarded}
    if not updates or not all(is_apart(e, scope) for e in guarded & updates.keys()):
        return None
    return _summed(loop, updates, scope.ranges, names)


def is_apart(element: Element, scope: Scope) -> bool:
    """Returns whether an element differs between all iterations of the parallel loops around."""
    name, indices = element
    around = scope.loops[scope.depths.get(name, 0) :]
    variables = [loop.var for loop in around if loop.kind == "parallel"]
    return all(any(offset(index, var) is not None for index in indices) for var in variables)


def _summed(loop: For, updates: Updates, ranges: Ranges, names: Names) -> tuple[Stmt, ...]:
    scalars = {
        element: Buffer(names.fresh("sum"), (), _sum_dtype(update.target.dtype))
        for element, update in updates.items()
    }
    before, after = [], []
    for element, update in updates.items():
        target = update.target
        scalar = Load(scalars[element].name, (), scalars[element].dtype)
        before.append(Store(scalar.buffer, (), _cast(target, scalar.dtype)))
        after.append(Store(target.buffer, target.indices, _cast(scalar, target.dtype)))
    replaced = rewrite_statements(loop.body, lambda s: (_updated(s, scalars) or s,), Store)
    body: tuple[Stmt, ...] = (*before, dataclasses.replace(loop, body=replaced), *after)
    for scalar_buffer in reversed(scalars.values()):
        body = (Local(scalar_buffer, body, location=loop.location),)
    # The elements of a loop without iterations may not exist.
    return if_it_runs(loop, body, ranges)


def fixed_updates(
    loop: For, ranges: Ranges, buffers: Mapping[str, Buffer], around: Sequence[For] = ()
) -> Updates:
    """Returns the updates in an innermost reduction of elements that stay the same.

    They may be done in variables, if the loop runs at all, and in any order. The result is empty if
    the loop uses such an element in another way, or if two of them may be the same.

    Args:
      loop: the loop.
      ranges: the ranges of the variables around it.
      buffers: the buffers of the kernel, locals too, by name.
      around: the loops around it, whose bounds may show that elements are not the same.
    """
    if loop.kind != "reduction" or not is_innermost(loop):
        return {}
    found: Updates = {}
    for store, is_guarded in stores_of(loop.body):
        update = sum_of(store)
        if update is None or step(store, loop, buffers) != 0:
            continue
        # An element may exist only under its condition, and must not be touched without it.
        if is_guarded and not exists(store, ranges, buffers):
            return {}
        known = found.setdefault((store.buffer, store.indices), update)
        if known.op != update.op:
            return {}
    ranges = {**ranges, loop.var: loop_range(loop, ranges)}
    loops = (*around, loop)

    def is_other(access: Load | Store, element: Element) -> bool:
        name, indices = element
        if access.buffer != name:
            return True
        # An index out of range is clamped for a load; a store is dropped.
        is_where_it_says = isinstance(access, Store) or exists(access, ranges, buffers)
        return is_where_it_says and are_apart(access.indices, indices, ranges, loops)

    targets = [update.target for update in found.values()]
    are_distinct = all(
        is_other(target, element)
        for number, target in enumerate(targets)
        for element in list(found)[:number]
    )
    return found if found and are_distinct and _are_alone(loop, found, is_other) else {}


def stores_of(body: tuple[Stmt, ...], is_guarded: bool = False) -> Iterator[tuple[Store, bool]]:
    """Yields the stores in a body, and whether each is under a condition."""
    for stmt in body:
        if isinstance(stmt, Store):
            yield stmt, is_guarded
        for inner in bodies(stmt):
            yield from stores_of(inner, is_guarded or isinstance(stmt, If))


def _are_alone(
    loop: For, found: Updates, is_other: Callable[[Load | Store, Element], bool]
) -> bool:
    """Returns whether nothing but the updates touches their elements in the loop."""
    if len(loop.body) == 1 and isinstance(loop.body[0], Store):
        # Otherwise the loop would not be a reduction.
        return True
    if len({(name, update.op) for (name, _), update in found.items()}) > len({n for n, _ in found}):
        return False
    touched: list[Load | Store] = []
    for stmt in statements(loop.body):
        parts = own_expressions(stmt)
        if isinstance(stmt, Store):
            update = sum_of(stmt)
            if update is not None and (stmt.buffer, stmt.indices) in found:
                parts = (*stmt.indices, update.term)
            else:
                touched.append(stmt)
        touched += [load for part in parts for load in loads(part)]
    return all(is_other(access, element) for access in touched for element in found)


def _updated(stmt: Store, buffers: dict[Element, Buffer]) -> Store | None:
    """Returns an update of a fixed element as the update of its scalar."""
    if (stmt.buffer, stmt.indices) not in buffers:
        return None
    update = sum_of(stmt)
    assert update is not None
    scalar = buffers[stmt.buffer, stmt.indices]
    op = "sub" if update.is_negated else update.op
    dtype = scalar.dtype
    value = Binary(op, Load(scalar.name, (), dtype), _cast(update.term, dtype), dtype)
    return Store(scalar.name, (), value, location=stmt.location)


def _sum_dtype(dtype: str) -> str:
    return "float32" if dtype in SUMMED_IN_FLOAT32 else dtype


def _cast(expr: Expr, dtype: str) -> Expr:
    return expr if expr.dtype == dtype else Cast(expr, dtype)
