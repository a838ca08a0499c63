"""Integer expressions as sums of multiples, and the laws of // and % on them.

Sums, differences and multiples of wrapping integers form a ring, so any of them may be rewritten as
a sum of multiples of other expressions (atoms). Laws of division hold for integers that do not
wrap; where the sum's interval lies in the dtype's range, the value is the sum itself.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from msops._loops.analysis.ranges import Range, Ranges, dtype_range, is_within, range_of
from msops._loops.ir.nodes import Binary, BinaryOp, Const, Expr


@dataclass(frozen=True)
class Linear:
    """The sum of `coefficient * atom` over `terms`, plus `constant`.

    Attributes:
      terms: atoms with their coefficients, none 0, in the order in which they appeared.
      constant: what is added.
      dtype: of the sum and of each atom.
    """

    terms: Mapping[Expr, int]
    constant: int
    dtype: str

    @staticmethod
    def of_atom(atom: Expr) -> Linear:
        """Returns an expression as a sum of itself."""
        return Linear({atom: 1}, 0, atom.dtype)

    @staticmethod
    def of_constant(value: int, dtype: str) -> Linear:
        """Returns a number as a sum."""
        return Linear({}, value, dtype)

    def __add__(self, other: Linear) -> Linear:
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            terms[atom] = terms.get(atom, 0) + coefficient
        return _reduced(terms, self.constant + other.constant, self.dtype)

    def __sub__(self, other: Linear) -> Linear:
        return self + other.scaled(-1)

    def gap(self, other: Linear) -> Linear:
        """Returns the difference as integers that never wrap; only its range means anything."""
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            terms[atom] = terms.get(atom, 0) - coefficient
        kept = {atom: coefficient for atom, coefficient in terms.items() if coefficient}
        return Linear(kept, self.constant - other.constant, self.dtype)

    def scaled(self, factor: int) -> Linear:
        """Returns a multiple of the sum."""
        terms = {atom: coefficient * factor for atom, coefficient in self.terms.items()}
        return _reduced(terms, self.constant * factor, self.dtype)

    def range(self, ranges: Ranges) -> Range:
        """Returns an interval of the sum without wrapping."""
        low = high = self.constant
        for atom, coefficient in self.terms.items():
            ends = [coefficient * end for end in range_of(atom, ranges)]
            low, high = low + min(ends), high + max(ends)
        return (low, high)

    def is_exact(self, ranges: Ranges) -> bool:
        """Tells whether the sum cannot wrap."""
        return is_within(self.range(ranges), dtype_range(self.dtype))

    def divided(self, divisor: int, ranges: Ranges) -> Linear | None:
        """Returns `self // divisor` of a sum that cannot wrap; None: no law makes it simpler."""
        whole, rest = self._split(divisor)
        low, high = rest.range(ranges)
        if low // divisor == high // divisor:
            return _quotient(whole, divisor) + Linear.of_constant(low // divisor, self.dtype)
        common = reduce(math.gcd, rest.terms.values(), divisor)
        constant = rest.constant % divisor // common
        shift = rest.constant // divisor
        inner = Linear(
            {atom: coefficient // common for atom, coefficient in rest.terms.items()},
            constant,
            self.dtype,
        )
        if not inner.is_exact(ranges):
            return None
        nested = _divided_atom(inner, divisor // common)
        total = _quotient(whole, divisor) + Linear.of_constant(shift, self.dtype)
        return total + Linear.of_atom(nested)

    def remainder(self, divisor: int, ranges: Ranges) -> Linear | None:
        """Returns `self % divisor` of a sum that cannot wrap; None: no law makes it simpler."""
        _, rest = self._split(divisor)
        low, high = rest.range(ranges)
        if low // divisor == high // divisor:
            return rest + Linear.of_constant(-(low // divisor) * divisor, self.dtype)
        inner = dataclasses.replace(rest, constant=rest.constant % divisor)
        if not inner.is_exact(ranges):
            return None
        return Linear.of_atom(_remainder_atom(inner, divisor))

    def _split(self, divisor: int) -> tuple[Linear, Linear]:
        """Returns the terms that the divisor divides, and the others with the constant."""
        whole = {atom: c for atom, c in self.terms.items() if c % divisor == 0}
        rest = {atom: c for atom, c in self.terms.items() if c % divisor}
        return Linear(whole, 0, self.dtype), Linear(rest, self.constant, self.dtype)

    def expression(self) -> Expr:
        """Returns the sum as an expression, terms with positive coefficients first."""
        terms = sorted(self.terms.items(), key=lambda item: item[1] < 0)
        total: Expr | None = None
        if self.constant and (not terms or terms[0][1] < 0):
            total = Const(self.constant, self.dtype)
        for atom, coefficient in terms:
            size = -coefficient if total is not None and coefficient < 0 else coefficient
            term = atom if size == 1 else self._binary("mul", atom, Const(size, self.dtype))
            if total is None:
                total = term
            else:
                total = self._binary("add" if coefficient > 0 else "sub", total, term)
        if total is None:
            return Const(self.constant, self.dtype)
        if self.constant and not (isinstance(total, Const) or terms[0][1] < 0):
            sign: BinaryOp = "add" if self.constant > 0 else "sub"
            return self._binary(sign, total, Const(abs(self.constant), self.dtype))
        return total

    def _binary(self, op: BinaryOp, left: Expr, right: Expr) -> Expr:
        return Binary(op, left, right, self.dtype)


def _reduced(terms: Mapping[Expr, int], constant: int, dtype: str) -> Linear:
    """Returns a sum with its numbers wrapped into the range of the dtype."""
    low, high = dtype_range(dtype)

    def wrap(value: int) -> int:
        return (value - low) % (high - low + 1) + low

    kept = {atom: wrap(c) for atom, c in terms.items() if wrap(c)}
    return Linear(kept, wrap(constant), dtype)


def _quotient(whole: Linear, divisor: int) -> Linear:
    return Linear({a: c // divisor for a, c in whole.terms.items()}, 0, whole.dtype)


def _divided_atom(value: Linear, divisor: int) -> Expr:
    """Returns `value // divisor`, with ``x // a // b`` as ``x // (a * b)``."""
    expr = value.expression()
    match expr:
        case Binary(op="floordiv", left=left, right=Const(value=inner)) if (
            inner > 0 and inner * divisor <= dtype_range(expr.dtype)[1]
        ):
            return Binary("floordiv", left, Const(inner * divisor, expr.dtype), expr.dtype)
    return Binary("floordiv", expr, Const(divisor, expr.dtype), expr.dtype)


def _remainder_atom(value: Linear, divisor: int) -> Expr:
    """Returns `value % divisor`, with ``x % (a * b) % b`` as ``x % b``."""
    expr = value.expression()
    match expr:
        case Binary(op="mod", left=left, right=Const(value=outer)) if (
            outer > 0 and outer % divisor == 0
        ):
            expr = left
    return Binary("mod", expr, Const(divisor, expr.dtype), expr.dtype)
