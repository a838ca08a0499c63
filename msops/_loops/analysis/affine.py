"""Integer expressions as affine forms: sums of multiples, and the laws of // and % on them.

An affine form is a sum over the integers, which never wraps. Sums, differences and multiples of
wrapping integers form a ring, so an expression equals its affine form once that is `wrapped` into
the range of the dtype. The laws of division hold where the sum's interval lies in that range.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from msops._loops.ir import scalars
from msops._loops.ir.nodes import INDEX_DTYPE, Binary, BinaryOp, Cast, Const, Expr, Load, Unary, Var
from msops._loops.ir.ranges import Range, Ranges, dtype_range, range_of
from msops._loops.ir.walk import variables

INDEX_DTYPES = ("int32", "int64")


@dataclass(frozen=True)
class Affine:
    """The sum of `coefficient * atom` over `terms`, plus `constant`.

    Attributes:
      terms: atoms with their coefficients, none 0, in the order in which they appeared.
      constant: what is added.
      dtype: of the expression.
      axes: the loop variables that it is a function of; atoms free of them count as scalars.
    """

    terms: Mapping[Expr, int]
    constant: int
    dtype: str = dataclasses.field(default=INDEX_DTYPE, compare=False)
    axes: frozenset[str] = dataclasses.field(default=frozenset(), compare=False)

    @staticmethod
    def of_atom(atom: Expr) -> Affine:
        """Returns an expression as a sum of itself."""
        return Affine({atom: 1}, 0, atom.dtype)

    @staticmethod
    def of_constant(value: int, dtype: str = INDEX_DTYPE) -> Affine:
        """Returns a number as a sum."""
        return Affine({}, value, dtype)

    def __add__(self, other: Affine) -> Affine:
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            terms[atom] = terms.get(atom, 0) + coefficient
        kept = {atom: coefficient for atom, coefficient in terms.items() if coefficient}
        constant = self.constant + other.constant
        return Affine(kept, constant, self.dtype, self.axes | other.axes)

    def __sub__(self, other: Affine) -> Affine:
        return self + other.scaled(-1)

    def scaled(self, factor: int) -> Affine:
        """Returns a multiple of the sum."""
        terms = {atom: coefficient * factor for atom, coefficient in self.terms.items() if factor}
        return Affine(terms, self.constant * factor, self.dtype, self.axes)

    def wrapped(self) -> Affine:
        """Returns the sum with its numbers wrapped into the range of the dtype."""
        low, high = dtype_range(self.dtype)
        if all(low <= value <= high for value in (self.constant, *self.terms.values())):
            return self

        wrap = scalars.cast("int64", self.dtype)
        kept = {atom: wrap(c) for atom, c in self.terms.items() if wrap(c)}
        return Affine(kept, wrap(self.constant), self.dtype, self.axes)

    @functools.cached_property
    def along(self) -> tuple[tuple[str, int], ...]:
        """The axes with their coefficients, sorted."""
        found = ((atom.name, c) for atom, c in self.terms.items() if isinstance(atom, Var))
        return tuple(sorted((name, c) for name, c in found if name in self.axes))

    @functools.cached_property
    def scalars(self) -> tuple[tuple[Expr, int], ...]:
        """The atoms that are no axes, with their coefficients, sorted."""
        found = (
            (atom, c)
            for atom, c in self.terms.items()
            if not (isinstance(atom, Var) and atom.name in self.axes)
        )
        return tuple(sorted(found, key=repr))

    def range(self, ranges: Ranges) -> Range:
        """Returns an interval of the sum, from those of the loop variables."""
        low = high = self.constant
        for atom, coefficient in self.terms.items():
            limits = [coefficient * limit for limit in range_of(atom, ranges)]
            low, high = low + min(limits), high + max(limits)
        return (low, high)

    def is_exact(self, ranges: Ranges) -> bool:
        """Returns whether the sum lies in the range of the dtype, so that it cannot wrap."""
        low, high = self.range(ranges)
        first, last = dtype_range(self.dtype)
        return first <= low and high <= last

    def divided(self, divisor: int, ranges: Ranges) -> Affine | None:
        """Returns `self // divisor` of a sum that cannot wrap; None: no law makes it simpler."""
        whole, rest = self._split(divisor)
        low, high = rest.range(ranges)
        if low // divisor == high // divisor:
            return _quotient(whole, divisor) + Affine.of_constant(low // divisor, self.dtype)
        common = functools.reduce(math.gcd, rest.terms.values(), divisor)
        constant = rest.constant % divisor // common
        shift = rest.constant // divisor
        inner = Affine(
            {atom: coefficient // common for atom, coefficient in rest.terms.items()},
            constant,
            self.dtype,
        )
        if not inner.is_exact(ranges):
            return None
        nested = _divided_atom(inner, divisor // common)
        total = _quotient(whole, divisor) + Affine.of_constant(shift, self.dtype)
        return total + Affine.of_atom(nested)

    def remainder(self, divisor: int, ranges: Ranges) -> Affine | None:
        """Returns `self % divisor` of a sum that cannot wrap; None: no law makes it simpler."""
        _, rest = self._split(divisor)
        low, high = rest.range(ranges)
        if low // divisor == high // divisor:
            return rest + Affine.of_constant(-(low // divisor) * divisor, self.dtype)
        inner = dataclasses.replace(rest, constant=rest.constant % divisor)
        if not inner.is_exact(ranges):
            return None
        return Affine.of_atom(_remainder_atom(inner, divisor))

    def _split(self, divisor: int) -> tuple[Affine, Affine]:
        """Returns the terms that the divisor divides, and the others with the constant."""
        whole = {atom: c for atom, c in self.terms.items() if c % divisor == 0}
        rest = {atom: c for atom, c in self.terms.items() if c % divisor}
        return Affine(whole, 0, self.dtype), Affine(rest, self.constant, self.dtype)

    def expression(self) -> Expr:
        """Returns the sum as an expression, terms with positive coefficients first."""
        terms = sorted(self.terms.items(), key=lambda item: item[1] < 0)
        total: Expr | None = None
        if self.constant and (not terms or terms[0][1] < 0):
            total = Const(self.constant, self.dtype)
        for atom, coefficient in terms:
            is_subtracted = total is not None and self._has_negative(coefficient)
            size = -coefficient if is_subtracted else coefficient
            term = atom if size == 1 else self._binary("mul", atom, Const(size, self.dtype))
            if total is None:
                total = term
            else:
                total = self._binary("sub" if is_subtracted else "add", total, term)
        if total is None:
            return Const(self.constant, self.dtype)
        if self.constant and not (isinstance(total, Const) or terms[0][1] < 0):
            if self._has_negative(self.constant):
                return self._binary("sub", total, Const(-self.constant, self.dtype))
            return self._binary("add", total, Const(self.constant, self.dtype))
        return total

    def _has_negative(self, value: int) -> bool:
        """Returns whether a number is negative and its negative is one of the dtype, too."""
        return dtype_range(self.dtype)[0] < value < 0

    def _binary(self, op: BinaryOp, left: Expr, right: Expr) -> Expr:
        return Binary(op, left, right, self.dtype)


def _quotient(whole: Affine, divisor: int) -> Affine:
    return Affine({a: c // divisor for a, c in whole.terms.items()}, 0, whole.dtype)


def _divided_atom(value: Affine, divisor: int) -> Expr:
    """Returns `value // divisor`, with ``x // a // b`` as ``x // (a * b)``."""
    expr = value.expression()
    match expr:
        case Binary(op="floordiv", left=left, right=Const(value=inner)) if (
            inner > 0 and inner * divisor <= dtype_range(expr.dtype)[1]
        ):
            return Binary("floordiv", left, Const(inner * divisor, expr.dtype), expr.dtype)
    return Binary("floordiv", expr, Const(divisor, expr.dtype), expr.dtype)


def _remainder_atom(value: Affine, divisor: int) -> Expr:
    """Returns `value % divisor`, with ``x % (a * b) % b`` as ``x % b``."""
    expr = value.expression()
    match expr:
        case Binary(op="mod", left=left, right=Const(value=outer)) if (
            outer > 0 and outer % divisor == 0
        ):
            expr = left
    return Binary("mod", expr, Const(divisor, expr.dtype), expr.dtype)


def affine(expr: Expr, axes: Collection[str]) -> Affine | None:
    """Returns an integer expression as an affine function of axes, if it is one.

    Args:
      expr: of dtype int32 or int64.
      axes: loop variables; every expression free of them counts as a scalar.
    """
    found = _affine(expr, axes)
    return found and Affine(found.terms, found.constant, found.dtype, frozenset(axes))


def _affine(expr: Expr, axes: Collection[str]) -> Affine | None:
    is_scalar = variables(expr).isdisjoint(axes)
    if is_scalar and _is_wide_operation(expr):
        return Affine.of_atom(expr)
    match expr:
        case Const(value=value):
            return Affine.of_constant(int(value), expr.dtype)
        case Var():
            return Affine.of_atom(expr)
        case Binary(op="add" | "sub" | "mul", dtype=dtype) if dtype in INDEX_DTYPES:
            combined = _combined(expr, axes)
            if combined is not None:
                return combined
        case Unary(op="neg", operand=operand, dtype=dtype) if dtype in INDEX_DTYPES:
            inner = _affine(operand, axes)
            return inner and inner.scaled(-1)
        case Cast(operand=operand, dtype=dtype) if {dtype, operand.dtype} <= set(INDEX_DTYPES):
            inner = _affine(operand, axes)
            has_scalars = inner is not None and not all(
                isinstance(atom, Var) and atom.name in axes for atom in inner.terms
            )
            if dtype == "int64" or not has_scalars:
                return inner and dataclasses.replace(inner, dtype=dtype)
    return Affine.of_atom(expr) if is_scalar else None


def _is_wide_operation(expr: Expr) -> bool:
    """Returns whether an expression is computed in more than 32 bits.

    Such a scalar stays whole: its parts alone do not say which dtype their sum wraps in.
    """
    if isinstance(expr, Cast) and isinstance(expr.operand, Var | Load):
        return False
    return expr.dtype == "int64" and isinstance(expr, Binary | Unary | Cast)


def _combined(expr: Binary, axes: Collection[str]) -> Affine | None:
    left, right = _affine(expr.left, axes), _affine(expr.right, axes)
    if left is None or right is None:
        return None
    if expr.op == "add":
        return left + right
    if expr.op == "sub":
        return left - right
    for factor, function in ((left, right), (right, left)):
        if not factor.terms:
            return function.scaled(factor.constant)
    return None
