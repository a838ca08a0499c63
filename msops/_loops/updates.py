"""Recognises stores that update an element: ``s[i] = s[i] + a[i, j]``."""

from __future__ import annotations

from dataclasses import dataclass

from msops._loops.intrinsics import REDUCIBLE, is_float
from msops._loops.ir import Binary, BinaryOp, Expr, Load, Store
from msops._loops.walk import loads


@dataclass(frozen=True)
class Update:
    """``target = target op term``, where repeated updates may run in any order.

    Attributes:
      op: of `intrinsics.REDUCIBLE`; that of ``s - x`` is "add", see `is_negated`.
      target: the load of the element that the store writes.
      term: what it is combined with; it does not read the target's buffer.
      is_negated: the store subtracts its term.
    """

    op: BinaryOp
    target: Load
    term: Expr
    is_negated: bool = False


def update_of(store: Store) -> Update | None:
    """Returns the update that a store is, or None if it is none.

    The target's indices must not read its buffer: the element would move with the updates.
    """
    value = store.value
    if not isinstance(value, Binary) or value.op not in (*REDUCIBLE, "sub"):
        return None
    if any(load.buffer == store.buffer for index in store.indices for load in loads(index)):
        return None
    target = Load(store.buffer, store.indices, value.dtype)
    for old, term in ((value.left, value.right), (value.right, value.left)):
        if old != target or any(load.buffer == store.buffer for load in loads(term)):
            continue
        if value.op == "sub":
            return Update("add", target, term, is_negated=True) if old is value.left else None
        return Update(value.op, target, term)
    return None


def is_reassociation(update: Update) -> bool:
    """Tells whether another order of the updates may change the last bits of the result."""
    return is_float(update.target.dtype) and update.op in ("add", "mul")
