"""Operators of the loop IR on numbers in C's syntax."""

from __future__ import annotations

import math

from msops._loops.ir.algebra import is_power_of_2
from msops._loops.ir.nodes import Binary, Const, Expr, FunctionCall, Load, Select, Unary
from msops._loops.ir.operators import COMPARISONS, LOGICAL, is_float
from msops._loops.ir.ranges import dtype_range, is_within
from msops._loops.ir.walk import expressions, loads
from msops._loops.to_c.facts.work import is_quick
from msops._loops.to_c.text.elements import Elements
from msops._loops.to_c.text.operations import QUOTIENTS, is_zero, quotient_template
from msops._loops.to_c.text.syntax import (
    SIGNS,
    bare,
    compares_indices,
    computed,
    division_sign,
    signedness,
    width,
)

_EXPENSIVE = ("div", *QUOTIENTS, "pow")
_MOST_CHOICES = 4
"""Inside of a choice that are made whether or not their values are used: a loop with a branch is no
loop over vectors."""
WHOLE = {"land": "&", "lor": "|"}
SIGN_BITS = {"float32": "0x80000000u", "float64": "0x8000000000000000ull"}


class Arithmetic(Elements):
    """Prints operators."""

    def _unary(self, expr: Unary) -> str:
        kind = self.value_type(expr.dtype)
        if expr.op == "neg" and not is_float(expr.dtype) and not self._never_wraps(expr):
            return f"(({kind})(0 - {self._unsigned(expr.operand)}))"
        operand = self.value(expr.operand)
        if expr.op == "bits":
            return self._bits(expr, operand)
        if expr.op == "not":
            return f"(!{operand})"
        if expr.op == "invert":
            return f"(({kind})~{operand})"
        return f"(-{operand})"

    def _bits(self, expr: Unary, operand: str) -> str:
        if is_float(expr.dtype):
            helper = self.helper("of_bits", expr.dtype)
            return f"{helper}({bare(self._unsigned(expr.operand))})"
        helper = self.helper("bits_of", expr.operand.dtype)
        return f"(({self.value_type(expr.dtype)}){helper}({bare(operand)}))"

    def _binary(self, expr: Binary) -> str:
        op, dtype = expr.op, expr.left.dtype
        if op in COMPARISONS and compares_indices(expr):
            return f"({self.index(expr.left)} {SIGNS[op]} {self.index(expr.right)})"
        if self._wraps(expr):
            return f"(({self.value_type(dtype)}){self._wrapped(expr)})"
        if is_float(expr.dtype):
            return self.rounded(self._float_binary(expr), dtype)
        if op == "shr" and is_within(self._range(expr.right), (0, width(dtype) - 1)):
            shifted = f"{self.value(expr.left)} >> {self.value(expr.right)}"
            return f"(({self.value_type(dtype)})({shifted}))"
        if op not in SIGNS:
            return self.integer_operation(expr)
        sign = WHOLE[op] if self._is_whole(expr) else SIGNS[op]
        return f"({self.value(expr.left)} {sign} {self.value(expr.right)})"

    def _is_whole(self, expr: Binary) -> bool:
        """Returns whether a condition is evaluated whole, without a branch between its parts.

        Where data decide, no processor foresees a branch. A compiler makes one: it may not read
        elements before the first part holds, for all it knows. Of variables it decides this itself.
        """
        return (
            expr.op in LOGICAL
            and any(load.indices for load in loads(expr.right))
            and is_quick(expr.right)
            and self._is_cheap(expr.right)
        )

    def _is_cheap(self, expr: Expr) -> bool:
        """Returns whether an expression may be evaluated where its value is not used."""
        parts = list(expressions(expr))
        choices = sum(isinstance(part, Select) for part in parts)
        return choices <= _MOST_CHOICES and not any(
            isinstance(part, FunctionCall)
            or (isinstance(part, Load) and not self.is_always_inside(part))
            or (isinstance(part, Binary) and part.op in _EXPENSIVE)
            for part in parts
        )

    def _float_binary(self, expr: Binary) -> str:
        op, dtype = expr.op, computed(expr.dtype)
        if op not in SIGNS:
            return self.float_operation(expr)
        left, right = self.value(expr.left), self.value(expr.right)
        # gcc 12 takes 0.0 - x for -x, wrong for 0, where it sees in the text that x is never -0.
        if op in ("add", "sub") and is_zero(expr.left, 1) and not isinstance(expr.right, Load):
            right = self.applied("same", dtype, right)
        if op == "add" and is_zero(expr.right, 1) and not isinstance(expr.left, Load):
            left = self.applied("same", dtype, left)
        return f"({left} {SIGNS[op]} {right})"

    def extreme(self, op: str, dtype: str, numbers: Expr | None = None) -> str:
        """Returns a helper for extremes of floats."""
        sign, bits_of = SIGN_BITS[dtype], self.helper("bits_of", dtype)
        # gcc compares what it reads as float16 by a call.
        is_read = numbers is not None and "float16" in {load.dtype for load in loads(numbers)}
        is_half = is_read and dtype == "float32"
        is_nan = f"({bits_of}(b) & ~{sign}) > 0x7f800000u" if is_half else "b != b"
        return self.helper(
            f"{op}__float",
            "float16" if is_half else dtype,
            nan=self._dialect.not_finite(math.nan, dtype),
            is_nan=self.rare(is_nan),
            is_opposite=self.rare(f"({bits_of}(a) ^ {bits_of}(b)) == {sign}"),
        )

    def _wraps(self, expr: Expr) -> bool:
        """Returns whether a result may be out of range where C's own types do not wrap."""
        return (
            isinstance(expr, Binary)
            and expr.op in ("add", "sub", "mul")
            and not is_float(expr.dtype)
            and expr.dtype not in ("uint32", "uint64")
            and not self._never_wraps(expr)
        )

    def _wrapped(self, expr: Binary) -> str:
        """Returns arithmetic in an unsigned type, in which it wraps."""
        return f"({self._unsigned(expr.left)} {SIGNS[expr.op]} {self._unsigned(expr.right)})"

    def _unsigned(self, expr: Expr) -> str:
        """Returns a value in an unsigned type that is not narrower than int."""
        kind = self.unsigned(expr.dtype)
        if expr.dtype in ("int32", "int64") and isinstance(expr, Binary) and self._wraps(expr):
            return self._wrapped(expr)
        return f"({kind}){self.value(expr)}"

    def quotient_form(self, expr: Binary) -> tuple[str, Expr]:
        """Returns how a division or a remainder of integers is computed, and by what."""
        op, right, kind = expr.op, expr.right, signedness(expr.dtype)
        low, high = self._range(expr.left)
        least = self._range(right)[0]
        # gcc 12 may move a sign out of a division, which is wrong for the least integer alone.
        is_safe = op.startswith("trunc") and low > dtype_range(expr.dtype)[0]
        if least > 0 and (low >= 0 or is_safe or kind == "unsigned"):
            return division_sign(op), right
        if op in ("floordiv", "mod") and is_power_of_2(right):
            # In two's complement both round down.
            power = int(right.value)
            bits = power - 1 if op == "mod" else power.bit_length() - 1
            return "&" if op == "mod" else ">>", Const(bits, right.dtype)
        if kind == "signed" and least > 0 and op in ("floordiv", "mod"):
            is_around = op == "mod" and -least <= low and high < least
            return f"{op}_{'around' if is_around else 'positive'}__signed", right
        return quotient_template(op, expr.dtype), right
