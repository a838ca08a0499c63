"""Operators of the loop IR in C's syntax, where numbers and vectors have them in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping

from msops._loops.ir.formulas import evaluate
from msops._loops.ir.nodes import Binary, Const, Expr, Load
from msops._loops.ir.operators import is_float
from msops._loops.to_c.text.syntax import ROUNDED, SIGNS, bare, computed, signedness

POWERS = {
    0.5: "root",
    2.0: "square",
    **{float(exponent): f"power{exponent}" for exponent in range(3, 9)},
    -1.0: "reciprocal",
}
"""Helpers for some exponents of floats; the helper for 1/2 is right for -inf and -0, too. Products
are what `lax.integer_pow` computes."""
CHOICES = {"min": "least", "max": "greatest"}
"""Helpers for the extreme of a constant and a number."""
PLAIN_QUOTIENTS = ("/", "%", ">>", "&")
"""Operators of C that divide."""
QUOTIENTS = ("floordiv", "mod", "truncdiv", "truncmod")


class Operations(ABC):
    """Prints operations on values, which are numbers, or vectors of them."""

    variables: set[str]
    """Names of the locals that are variables of C."""

    @abstractmethod
    def value(self, expr: Expr) -> str:
        """Returns an expression as a value of its dtype's type."""

    @abstractmethod
    def value_type(self, dtype: str) -> str:
        """Returns the type of a value."""

    @abstractmethod
    def unsigned(self, dtype: str) -> str:
        """Returns an unsigned type in which integers of a dtype wrap."""

    @abstractmethod
    def helper(self, template: str, dtype: str, **words: str) -> str:
        """Returns the name of a helper function, which is printed with the kernel from now on."""

    @abstractmethod
    def constant(self, value: float, dtype: str) -> str:
        """Returns a number as a value."""

    @abstractmethod
    def math(self, function: str, args: tuple[str, ...], dtype: str) -> str:
        """Returns a function, or `pow`, of float32 or float64 values."""

    @abstractmethod
    def converter(self, way: str, dtype: str) -> str:
        """Returns what converts "from" elements of float16 or bfloat16, or "to" them."""

    @abstractmethod
    def quotient_form(self, expr: Binary) -> tuple[str, Expr]:
        """Returns how a division or a remainder of integers is computed, and by what.

        It is an operator of C where that is the same, else the template of a helper.
        """

    def applied(self, template: str, dtype: str, *args: str) -> str:
        """Returns a helper of values."""
        return f"{self.helper(template, dtype)}({', '.join(map(bare, args))})"

    # Operators.

    def float_operation(self, expr: Binary) -> str:
        """Returns an operation on floats that C has no operator for."""
        op, dtype, right = expr.op, computed(expr.dtype), expr.right
        if op == "pow" and isinstance(right, Const) and right.value in POWERS:
            return self.applied(POWERS[right.value], dtype, self.value(expr.left))
        if op in CHOICES:
            return self._extreme(expr, dtype)
        sides = self.value(expr.left), self.value(right)
        if op == "pow":
            return self.math("pow", sides, dtype)
        return self.applied(f"{op}__float", dtype, *sides)

    def _extreme(self, expr: Binary, dtype: str) -> str:
        of_constant = _constant_and_number(expr)
        if of_constant:
            text = self.applied(CHOICES[expr.op], dtype, *map(self.value, of_constant))
            # 0 is added where an extreme is 0 for -0, which leaves other numbers.
            is_0 = expr.op == "max" and any(is_zero(s, 1) for s in (expr.left, expr.right))
            return f"({text} + 0.0{'f' * (dtype == 'float32')})" if is_0 else text
        sides = [self.value(expr.left), self.value(expr.right)]
        if isinstance(expr.right, Load) and expr.right.buffer in self.variables:
            # What a chain waits for goes first.
            sides.reverse()
        return f"{self.extreme(expr.op, dtype, expr)}({', '.join(map(bare, sides))})"

    def extreme(self, op: str, dtype: str, numbers: Expr | None = None) -> str:
        """Returns a helper for extremes of floats.

        Args:
          op: "min" or "max".
          dtype: in which they are computed.
          numbers: an expression that holds them.
        """
        return self.helper(f"{op}__float", dtype)

    def integer_operation(self, expr: Binary) -> str:
        """Returns an operation on integers that C has no operator for."""
        op, dtype = expr.op, expr.dtype
        if op not in QUOTIENTS:
            signed = "" if op in ("min", "max", "shl") else f"__{signedness(dtype)}"
            sides = self.value(expr.left), self.value(expr.right)
            return self.applied(f"{op}{signed}", dtype, *sides)
        form, by = self.quotient_form(expr)
        sides = self.value(expr.left), self.value(by)
        if form in PLAIN_QUOTIENTS:
            return f"({f' {form} '.join(sides)})"
        return self.applied(form, dtype, *sides)

    def joined(self, op: str, dtype: str, one: str, other: str) -> str:
        """Returns an operation of a reduction."""
        if op in ("add", "sub", "mul") and not is_float(dtype):
            kind, unsigned = self.value_type(dtype), self.unsigned(dtype)
            return f"({kind})(({unsigned}){one} {SIGNS[op]} ({unsigned}){other})"
        if op in SIGNS:
            return f"{one} {SIGNS[op]} {other}"
        helper = self.extreme(op, computed(dtype)) if is_float(dtype) else self.helper(op, dtype)
        return f"{helper}({bare(one)}, {bare(other)})"

    def formula(self, formula: str, values: Mapping[str, str], dtype: str) -> str:
        """Returns a formula of float32 or float64 values."""

        def apply(op: str, *operands: str) -> str:
            if op == "neg":
                return f"(-{operands[0]})"
            if op == "select":
                return "({} ? {} : {})".format(*operands)
            if op in SIGNS:
                return f"({operands[0]} {SIGNS[op]} {operands[1]})"
            return self.math(op, operands, dtype)

        return evaluate(formula, values, lambda value: self.constant(value, dtype), apply)

    # Values of dtypes that arrays store otherwise.

    def rounded(self, text: str, dtype: str) -> str:
        """Returns a value, rounded first if its dtype is float16 or bfloat16."""
        return self.from_storage(self.to_storage(text, dtype), dtype)

    def from_storage(self, text: str, dtype: str) -> str:
        """Returns the value of an element of an array."""
        return f"{self.converter('from', dtype)}({text})" if dtype in ROUNDED else text

    def to_storage(self, text: str, dtype: str) -> str:
        """Returns a value as an element of an array; one that comes from an array is one."""
        if dtype not in ROUNDED:
            return text
        if text.startswith(start := f"{self.converter('from', dtype)}("):
            return text.removeprefix(start)[:-1]
        return f"{self.converter('to', dtype)}({bare(text)})"


def quotient_template(op: str, dtype: str) -> str:
    """Returns the template of a division or a remainder of any integers of a dtype."""
    kind = signedness(dtype)
    if kind == "unsigned":
        op = {"floordiv": "truncdiv", "truncmod": "mod"}.get(op, op)
    return f"{op}__{kind}"


def is_zero(expr: Expr, sign: int) -> bool:
    """Returns whether a float is 0, for the sign 1, or -0, for -1."""
    return isinstance(expr, Const) and expr.value == 0 and math.copysign(1, expr.value) == sign


def _constant_and_number(extreme: Binary) -> tuple[Const, Expr] | None:
    """Returns the sides of the minimum or maximum of a constant and another float; else None.

    It is the constant if that is less or greater, else the number, which may be NaN. Of two zeros
    that is the number, too: the minimum with -0 is none of these.
    """
    for side, other in ((extreme.left, extreme.right), (extreme.right, extreme.left)):
        if isinstance(side, Const) and side.value == side.value:
            return None if extreme.op == "min" and is_zero(side, -1) else (side, other)
    return None
