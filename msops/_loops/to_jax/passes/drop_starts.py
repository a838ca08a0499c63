"""Drops the start of a minimum or maximum that its reduction takes in again.

    parallel i in 0 .. 8 {                  parallel i in 0 .. 8 {
      m[i] = a[i, 0]                          m[i] = -inf
    }                                       }
    parallel i_1 in 0 .. 8 {         ->     parallel i_1 in 0 .. 8 {
      reduction j in 0 .. 8 {                 reduction j in 0 .. 8 {
        m[i_1] = max(m[i_1], a[i_1, j])         m[i_1] = max(m[i_1], a[i_1, j])

From the identity of the reduction, the whole is one reduction that XLA can fuse with what uses it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from msops._loops.analysis.costs import fixed_trips
from msops._loops.analysis.updates import update_of
from msops._loops.ir.nodes import Const, Expr, Kernel, Stmt, Store, Var
from msops._loops.ir.ranges import Ranges, nested_ranges
from msops._loops.ir.scalars import identity
from msops._loops.ir.walk import (
    Scope,
    loads,
    map_bodies,
    map_bodies_within,
    stored_in,
    substitute,
    touched_in,
    with_body,
)
from msops._loops.passes.simplify_expressions import simplified
from msops._loops.to_jax.raising.nests import Chain, chain


def drop_starts(kernel: Kernel) -> Kernel:
    """Returns the kernel with starts that make no difference replaced by identities."""
    return with_body(kernel, _body(kernel.body, Scope.of(kernel)))


def _body(body: tuple[Stmt, ...], scope: Scope) -> tuple[Stmt, ...]:
    found = []
    for number, stmt in enumerate(body):
        start = chain(stmt)
        if start is None:
            found.append(map_bodies_within(stmt, scope, _body))
            continue
        value = _identity(start, body[number + 1 :], scope)
        found.append(_storing(stmt, value) if value else stmt)
    return tuple(found)


def _identity(start: Chain, rest: Sequence[Stmt], scope: Scope) -> Const | None:
    """Returns the number that can be stored instead of a start, if there is one."""
    sources = {load.buffer for load in loads(start.store.value)}
    for stmt in rest:
        if start.store.buffer in touched_in((stmt,)):
            return _identity_for(start, stmt, scope.ranges)
        if not sources.isdisjoint(stored_in((stmt,))):
            return None
    return None


def _identity_for(start: Chain, following: Stmt, outer_ranges: Ranges) -> Const | None:
    """Returns the identity of a reduction if its first term is the start."""
    nest, loops = chain(following), start.loops
    if nest is None or nest.guards or start.guards:
        return None
    store, update = nest.store, update_of(nest.store)
    if update is None or update.op not in ("min", "max"):
        return None
    outer, reduced = nest.loops[: len(loops)], nest.loops[len(loops) :]
    if len(outer) < len(loops) or not all(map(fixed_trips, reduced)):
        return None
    values: dict[str, Expr] = {new.var: Var(old.var) for old, new in zip(loops, outer, strict=True)}
    values |= {loop.var: loop.begin for loop in reduced}
    ranges = nested_ranges(loops, outer_ranges)
    first = [bound for loop in outer for bound in (loop.begin, loop.end)]
    first += [*store.indices, update.term]
    wanted = [bound for loop in loops for bound in (loop.begin, loop.end)]
    wanted += [*start.store.indices, start.store.value]
    if [simplified(substitute(expr, values), ranges) for expr in first] != [
        simplified(expr, ranges) for expr in wanted
    ]:
        return None
    return Const(identity(update.op, store.value.dtype), store.value.dtype)


def _storing(stmt: Stmt, value: Const) -> Stmt:
    """Returns a nest that stores another value."""
    if isinstance(stmt, Store):
        return dataclasses.replace(stmt, value=value)
    return map_bodies(stmt, lambda body: tuple(_storing(inner, value) for inner in body))
