"""Indices that move evenly with a loop, as sums that never wrap."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from msops._loops.analysis.affine import INDEX_DTYPES, affine
from msops._loops.ir.algebra import add, mul, sub
from msops._loops.ir.nodes import Cast, Const, Expr, Var
from msops._loops.ir.walk import expressions, loads, variables

_EXACT = "int64"
"""The dtype in which the sums of indices and of bounds never wrap where they are in range."""


@dataclass(frozen=True)
class MovingIndex:
    """An index that is factor * (the variable of a loop) + rest + constant.

    Attributes:
      factor: not 0.
      rest: the same in all iterations, in the dtype of exact sums.
      constant: a number.
    """

    factor: int
    rest: Expr
    constant: int

    def at(self, value: Expr) -> Expr:
        """Returns the index for a value of the variable."""
        base = add(self.rest, exact_number(self.constant))
        moved = _times(abs(self.factor), exact(value))
        return add(moved, base) if self.factor > 0 else sub(base, moved)


def moving_index(index: Expr, var: str, changing: Set[str]) -> MovingIndex | None:
    """Returns an index that moves evenly with a loop; None if it does not.

    Args:
      index: an index in the loop.
      var: the variable of the loop.
      changing: the names of the buffers that the loop changes.
    """
    if any(load.buffer in changing for load in loads(index)):
        return None
    whole = index.operand if isinstance(index, Cast) else index
    if not {index.dtype, whole.dtype} <= set(INDEX_DTYPES) or _is_widened(whole, var):
        return None
    found = affine(whole, {var})
    factor = found.terms.get(Var(var), 0) if found is not None else 0
    if found is None or factor == 0:
        return None
    rest: Expr = exact_number(0)
    for atom, times in found.terms.items():
        if atom != Var(var):
            part = _times(abs(times), exact(atom))
            rest = add(rest, part) if times > 0 else sub(rest, part)
    return MovingIndex(factor, rest, found.constant)


def _is_widened(expr: Expr, var: str) -> bool:
    """Returns whether a sum with a variable may wrap before it is a part of a wider one."""
    return any(
        isinstance(part, Cast) and not isinstance(part.operand, Var) and var in variables(part)
        for part in expressions(expr)
    )


def exact(expr: Expr) -> Expr:
    """Returns an expression in the dtype of exact sums."""
    if isinstance(expr, Const):
        return exact_number(int(expr.value))
    return expr if expr.dtype == _EXACT else Cast(expr, _EXACT)


def _times(factor: int, expr: Expr) -> Expr:
    return mul(expr, exact_number(factor))


def exact_number(value: int) -> Const:
    return Const(value, _EXACT)
