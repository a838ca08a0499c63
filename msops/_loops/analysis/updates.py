"""Recognises stores that update an element: ``s[i] = s[i] + a[i, j]``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from msops._loops.ir.algebra import element_of
from msops._loops.ir.facts import kept
from msops._loops.ir.nodes import Binary, BinaryOp, Const, Expr, FunctionCall, Load, Select, Store
from msops._loops.ir.operators import REDUCIBLE
from msops._loops.ir.scalars import identity
from msops._loops.ir.walk import expressions, loads


@dataclass(frozen=True)
class Update:
    """``target = target op term``, where repeated updates may run in any order.

    Attributes:
      op: of `operators.REDUCIBLE`; that of ``s - x`` is "add", see `is_negated`.
      target: the load of the element that the store writes.
      term: what it is combined with; it does not read the target's buffer.
      is_negated: the store subtracts its term.
      keeps: which one of equal extremes stays, which decides between 0 and -0: such updates run in
        order, but for what finds that one. Empty for others.
    """

    op: BinaryOp
    target: Load
    term: Expr
    is_negated: bool = False
    keeps: Literal["first", "last", ""] = ""


@kept
def update_of(store: Store) -> Update | None:
    """Returns the update that a store is, or None if it is none.

    The target may be deeper, ``(s + x) - y`` has the term ``x - y``. Its indices must not read
    its buffer: the element would move with the updates.
    """
    value = store.value
    if not isinstance(value, Binary) or value.op not in (*REDUCIBLE, "sub"):
        return None
    if any(load.buffer == store.buffer for index in store.indices for load in loads(index)):
        return None
    target = element_of(store)
    op: BinaryOp = "add" if value.op == "sub" else value.op
    others = _beside(value, target, op)
    if others is None or any(load.buffer == store.buffer for _, e in others for load in loads(e)):
        return None
    is_negated = all(negated for negated, _ in others)
    # A term that is added comes first, so that the term begins without a sign.
    first, *rest = sorted(others, key=lambda other: other[0])
    term = first[1]
    for negated, expr in rest:
        sign: BinaryOp = "sub" if negated != is_negated else op
        term = Binary(sign, term, expr, value.dtype)
    return Update(op, target, term, is_negated)


@kept
def sum_of(store: Store) -> Update | None:
    """Returns the update that a store is, also if its term reads other elements of the buffer.

    Such updates, ``b[i, j] = b[i, j] - b[i, k] * b[j, k]``, may be reordered as long as nothing
    else writes what their terms read.
    """
    strict = update_of(store)
    value = store.value
    if strict is not None or not isinstance(value, Binary) or value.op not in (*REDUCIBLE, "sub"):
        return strict
    if any(load.buffer == store.buffer for index in store.indices for load in loads(index)):
        return None
    target = element_of(store)
    if value.left == target and target not in expressions(value.right):
        is_negated = value.op == "sub"
        return Update("add" if is_negated else value.op, target, value.right, is_negated)
    if value.right == target and value.op != "sub" and target not in expressions(value.left):
        return Update(value.op, target, value.left)
    return None


EXTREMES: dict[str, tuple[BinaryOp, Literal["first", "last"]]] = {
    "gt": ("max", "first"), "ge": ("max", "last"), "lt": ("min", "first"), "le": ("min", "last"),
}  # fmt: skip
"""The extreme that a comparison with the one so far keeps, and which one of equal numbers."""


@kept
def kept_extreme_of(store: Store) -> Update | None:
    """Returns ``target = term > target ? term : target`` as an update that keeps an extreme."""
    found = kept_extreme(store.value, element_of(store))
    if found is None:
        return None
    beside = (found.term, *store.indices)
    return None if any(load.buffer == store.buffer for e in beside for load in loads(e)) else found


def kept_extreme(value: Expr, target: Load) -> Update | None:
    """Returns ``term > target ? term : target`` as an update of the target.

    The term is without NaN, for that changes nothing.
    """
    match value:
        case Select(
            condition=Binary(op=op, left=term, right=right), then=then, otherwise=otherwise
        ):
            if op in EXTREMES and term == then and right == otherwise == target:
                extreme, keeps = EXTREMES[op]
                worst = Const(identity(extreme, term.dtype), term.dtype)
                is_nan = FunctionCall("isnan", (term,), "bool")
                number = Select(is_nan, worst, term, term.dtype)
                return Update(extreme, target, number, keeps=keeps)
    return None


def _beside(expr: Expr, target: Load, op: BinaryOp) -> list[tuple[bool, Expr]] | None:
    """Returns what the target is combined with, and whether it is subtracted; None: not only so."""
    if expr == target:
        return []
    if not isinstance(expr, Binary) or (expr.op != op and (expr.op, op) != ("sub", "add")):
        return None
    found = _beside(expr.left, target, op)
    if found is not None:
        return [*found, (expr.op == "sub", expr.right)]
    if expr.op == "sub":
        return None
    found = _beside(expr.right, target, op)
    return None if found is None else [*found, (False, expr.left)]
