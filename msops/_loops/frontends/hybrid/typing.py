"""The typing rules: which dtypes meet, and what a constant becomes beside another operand.

- A constant, also ``1 if c else 0``, takes the type of the other operand. So does arithmetic on
  such choices, except that integers become no narrower ones. Two constants compute as in Python;
  AKG gives the right one the left one's type, so that its ``1 + 0.5`` is 1.
- Two other operands have equal types, or it is an error. Comparisons and augmented assignments
  convert integers to floats and to wider integers first, as AKG does.
- A scalar that starts as a constant (``s = 0.0``) gets the type of what it meets; AKG keeps it
  float32 or int32 and rejects any other.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, field

import numpy as np

from msops._loops.frontends.hybrid.names import ScopedName
from msops._loops.frontends.hybrid.values import named
from msops._loops.frontends.reporting import Reporter
from msops._loops.frontends.spec import common_dtype
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.nodes import Binary, Cast, Const, Expr, FunctionCall, Load, Note, Select, Unary
from msops._loops.ir.operators import BINARY, INTEGERS, is_float, itemsize
from msops._loops.ir.walk import map_operands, operands, with_parts

MOST_BITS_OF_FLOATS = 1023
"""Python converts no longer integer to a float."""


class Retype(Exception):
    """A scalar that started as a constant meets a type: translate again with it.

    The type is not final if it is of another such scalar, whose type may change.
    """

    def __init__(self, symbols: frozenset[ScopedName], dtype: str, is_final: bool):
        super().__init__()
        self.symbols = symbols
        self.dtype = dtype
        self.is_final = is_final


@dataclass
class Typing:
    """Makes operands agree.

    Attributes:
      report: makes the errors.
      untyped: by the names of their buffers, the scalars that started as a constant, and for what
        holds a value for a moment those that it is made of.
      adapted: the names of scalars that started as a constant and have the type of what they met.
      float_dtype: what errors advise to convert integers to.
      exact: by its id, each integer that is the nearest one to another, and that other one, which a
        conversion takes.
      notes: what the author should know, each once.
    """

    report: Reporter
    adapted: frozenset[str] = frozenset()
    float_dtype: str = "float32"
    untyped: dict[str, frozenset[ScopedName]] = field(default_factory=dict)
    exact: dict[int, tuple[Expr, Expr]] = field(default_factory=dict)
    notes: dict[Note, None] = field(default_factory=dict)

    def agree(self, node: ast.AST, left: Expr, right: Expr, what: str) -> tuple[Expr, Expr]:
        """Returns two operands with equal types."""
        one, other = texts(node)
        if left.dtype == right.dtype:
            return self.fitting(node, left, other), self.fitting(node, right, one)
        dtypes = [left.dtype, right.dtype]
        if is_literal(left) and is_literal(right):
            dtypes = [wider_literal(*dtypes)]
        for dtype in dtypes:
            if all(one.dtype == dtype or can_be(one, dtype) for one in (left, right)):
                return self._as(node, left, dtype, other), self._as(node, right, dtype, one)
        self.retype(left, right)
        self.retype(right, left)
        raise self._mismatch(node, left.dtype, right.dtype, what)

    def note(self, node: ast.AST, problem: str, remedy: str) -> None:
        """Notes something that the author should know."""
        self.notes[Note(problem, remedy, self.report.source.location(node))] = None

    def compare(self, node: ast.AST, left: Expr, right: Expr, what: str) -> tuple[Expr, Expr]:
        """Returns two operands of a comparison with equal types."""
        dtype = promoted(left.dtype, right.dtype)
        if dtype is None or left.dtype == right.dtype or _takes(left, right):
            return self.agree(node, left, right, what)
        if not is_float(dtype):
            # As in Python: in TVM's type, the wider one of the two, a large uint32 is less than 0.
            dtype = np.result_type(left.dtype, right.dtype).name
        return self.convert(left, dtype), self.convert(right, dtype)

    def stored(self, node: ast.AST, value: Expr, target: Expr, where: str) -> Expr:
        """Returns a value as one that a scalar or an element, the target, can hold."""
        dtype = target.dtype
        if value.dtype == dtype:
            return self.fitting(node, value)
        if can_be(value, dtype):
            return self.constant(node, value, dtype)
        self.retype(value, target)
        self.retype(target, value)
        text = ast.unparse(node)
        raise self.report.build_error(
            node,
            f"{named(value.dtype)} cannot be stored in {where}, which is {dtype}",
            f"Convert it: {dtype}({text})." if dtype != "bool" else f"Compare it: {text} != 0.",
        )

    def fitting(self, node: ast.AST, value: Expr, other: str = "") -> Expr:
        """Returns a value; a constant must be representable in its type. See `constant`."""
        return self._as(node, value, value.dtype, other)

    def _as(self, node: ast.AST, value: Expr, dtype: str, other: str) -> Expr:
        return self.constant(node, value, dtype, other) if is_literal(value) else value

    def constant(self, node: ast.AST, value: Expr, dtype: str, other: str = "") -> Expr:
        """Returns a literal in a type that it can be of, if that has its values.

        Args:
          node: the author's expression.
          value: the literal.
          dtype: the type.
          other: the text of the operand that has this type, if there is one.
        """
        if isinstance(value, Select):
            then = self.constant(node, value.then, dtype, other)
            otherwise = self.constant(node, value.otherwise, dtype, other)
            return Select(value.condition, then, otherwise, dtype)
        if isinstance(value, Unary | Binary | FunctionCall):
            parts = map_operands(value, lambda part: self.constant(node, part, dtype, other))
            return with_parts(parts, dtype=dtype)
        assert isinstance(value, Const)
        if not represents(dtype, value.value):
            wide = "int64" if isinstance(value.value, int) else "float32"
            instead = f", or compute in {wide}: {wide}({other})" if other else ""
            raise self.report.build_error(
                node,
                f"the constant {value.value!r} is no {dtype}",
                f"Write a number that {dtype} has{instead}.",
            )
        kind = bool if dtype == "bool" else float if is_float(dtype) else int
        return Const(kind(value.value), dtype)

    def convert(self, value: Expr, dtype: str) -> Expr:
        """Returns a value converted, without a node if it has the type."""
        if value.dtype == dtype:
            return value
        if isinstance(value, Const) and is_float(dtype):
            return Const(float(value.value), dtype)
        return Cast(self.unrounded(value), dtype)

    def unrounded(self, value: Expr) -> Expr:
        """Returns the integer that a value is the nearest one to; itself for others."""
        return self.exact.get(id(value), (value, value))[1]

    def retype(self, value: Expr, other: Expr) -> None:
        """Raises `Retype` if a value is made of scalars without a type of their own yet.

        They get the type of the other value. If that has none of its own either, they get the wider
        one of the two types: translating again must end.
        """
        dtype = other.dtype
        symbols = self.untyped_symbols(value)
        widens = is_float(dtype) or (value.dtype in INTEGERS and dtype in INTEGERS)
        is_final = not self.untyped_symbols(other)
        if not symbols or not widens or value.dtype == "bool":
            return
        if is_final or wider_literal(value.dtype, dtype) == dtype:
            raise Retype(symbols, dtype, is_final)

    def untyped_symbols(self, value: Expr) -> frozenset[ScopedName]:
        """Returns the untyped scalars of an expression made of them and constants only."""
        return self._symbols(value) or frozenset()

    def _symbols(self, value: Expr) -> frozenset[ScopedName] | None:
        """Returns the same, or None for an expression with a type of its own."""
        match value:
            case Const():
                return frozenset()
            case Load(buffer=buffer):
                return self.untyped.get(buffer)
            case Select(then=then, otherwise=otherwise):
                parts: tuple[Expr, ...] = (then, otherwise)
            case Unary() | Binary() | FunctionCall():
                parts = operands(value)
            case _:
                return None
        found = [self._symbols(part) for part in parts]
        return None if None in found else frozenset().union(*filter(None, found))

    def _mismatch(self, node: ast.AST, left: str, right: str, what: str) -> Exception:
        """Returns the error for two types that do not meet; it converts to the wider one."""
        one, other = texts(node)
        remedy = f"Convert one: {left}({other})."
        if not isinstance(node, ast.AugAssign):  # what it assigns to keeps its type
            if is_float(left) != is_float(right) and {left, right} & _FEW_WHOLE_NUMBERS:
                remedy = f"Convert both: {self.float_dtype}({one}) and {self.float_dtype}({other})."
            elif _width(right) > _width(left):
                remedy = f"Convert one: {right}({one})."
            narrow, wide = (one, right) if _width(right) > _width(left) else (other, left)
            if narrow in self.adapted:
                remedy = f"'{narrow}' has the type of what it meets; start it as {wide}(...)."
        return self.report.build_error(
            node, f"mismatch type: the operands of {what} are {left} and {right}", remedy
        )


# They hold every whole number only up to 2048 and 256.
_FEW_WHOLE_NUMBERS = {"float16", "bfloat16"}


def _width(dtype: str) -> tuple[bool, bool, int]:
    """Returns what is greater for the wider of two types."""
    return is_float(dtype), dtype != "bool", itemsize(dtype)


def operands_of(node: ast.AST) -> tuple[ast.expr, ast.expr]:
    """Returns the two operands of an operation, as the author wrote them."""
    match node:
        case ast.BinOp(left=one, right=other) | ast.IfExp(body=one, orelse=other):
            return one, other
        case ast.Compare(left=one, comparators=[other]) | ast.Call(args=[one, other]):
            return one, other
        case ast.AugAssign(target=one, value=other):
            return one, other
    return ast.Name("x"), ast.Name("y")


def texts(node: ast.AST) -> tuple[str, str]:
    """Returns the text of the two operands of an operation."""
    one, other = operands_of(node)
    return ast.unparse(one), ast.unparse(other)


def is_float_beside_integer(left: Expr, right: Expr) -> bool:
    """Returns whether an operand is a float constant, and the other an integer that is none."""
    return any(
        is_float(one.dtype)
        and is_literal(one)
        and other.dtype in INTEGERS
        and not is_literal(other)
        for one, other in ((left, right), (right, left))
    )


def is_signed_beside_uint64(left: Expr, right: Expr) -> bool:
    """Returns whether no integer type has the values of both operands."""
    dtypes = {left.dtype, right.dtype}
    return (
        "uint64" in dtypes
        and any(dtype.startswith("int") for dtype in dtypes)
        and not _takes(left, right)
    )


def is_literal(value: Expr) -> bool:
    """Returns whether a value is a constant, a choice between some, or arithmetic on these."""
    return can_be(value, value.dtype)


def can_be(value: Expr, dtype: str) -> bool:
    """Returns whether a value is a literal that takes a type: ``2 * (1 if c else 0)`` an int64.

    Constants take any that has their values. Arithmetic does not take a narrower integer, which
    would wrap.
    """
    match value:
        case Const():
            return True
        case Select(then=then, otherwise=otherwise):
            return can_be(then, dtype) and can_be(otherwise, dtype)
        case Unary(op="neg"):
            domain = "number"
        case Binary(op=op):
            domain = BINARY[op][1]
        case FunctionCall(function=name):
            domain = FUNCTIONS[name].domain
        case _:
            return False
    if value.dtype == "bool" or not all(can_be(part, dtype) for part in operands(value)):
        return False
    if is_float(dtype):
        return domain != "integer" or value.dtype == dtype
    return value.dtype == dtype or (value.dtype in INTEGERS and dtype == "int64")


def _takes(left: Expr, right: Expr) -> bool:
    """Returns whether one of two integers is a constant that has the type of the other."""
    if is_float(left.dtype) or is_float(right.dtype):
        return False
    return any(
        isinstance(one, Const) and represents(other.dtype, one.value)
        for one, other in ((left, right), (right, left))
    )


def represents(dtype: str, number: float) -> bool:
    """Returns whether a type has a number; floats round what they are given."""
    if is_float(dtype):
        return not isinstance(number, int) or number.bit_length() <= MOST_BITS_OF_FLOATS
    if not math.isfinite(number) or number != int(number):
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
    """Returns the type two operands are converted to, or None if they do not mix.

    TVM's, but that a bool is no number here.
    """
    return None if left != right and "bool" in (left, right) else common_dtype(left, right)
