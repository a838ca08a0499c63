"""No index is out of range any more, as reversing a kernel wants it.

A load that may be is given the index it is clamped to, a store that may be is put under the
condition that it is not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Set

from msops._loops.analysis.polyhedral.bounds import check_bounds
from msops._loops.ir.algebra import binary, both
from msops._loops.ir.nodes import Const, Expr, For, If, Kernel, Load, Stmt, Store
from msops._loops.ir.ranges import dtype_range
from msops._loops.ir.walk import (
    buffers_of,
    map_expressions,
    map_operands,
    rewrite_statements,
    with_body,
)


def make_indices_explicit(kernel: Kernel) -> Kernel:
    """Returns the kernel with every index in range, by a clamp or a condition where need be."""
    buffers = buffers_of(kernel)
    unproven = check_bounds(kernel).unproven

    def doubtful(access: Load | Store) -> list[tuple[int, int]]:
        """Returns the axes whose index may be out of range, with their sizes."""
        return [
            (axis, size)
            for axis, size in enumerate(buffers[access.buffer].shape)
            if unproven is None or (access.buffer, access.indices, axis) in unproven
        ]

    def clamp(expr: Expr, guarded: Set[tuple[Expr, int]]) -> Expr:
        # The indices are looked up as the author wrote them.
        axes = doubtful(expr) if isinstance(expr, Load) else []
        expr = map_operands(expr, lambda part: clamp(part, guarded))
        if not isinstance(expr, Load):
            return expr
        indices = list(expr.indices)
        for axis, size in axes:
            if (indices[axis], size) not in guarded:
                indices[axis] = _clamped(indices[axis], size)
        return dataclasses.replace(expr, indices=tuple(indices))

    def change(stmt: For | If) -> tuple[Stmt, ...]:
        return (map_expressions(stmt, lambda expr: clamp(expr, frozenset())),)

    def changed_store(store: Store) -> tuple[Stmt, ...]:
        axes = doubtful(store)
        indices = tuple(clamp(index, frozenset()) for index in store.indices)
        guarded = {(indices[axis], size) for axis, size in axes}
        value = clamp(store.value, guarded)
        store = dataclasses.replace(store, indices=indices, value=value)
        if not axes:
            return (store,)
        condition = both(c for axis, size in axes for c in _limits(indices[axis], size))
        return (If(condition, (store,)),)

    stored = rewrite_statements(kernel.body, changed_store, Store)
    return with_body(kernel, rewrite_statements(stored, change, For, If))


def _limits(index: Expr, size: int) -> list[Expr]:
    """Returns the conditions under which an index is in range, without those that always hold."""
    low, high = dtype_range(index.dtype)
    conditions: list[Expr] = []
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
