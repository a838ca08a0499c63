"""Indices and conditions as linear functions of vector axes plus a scalar part."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from msops._loops.analysis.ranges import Range, range_of
from msops._loops.ir.nodes import Binary, Cast, Const, Expr, Load, Unary, Var
from msops._loops.ir.walk import expressions

INDEX_DTYPES = ("int32", "int64")


@dataclass(frozen=True)
class Linear:
    """The sum of coefficient * axis over `terms`, of coefficient * scalar over `rest`, and `const`.

    Attributes:
      terms: vector axes with their coefficients, none 0, sorted.
      rest: scalar expressions (no vector axis in them) with their coefficients, none 0.
      const: the constant.
    """

    terms: tuple[tuple[str, int], ...]
    rest: tuple[tuple[Expr, int], ...]
    const: int

    def __add__(self, other: Linear) -> Linear:
        return Linear(
            tuple(sorted(_summed(self.terms, other.terms))),
            tuple(sorted(_summed(self.rest, other.rest), key=repr)),
            self.const + other.const,
        )

    def __sub__(self, other: Linear) -> Linear:
        return self + other.scaled(-1)

    def scaled(self, factor: int) -> Linear:
        """Returns the multiple of the function."""
        if factor == 0:
            return Linear((), (), 0)
        return Linear(
            tuple((axis, factor * coefficient) for axis, coefficient in self.terms),
            tuple((scalar, factor * coefficient) for scalar, coefficient in self.rest),
            factor * self.const,
        )

    def bounds(self, ranges: Mapping[str, Range]) -> Range | None:
        """Returns the bounds of the value, given those of all loop variables."""
        low = high = self.const
        for axis, coefficient in self.terms:
            least, greatest = ranges[axis]
            low += min(coefficient * least, coefficient * greatest)
            high += max(coefficient * least, coefficient * greatest)
        for scalar, coefficient in self.rest:
            limits = range_of(scalar, ranges)
            if limits is None:
                return None
            low += min(coefficient * limits[0], coefficient * limits[1])
            high += max(coefficient * limits[0], coefficient * limits[1])
        return low, high


def _summed(one: tuple, other: tuple) -> list:
    total = dict(one)
    for key, coefficient in other:
        total[key] = total.get(key, 0) + coefficient
    return [(key, coefficient) for key, coefficient in total.items() if coefficient]


def variables(expr: Expr) -> set[str]:
    """Returns the names of the loop variables in an expression."""
    return {part.name for part in expressions(expr) if isinstance(part, Var)}


def linear(expr: Expr, axes: Collection[str]) -> Linear | None:
    """Returns an integer expression as a linear function of vector axes, if it is one.

    Args:
      expr: of dtype int32 or int64.
      axes: the vector axes; every expression free of them counts as a scalar.
    """
    is_scalar = variables(expr).isdisjoint(axes)
    if is_scalar and _is_wide_operation(expr):
        return Linear((), ((expr, 1),), 0)
    match expr:
        case Const(value=value):
            return Linear((), (), int(value))
        case Var(name=name):
            if name in axes:
                return Linear(((name, 1),), (), 0)
            return Linear((), ((expr, 1),), 0)
        case Binary(op="add" | "sub" | "mul", dtype=dtype) if dtype in INDEX_DTYPES:
            combined = _combined(expr, axes)
            if combined is not None:
                return combined
        case Unary(op="neg", operand=operand, dtype=dtype) if dtype in INDEX_DTYPES:
            inner = linear(operand, axes)
            return inner and inner.scaled(-1)
        case Cast(operand=operand, dtype=dtype) if {dtype, operand.dtype} <= set(INDEX_DTYPES):
            inner = linear(operand, axes)
            if dtype == "int64" or inner is None or not inner.rest:
                return inner
    return Linear((), ((expr, 1),), 0) if is_scalar else None


def _is_wide_operation(expr: Expr) -> bool:
    """Tells whether an expression is computed in more than 32 bits.

    Such a scalar stays whole: its parts alone do not tell which dtype their sum wraps in.
    """
    if isinstance(expr, Cast) and isinstance(expr.operand, Var | Load):
        return False
    return expr.dtype == "int64" and isinstance(expr, Binary | Unary | Cast)


def _combined(expr: Binary, axes: Collection[str]) -> Linear | None:
    left, right = linear(expr.left, axes), linear(expr.right, axes)
    if left is None or right is None:
        return None
    if expr.op == "add":
        return left + right
    if expr.op == "sub":
        return left - right
    for factor, function in ((left, right), (right, left)):
        if not factor.terms and not factor.rest:
            return function.scaled(factor.const)
    return None
