"""Operators and functions on scalars: their types, and what is computed at once."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from msops._base.dtypes import as_dtype
from msops._loops.frontends.hybrid.typing import (
    Typing,
    can_be,
    is_float_beside_integer,
    is_signed_beside_uint64,
    operands_of,
    represents,
    texts,
    wider_literal,
)
from msops._loops.frontends.hybrid.values import literal, named
from msops._loops.ir import operators, scalars
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.nodes import (
    Binary,
    BinaryOp,
    Cast,
    Const,
    Expr,
    FunctionCall,
    Select,
    Unary,
    UnaryOp,
)
from msops._loops.ir.operators import INTEGERS, is_float, result_dtype

_OF_FLOATS = ("add", "sub", "mul", "pow")
"""What of a float constant and an integer is another number in Python than of two integers."""
_MOST_BITS = 64
"""Python would go on computing with longer integers, for hours."""


def binary(typing: Typing, node: ast.AST, op: BinaryOp, left: Expr, right: Expr) -> Expr:
    """Returns an operation on two scalars.

    Args:
      typing: makes them agree.
      node: the author's expression.
      op: the IR's operation, not "land" or "lor".
      left: the first.
      right: the second.
    """
    what = f"'{operators.PYTHON_SIGNS[op]}'"
    if isinstance(left, Const) and isinstance(right, Const):
        folded = _fold(typing, node, op, left, right)
        if folded is not None:
            return folded
    # A float and an integer are reported as what they are, not as a division of integers.
    is_mixed = op == "div" and is_float(left.dtype) != is_float(right.dtype)
    for operand in (left, right):
        if not isinstance(operand, Const) and not is_mixed:
            _check_domain(typing, node, op, operand.dtype, (left, right))
    if op in _OF_FLOATS and is_float_beside_integer(left, right):
        _report_integer(typing, node, op, left, right)
    if op in operators.COMPARISONS and is_signed_beside_uint64(left, right):
        return _compare_uint64(typing, op, left, right)
    meet = typing.compare if op in operators.COMPARISONS else typing.agree
    given = left, right
    left, right = meet(node, left, right, what)
    if op == "pow" and left.dtype in INTEGERS and _is_negative(right):
        raise typing.report.build_error(
            node,
            f"an integer to a negative power is no integer; the operands of {what} are "
            f"{left.dtype}",
            _in_floats(typing, node),
        )
    if is_mixed:
        _check_domain(typing, node, op, left.dtype, given)
    return Binary(op, left, right, result_dtype(op, left.dtype))


def _compare_uint64(typing: Typing, op: BinaryOp, left: Expr, right: Expr) -> Expr:
    """Returns a comparison of a signed integer and an uint64: a negative one is the lesser."""
    signed = typing.unrounded(right if left.dtype == "uint64" else left)
    lesser: tuple[BinaryOp, ...] = ("gt", "ge") if left.dtype == "uint64" else ("lt", "le")
    holds_below = op in (*lesser, "ne")
    if isinstance(signed, Const):  # A constant that is not negative becomes an uint64.
        return Const(holds_below, "bool")
    zero = Const(0, signed.dtype)
    sides = typing.convert(left, "uint64"), typing.convert(right, "uint64")
    sign = Binary("lt" if holds_below else "ge", signed, zero, "bool")
    return Binary("lor" if holds_below else "land", sign, Binary(op, *sides, "bool"), "bool")


def _report_integer(typing: Typing, node: ast.AST, op: BinaryOp, left: Expr, right: Expr) -> None:
    """Notes that a float constant becomes an integer, as in AKG; raises if a power is one then.

    Python computes in floats: its sums and products do not wrap.
    """
    (constant, text), (other, integer) = zip((left, right), texts(node), strict=True)
    if not is_float(constant.dtype):
        constant, text, other, integer = other, integer, constant, text
    if op == "pow":
        raise typing.report.build_error(
            node,
            f"the operands of '**' are the float constant {text} and {named(other.dtype)}",
            _in_floats(typing, node),
        )
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
        return  # What is stored is an integer anyway.
    typing.note(
        node,
        f"the constant {text} is {other.dtype}, as {integer} is; what does not fit wraps",
        f"Write an integer, or compute in floats: {typing.float_dtype}({integer}).",
    )


def _in_floats(typing: Typing, node: ast.AST) -> str:
    return f"Compute in floats: {' ** '.join(_as_floats(typing, node))}."


def _as_floats(typing: Typing, node: ast.AST) -> list[str]:
    """Returns the text of two operands as floats; a number takes the type of the other operand."""
    operands = operands_of(node)
    numbers = [_is_number(part) for part in operands]
    dtype = typing.float_dtype
    return [
        ast.unparse(part) if is_number and not all(numbers) else f"{dtype}({ast.unparse(part)})"
        for part, is_number in zip(operands, numbers, strict=True)
    ]


def _is_number(part: ast.expr) -> bool:
    """Returns whether the author wrote a number, perhaps a negative one."""
    if isinstance(part, ast.UnaryOp):
        part = part.operand
    return isinstance(part, ast.Constant)


def _is_negative(exponent: Expr) -> bool:
    """Returns whether an exponent, or one of those it is chosen from, is written with a minus."""
    match exponent:
        case Const(value=value):
            return value < 0
        case Unary(op="neg"):
            return True
        case Select(then=then, otherwise=otherwise):
            return _is_negative(then) or _is_negative(otherwise)
    return False


def _fold(typing: Typing, node: ast.AST, op: BinaryOp, left: Const, right: Const) -> Const | None:
    dtype = wider_literal(left.dtype, right.dtype)
    _check_domain(typing, node, op, dtype, (left, right))
    if _has_width(dtype, left, right) and _is_defined(op, right):
        result = scalars.binary(op, dtype)(left.value, right.value)
        return Const(result, result_dtype(op, dtype))
    if _least_bits(op, left.value, right.value) > _MOST_BITS:
        raise _too_long(typing, node)
    try:
        value = scalars.EXACT[op](left.value, right.value)
    except ZeroDivisionError:
        if is_float(dtype):
            return None
        raise typing.report.build_error(
            node, "a constant is divided by 0", "Check the shape or attribute it comes from."
        ) from None
    except (OverflowError, ValueError, TypeError):
        return None
    if isinstance(value, complex):
        return None  # NaN at run time
    if not represents("float64", value):
        raise _too_long(typing, node)
    natural = literal(value)
    if natural.dtype == "bool" or is_float(natural.dtype) != is_float(dtype):
        return natural
    return Const(value, dtype)


def _too_long(typing: Typing, node: ast.AST) -> Exception:
    return typing.report.build_error(
        node,
        f"the constant '{ast.unparse(node)}' has more than {_MOST_BITS} bits",
        "Write a number that int64 has, or compute in floats: 2.0 ** x.",
    )


def _has_width(dtype: str, *parts: Const) -> bool:
    """Returns whether constants compute in a type that the author gave one: their result wraps.

    A number without a conversion is int32, but has no width: it may become an int64.
    """
    return dtype in INTEGERS and dtype != "int32" and all(represents(dtype, p.value) for p in parts)


def _is_defined(op: BinaryOp, right: Const) -> bool:
    """Returns whether an operation on integers is none that is reported: a division by 0."""
    return not (right.value == 0 if op in operators.QUOTIENTS else op == "pow" and right.value < 0)


def _least_bits(op: BinaryOp, left: Any, right: Any) -> int:
    """Returns a lower limit of how long a power or shift of constants is, without computing it."""
    if not (isinstance(left, int) and isinstance(right, int)) or right < 0:
        return 0
    length = abs(left).bit_length()
    if op == "shl":
        return length + right if left else 0
    return (length - 1) * right if op == "pow" else 0


def _check_domain(
    typing: Typing, node: ast.AST, op: BinaryOp, dtype: str, operands: tuple[Expr, Expr]
) -> None:
    """Raises if an operation is not defined on the type in which it would compute."""
    domain = operators.BINARY[op][1]
    what = f"'{operators.PYTHON_SIGNS[op]}'"
    if op == "div" and not is_float(dtype):
        floats = " / ".join(_as_floats(typing, node))
        is_whole = all(operand.dtype != "bool" for operand in operands)
        raise typing.report.build_error(
            node,
            f"'/' of {_named_both(dtype, operands)} is ambiguous",
            f"Write // for the whole quotient, or convert: {floats}."
            if is_whole
            else f"Convert both: {floats}.",
        )
    if dtype == "bool" and op not in ("eq", "ne", "and", "or", "xor"):
        raise typing.report.build_error(
            node,
            f"{what} is not defined on bool",
            "Convert the condition, float32(c) or int32(c), or write x if c else y.",
        )
    if domain == "integer" and is_float(dtype):
        remedy = "Convert the operands by int32."
        if op in ("and", "or", "xor"):
            sign = operators.PYTHON_SIGNS[op]
            remedy = f"{remedy[:-1]}; or join comparisons in parentheses: (a > b) {sign} (c > d)."
        raise typing.report.build_error(node, f"{what} takes integers; got {dtype}", remedy)


def _named_both(dtype: str, operands: tuple[Expr, Expr]) -> str:
    """Returns the operands by name: a constant takes the type of the other."""
    constants = [operand.value for operand in operands if isinstance(operand, Const)]
    if len(constants) == 1:
        return f"{named(dtype)} and the number {constants[0]}"
    left, right = (operand.dtype for operand in operands)
    return f"two {dtype}" if left == right else f"{named(left)} and {named(right)}"


def unary(typing: Typing, node: ast.AST, op: UnaryOp, operand: Expr) -> Expr:
    """Returns ``-x``, ``not x`` or ``~x``."""
    allowed = {"neg": operand.dtype != "bool", "not": operand.dtype == "bool"}
    if not allowed.get(op, operand.dtype in INTEGERS):
        wanted = {"neg": "numbers", "not": "conditions", "invert": "integers"}[op]
        raise typing.report.build_error(
            node,
            f"'{ast.unparse(node)}': the operand is {operand.dtype}, and the operator takes "
            f"{wanted}",
            "Write not c for conditions, -x for numbers, ~i for integers.",
        )
    if isinstance(operand, Const) and _has_width(operand.dtype, operand):
        return Const(scalars.unary(op, operand.dtype)(operand.value), operand.dtype)
    if isinstance(operand, Const) and op != "invert":
        value = -operand.value if op == "neg" else not operand.value
        return Const(value, operand.dtype)
    return Unary(op, typing.fitting(node, operand), operand.dtype)


def function(typing: Typing, node: ast.AST, name: str, args: tuple[Expr, ...]) -> Expr:
    """Returns a call of an IR function; integer constants become floats where it takes those."""
    function = FUNCTIONS[name].in_hybrid or name
    row = FUNCTIONS[function]
    if len(args) == 2:
        args = typing.agree(node, args[0], args[1], f"'{name}'")
    if row.domain == "float":
        args = tuple(
            typing.constant(node, arg, "float32")
            if not is_float(arg.dtype) and can_be(arg, "float32")
            else arg
            for arg in args
        )
    for place, arg in enumerate(args):
        fits = {
            "float": is_float(arg.dtype),
            "integer": arg.dtype in INTEGERS,
            "number": arg.dtype != "bool",
        }[row.domain]
        if not fits:
            given = node.args[place] if isinstance(node, ast.Call) else ast.Name("x")
            is_of_integers = row.domain == "integer"
            wanted, cast = (
                ("integers", "int32") if is_of_integers else ("floats", typing.float_dtype)
            )
            raise typing.report.build_error(
                node,
                f"'{name}' takes {wanted}; got {arg.dtype}",
                f"Convert its input: {cast}({ast.unparse(given)}).",
            )
    dtype = args[0].dtype
    if not row.to_bool and len(args) == 1 and isinstance(args[0], Const):
        if not is_float(args[0].dtype):
            typing.fitting(node, args[0])
        folded = _folded(function, args[0])
        if folded is not None:
            return folded
    return FunctionCall(function, args, "bool" if row.to_bool else dtype)


def _folded(name: str, arg: Const) -> Const | None:
    """Returns a function of a constant; None for what is infinite or NaN at run time."""
    if not is_float(arg.dtype):
        return Const(scalars.call(name, arg.dtype)(arg.value), arg.dtype)
    with np.errstate(all="ignore"):
        value = float(FUNCTIONS[name].numpy(np.float64(arg.value)))
    return Const(value, arg.dtype) if math.isfinite(value) else None


def cast(typing: Typing, node: ast.AST, operand: Expr, dtype: str) -> Expr:
    """Returns a conversion; of a constant, the constant where it has the value."""
    if isinstance(operand, Const):
        number = operand.value
        if not represents("float64", number):
            raise _too_long(typing, node)
        if is_float(dtype):
            with np.errstate(over="ignore"):
                # numpy's bfloat16 takes no int of more than 63 bits.
                is_long = isinstance(number, int) and number >= 2**63
                exact = np.uint64(number) if is_long else number
                return Const(float(as_dtype(dtype).dtype.type(exact)), dtype)
        if not is_float(dtype) and math.isfinite(number):
            limits = np.iinfo(dtype)
            if limits.min <= int(number) <= limits.max:
                return Const(int(number), dtype)
            if isinstance(number, int):  # It may be none of its own dtype, which has no width.
                return Const(scalars.cast("int64", dtype)(number), dtype)
    return operand if operand.dtype == dtype else Cast(typing.unrounded(operand), dtype)


def joined(parts: Iterable[Expr], deciding: bool) -> Expr:
    """Returns conditions joined from the left by `and`, or by `or` if True decides.

    What follows a constant that decides is not asked for, and constants leave nothing behind.
    """
    whole: Expr | None = None
    for part in parts:
        if isinstance(part, Const):
            if part.value is deciding:
                return part
        else:
            op: BinaryOp = "lor" if deciding else "land"
            whole = part if whole is None else Binary(op, whole, part, "bool")
    return Const(not deciding, "bool") if whole is None else whole
