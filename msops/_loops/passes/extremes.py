"""Conditions under which an element is replaced by a greater, or smaller, value."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from msops._loops.analysis.conditions import conjuncts
from msops._loops.analysis.updates import EXTREMES
from msops._loops.ir.algebra import both, element_of
from msops._loops.ir.nodes import INDEX_DTYPE, Binary, BinaryOp, Const, Expr, Load, Select, Store
from msops._loops.ir.operators import MIRRORED, is_float
from msops._loops.ir.ranges import dtype_range
from msops._loops.ir.walk import loads


def is_element(expr: Expr, store: Store) -> bool:
    """Returns whether an expression is the old value of what a store replaces."""
    return isinstance(expr, Load) and expr.buffer == store.buffer and expr.indices == store.indices


def reads(expr: Expr, buffers: set[str]) -> bool:
    """Returns whether an expression reads one of the buffers."""
    return any(load.buffer in buffers for load in loads(expr))


@dataclass(frozen=True)
class Extreme:
    """A condition under which an element is replaced by a greater, or smaller, value.

    Attributes:
      better: the comparison of a value that replaces the element with the element.
      guard: what else must hold; None for nothing.
    """

    better: BinaryOp
    guard: Expr | None

    @property
    def op(self) -> BinaryOp:
        """The operation that finds the extreme: "max" or "min"."""
        return EXTREMES[self.better][0]

    @property
    def is_strict(self) -> bool:
        """Whether an equal value does not replace the element."""
        return EXTREMES[self.better][1] == "first"

    @property
    def nowhere(self) -> Const:
        """An index beyond all others: that of an element which nothing has replaced."""
        low, high = dtype_range(INDEX_DTYPE)
        return Const(high if self.is_strict else low, INDEX_DTYPE)

    def update(self, store: Store) -> Store:
        """Returns the store of the value as an update.

        Of floats it says which one of equal numbers stays, as 0 and -0 are; see `kept_extreme_of`.
        """
        dtype = store.value.dtype
        old = element_of(store)
        if not is_float(dtype):
            return dataclasses.replace(store, value=Binary(self.op, old, store.value, dtype))
        is_better = Binary(self.better, store.value, old, "bool")
        return dataclasses.replace(store, value=Select(is_better, store.value, old, dtype))


def find_extreme(condition: Expr, store: Store) -> Extreme | None:
    """Returns what a condition says about a store under it: that its value is more extreme."""
    if reads(store.value, {store.buffer}):
        return None
    parts = conjuncts(condition)
    for position, part in enumerate(parts):
        op = _comparison(part, store)
        rest = parts[:position] + parts[position + 1 :]
        if op and not any(reads(other, {store.buffer}) for other in rest):
            guard = both(rest) if rest else None
            return Extreme(op, guard)
    return None


def _comparison(condition: Expr, store: Store) -> BinaryOp | None:
    """Returns the operation if a condition compares a store's value with the old element."""
    match condition:
        case Binary(op="gt" | "ge" | "lt" | "le" as op, left=left, right=right):
            if left == store.value and is_element(right, store):
                return op
            if right == store.value and is_element(left, store):
                return MIRRORED[op]
    return None
