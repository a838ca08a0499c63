"""Drops dimensions of locals in which each iteration uses one element only.

    parallel i in 0 .. 8 {                  parallel i in 0 .. 8 {
      local m: float32[8] {                   local m: float32[] {
        m[i] = a[i, 0]               ->         m[] = a[i, 0]
        ...                                     ...

An author's temporary of one element per iteration is such a local once it is private to the loop.
"""

from __future__ import annotations

import dataclasses

from msops._loops.analysis.ranges import Ranges, is_within, loop_range, range_of
from msops._loops.ir.nodes import Expr, For, Kernel, Load, Local, Stmt, Store, Var
from msops._loops.ir.walk import (
    expressions,
    loads,
    map_bodies,
    map_expressions,
    own_expressions,
    rewrite,
    statements,
    with_body,
)


def shrink_locals(kernel: Kernel) -> Kernel:
    """Returns the kernel with locals of the dimensions they need."""
    return with_body(kernel, _body(kernel.body, {}))


def _body(body: tuple[Stmt, ...], ranges: Ranges) -> tuple[Stmt, ...]:
    return tuple(_statement(stmt, ranges) for stmt in body)


def _statement(stmt: Stmt, ranges: Ranges) -> Stmt:
    if isinstance(stmt, Local):
        stmt = _shrunk(stmt, ranges)
    elif isinstance(stmt, For):
        ranges = {**ranges, stmt.var: loop_range(stmt, ranges)}
    return map_bodies(stmt, lambda inner: _body(inner, ranges))


def _shrunk(local: Local, ranges: Ranges) -> Local:
    buffer = local.buffer
    places = _places(local)
    kept = [
        axis
        for axis, size in enumerate(buffer.shape)
        if not _is_one_element({indices[axis] for indices in places}, size, ranges)
    ]
    if len(kept) == len(buffer.shape):
        return local

    def chosen(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(indices[axis] for axis in kept)

    def load(part: Expr) -> Expr:
        if isinstance(part, Load) and part.buffer == buffer.name:
            return dataclasses.replace(part, indices=chosen(part.indices))
        return part

    def statement(stmt: Stmt) -> Stmt:
        stmt = map_expressions(stmt, lambda expr: rewrite(expr, load))
        if isinstance(stmt, Store) and stmt.buffer == buffer.name:
            stmt = dataclasses.replace(stmt, indices=chosen(stmt.indices))
        return map_bodies(stmt, lambda inner: tuple(map(statement, inner)))

    shape = tuple(buffer.shape[axis] for axis in kept)
    return dataclasses.replace(
        local,
        buffer=dataclasses.replace(buffer, shape=shape),
        body=tuple(map(statement, local.body)),
    )


def _places(local: Local) -> list[tuple[Expr, ...]]:
    """Returns the indices of every access of a local."""
    name = local.buffer.name
    found: list[tuple[Expr, ...]] = []
    for stmt in statements(local.body):
        if isinstance(stmt, Store) and stmt.buffer == name:
            found.append(stmt.indices)
        for expr in own_expressions(stmt):
            found += [load.indices for load in loads(expr) if load.buffer == name]
    return found


def _is_one_element(indices: set[Expr], size: int, ranges: Ranges) -> bool:
    """Tells whether an index is the same, and in range, wherever a local is used."""
    if len(indices) != 1:
        return False
    (index,) = indices
    # What is read from memory may change, and other variables are those of loops inside.
    is_fixed = all(
        not isinstance(part, Load) and (not isinstance(part, Var) or part.name in ranges)
        for part in expressions(index)
    )
    return is_fixed and is_within(range_of(index, ranges), (0, size - 1))
