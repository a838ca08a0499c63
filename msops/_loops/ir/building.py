"""Making nodes whose dtype follows from their operands."""

from __future__ import annotations

from msops._loops.ir.nodes import INDEX_DTYPE, Binary, BinaryOp, Const, Expr, Load, Store
from msops._loops.ir.operators import result_dtype


def integer(value: int) -> Const:
    """Returns a constant of the dtype of loop variables."""
    return Const(value, INDEX_DTYPE)


def binary(op: BinaryOp, left: Expr, right: Expr) -> Binary:
    """Returns an operation on two expressions of one dtype, as it stands."""
    return Binary(op, left, right, result_dtype(op, left.dtype))


def element_of(store: Store) -> Load:
    """Returns the load of the element that a store writes."""
    return Load(store.buffer, store.indices, store.value.dtype)
