"""Brings a kernel into the form that can be reversed.

1. No index is out of range: a load that may be is given the index it is clamped to, a store that
   may be stands under the condition that it is not.
2. What decides where a statement goes still has its value after the statement: a condition, loop
   bound or index of a store that reads what the statement writes is kept in a local.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from msops._loops.adjoint.algebra import binary, both
from msops._loops.ir import Buffer, Const, Expr, For, If, Kernel, Load, Local, Stmt, Store
from msops._loops.names import Names
from msops._loops.passes.check_bounds import check_bounds
from msops._loops.ranges import dtype_range
from msops._loops.walk import (
    loads,
    map_bodies,
    map_expressions,
    map_operands,
    statements,
    with_body,
)


def make_indices_explicit(kernel: Kernel) -> Kernel:
    """Returns the kernel with every index in range, by a clamp or a condition where need be."""
    shapes = {b.name: b.shape for b in (*kernel.parameters, *kernel.buffers)}
    shapes |= {s.buffer.name: s.buffer.shape for s in statements(kernel.body)
               if isinstance(s, Local)}  # fmt: skip
    unproven = check_bounds(kernel).unproven

    def doubtful(access: Load | Store) -> list[tuple[int, int]]:
        """Returns the axes whose index may be out of range, with their sizes."""
        return [
            (axis, size)
            for axis, size in enumerate(shapes[access.buffer])
            if unproven is None or (access.buffer, access.indices, axis) in unproven
        ]

    def clamp(expr: Expr) -> Expr:
        # Outermost first: the indices are looked up as the author wrote them.
        axes = doubtful(expr) if isinstance(expr, Load) else []
        expr = map_operands(expr, clamp)
        if not isinstance(expr, Load):
            return expr
        indices = list(expr.indices)
        for axis, size in axes:
            indices[axis] = _clamped(indices[axis], size)
        return dataclasses.replace(expr, indices=tuple(indices))

    def change(stmt: Stmt) -> Stmt:
        axes = doubtful(stmt) if isinstance(stmt, Store) else []
        stmt = map_bodies(map_expressions(stmt, clamp), lambda body: tuple(map(change, body)))
        if not isinstance(stmt, Store) or not axes:
            return stmt
        return If(both(c for axis, size in axes for c in _limits(stmt.indices[axis], size)), (stmt,))

    return with_body(kernel, tuple(map(change, kernel.body)))


def _limits(index: Expr, size: int) -> list[Expr]:
    """Returns the conditions under which an index is in range, without those that always hold."""
    low, high = dtype_range(index.dtype)
    conditions = []
    if low < 0:
        conditions.append(binary("ge", index, Const(0, index.dtype)))
    if high >= size:
        conditions.append(binary("lt", index, Const(size, index.dtype)))
    return conditions


def _clamped(index: Expr, size: int) -> Expr:
    """Returns the nearest index in range."""
    low, high = dtype_range(index.dtype)
    last = max(size - 1, 0)
    if high > last:
        index = binary("min", index, Const(last, index.dtype))
    return binary("max", index, Const(0, index.dtype)) if low < 0 else index


def keep_decisions(kernel: Kernel) -> Kernel:
    """Returns the kernel with what decides over a statement untouched by the statement."""
    names = Names(kernel)

    def change(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(kept(map_bodies(stmt, change)) for stmt in body)

    def kept(stmt: Stmt) -> Stmt:
        written = {s.buffer for s in statements((stmt,)) if isinstance(s, Store)}
        match stmt:
            case Store(indices=indices) if _reads(indices, written):
                return _kept(stmt, {"indices": indices}, names)
            case For(begin=begin, end=end) if _reads((begin, end), written):
                return _kept(stmt, {"begin": begin, "end": end}, names)
            case If(condition=condition) if _reads((condition,), written):
                return _kept(stmt, {"condition": condition}, names)
        return stmt

    return with_body(kernel, change(kernel.body))


def _reads(exprs: Iterable[Expr], written: set[str]) -> bool:
    return any(load.buffer in written for expr in exprs for load in loads(expr))


def _kept(stmt: Stmt, fields: dict[str, Expr | tuple[Expr, ...]], names: Names) -> Stmt:
    """Returns the statement with the parts of some fields that load evaluated before it."""
    kept: list[tuple[Buffer, Expr]] = []

    def keep(expr: Expr) -> Expr:
        if not any(True for _ in loads(expr)):
            return expr
        scalar = Buffer(names.fresh("kept"), (), expr.dtype)
        kept.append((scalar, expr))
        return Load(scalar.name, (), scalar.dtype)

    changes = {
        name: tuple(map(keep, field)) if isinstance(field, tuple) else keep(field)
        for name, field in fields.items()
    }
    result = dataclasses.replace(stmt, **changes)
    for scalar, expr in reversed(kept):
        result = Local(scalar, (Store(scalar.name, (), expr), result))
    return result
