"""The typing rules: which dtypes meet, and what a constant becomes beside another operand.

- A constant takes the type of the other operand. Two constants compute as in Python; AKG gives the
  right one the left one's type, so that its ``1 + 0.5`` is 1.
- Two other operands have equal types, or it is an error. Comparisons and augmented assignments
  convert integers to floats and to wider integers first, as AKG does.
- A scalar that starts as a constant (``s = 0.0``) gets the type of what it meets; AKG keeps it
  float32 or int32 and refuses any other.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

import numpy as np

from msops._loops.frontends.hybrid.names import Symbol
from msops._loops.frontends.reporting import Reporter
from msops._loops.intrinsics import INTEGERS, is_float
from msops._loops.ir import Binary, Call, Cast, Const, Expr, Load, Select, Unary
from msops._loops.walk import expressions


class Retype(Exception):
    """A scalar that started as a constant meets a type: translate again with it."""

    def __init__(self, symbols: frozenset[Symbol], dtype: str):
        super().__init__()
        self.symbols = symbols
        self.dtype = dtype


@dataclass
class Typing:
    """Makes operands agree.

    Attributes:
      report: makes the errors.
      untyped: the scalars that started as a constant, by the names of their buffers.
    """

    report: Reporter
    untyped: dict[str, Symbol] = field(default_factory=dict)

    def agree(self, node: ast.AST, left: Expr, right: Expr, what: str) -> tuple[Expr, Expr]:
        """Returns two operands with equal types."""
        if left.dtype == right.dtype:
            return self.fitting(node, left), self.fitting(node, right)
        if isinstance(left, Const) and isinstance(right, Const):
            dtype = wider_literal(left.dtype, right.dtype)
            return self.constant(node, left, dtype), self.constant(node, right, dtype)
        if isinstance(right, Const):
            return left, self.constant(node, right, left.dtype)
        if isinstance(left, Const):
            return self.constant(node, left, right.dtype), right
        self.retype(left, right.dtype)
        self.retype(right, left.dtype)
        raise self.mismatch(node, left.dtype, right.dtype, what)

    def compare(self, node: ast.AST, left: Expr, right: Expr, what: str) -> tuple[Expr, Expr]:
        """Returns two operands of a comparison with equal types."""
        dtype = promoted(left.dtype, right.dtype)
        if dtype is None or left.dtype == right.dtype or _takes(left, right):
            return self.agree(node, left, right, what)
        return convert(left, dtype), convert(right, dtype)

    def stored(self, node: ast.AST, value: Expr, dtype: str, where: str) -> Expr:
        """Returns a value as an element of a buffer."""
        if value.dtype == dtype:
            return self.fitting(node, value)
        if isinstance(value, Const):
            return self.constant(node, value, dtype)
        self.retype(value, dtype)
        raise self.report.build_error(
            node,
            f"a {value.dtype} cannot be stored in {where}, which is {dtype}",
            f"Convert it: {dtype}(...)." if dtype != "bool" else "Compare it: ... != 0.",
        )

    def fitting(self, node: ast.AST, value: Expr) -> Expr:
        """Returns a value; a constant must be representable in its type."""
        return self.constant(node, value, value.dtype) if isinstance(value, Const) else value

    def constant(self, node: ast.AST, value: Const, dtype: str) -> Const:
        """Returns a constant in a type, if it has the value."""
        if not represents(dtype, value.value):
            other = "int64" if float(value.value).is_integer() else "float32"
            raise self.report.build_error(
                node,
                f"the constant {value.value!r} is no {dtype}",
                f"Use one of that type, or convert the other operand: {other}(...).",
            )
        kind = bool if dtype == "bool" else float if is_float(dtype) else int
        return Const(kind(value.value), dtype)

    def retype(self, value: Expr, dtype: str) -> None:
        """Raises `Retype` if a value is made of scalars that have no type of their own yet."""
        symbols = self.untyped_symbols(value)
        if symbols and (is_float(dtype) or (value.dtype in INTEGERS and dtype in INTEGERS)):
            raise Retype(symbols, dtype)

    def untyped_symbols(self, value: Expr) -> frozenset[Symbol]:
        """Returns the untyped scalars of an expression made of them and constants only."""
        found = set()
        for part in expressions(value):
            if isinstance(part, Load) and part.buffer in self.untyped:
                found.add(self.untyped[part.buffer])
            elif not isinstance(part, (Const, Unary, Binary, Call, Select)):
                return frozenset()
        return frozenset(found)

    def mismatch(self, node: ast.AST, left: str, right: str, what: str) -> Exception:
        """Returns the error for two types that do not meet."""
        target = left if is_float(left) else right
        return self.report.build_error(
            node,
            f"mismatch type: the operands of {what} are {left} and {right}",
            f"Convert one, for example {target}(...).",
        )


def _takes(left: Expr, right: Expr) -> bool:
    """Tells whether one of two integers is a constant that has the type of the other."""
    if is_float(left.dtype) or is_float(right.dtype):
        return False
    return any(
        isinstance(one, Const) and represents(other.dtype, one.value)
        for one, other in ((left, right), (right, left))
    )


def represents(dtype: str, number: float) -> bool:
    """Tells whether a type has a number; floats round what they are given."""
    if is_float(dtype):
        return True
    if not np.isfinite(number) or number != int(number):
        return False
    if dtype == "bool":
        return number in (0, 1)
    limits = np.iinfo(dtype)
    return bool(limits.min <= number <= limits.max)


def wider_literal(left: str, right: str) -> str:
    """Returns the type of an operation on two constants."""
    ranked = ["bool", "int32", *INTEGERS, "float32", "float16", "bfloat16", "float64"]
    return max(left, right, key=ranked.index)


def promoted(left: str, right: str) -> str | None:
    """Returns the type TVM converts two operands to, or None if it refuses.

    Source: AKG (TVM 0.6), ``BinaryOpMatchTypes``.
    """
    if left == right:
        return left
    if "bool" in (left, right) or (is_float(left) and is_float(right)):
        return None
    if is_float(left) or is_float(right):
        return left if is_float(left) else right
    bits = max(np.iinfo(left).bits, np.iinfo(right).bits)
    unsigned = left.startswith("u") and right.startswith("u")
    return f"{'u' if unsigned else ''}int{bits}"


def convert(value: Expr, dtype: str) -> Expr:
    """Returns a value converted, without a node if it has the type."""
    if value.dtype == dtype:
        return value
    if isinstance(value, Const) and is_float(dtype):
        return Const(float(value.value), dtype)
    return Cast(value, dtype)
