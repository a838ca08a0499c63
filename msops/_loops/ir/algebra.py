"""Building expressions that leave out what is trivial: products with 1, sums with 0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

from msops._base.dtypes import as_dtype
from msops._loops.ir.building import binary
from msops._loops.ir.nodes import Binary, Cast, Const, Expr, FunctionCall, Unary
from msops._loops.ir.operators import FLOATS


def number(value: float, dtype: str) -> Const:
    """Returns a constant of a float dtype."""
    return Const(float(value), dtype)


def is_number(expr: Expr, value: float) -> bool:
    """Returns whether an expression is a certain constant."""
    return isinstance(expr, Const) and expr.value == value


def is_power_of_2(expr: Expr) -> TypeGuard[Const]:
    """Returns whether an integer expression is a constant power of two."""
    return isinstance(expr, Const) and expr.value > 0 and int(expr.value).bit_count() == 1


def joined_axes(
    indices: tuple[Expr, ...], shape: tuple[int, ...]
) -> tuple[tuple[Expr, ...], tuple[int, ...]]:
    """Returns indices and shape with axes joined whose indices are the parts of one number.

    An element at [t // 3, t % 3] of an array of n x 3 is at [t] of one of 3 n.
    """
    if not indices:
        return indices, shape
    *outer, last = indices
    *sizes, size = shape
    while outer:
        match last, outer[-1]:
            case (
                Binary(op="mod", left=whole, right=Const(value=by)),
                Binary(op="floordiv", left=row, right=Const(value=each)),
            ) if whole == row and by == each == size:
                last = whole
            case (
                Binary(op="mod", left=whole, right=Const(value=by)),
                Binary(
                    op="mod",
                    left=Binary(op="floordiv", left=row, right=Const(value=each)),
                    right=Const(value=rows),
                ),
            ) if whole == row and by == each == size and rows == sizes[-1]:
                last = binary("mod", whole, Const(size * sizes[-1], whole.dtype))
            case _:
                break
        outer.pop()
        size *= sizes.pop()
    return (*outer, last), (*sizes, size)


LARGEST_WHOLE_POWER = 64
"""Constant whole exponents up to here become multiplications, which are exact at 0."""


def is_whole_power(expr: Expr) -> bool:
    """Returns whether an expression is a power of a float that array operations multiply out."""
    match expr:
        case Binary(op="pow", right=Const(value=by), dtype=dtype) if dtype in FLOATS:
            return float(by).is_integer() and abs(by) <= LARGEST_WHOLE_POWER
    return False


def call(function: str, *args: Expr) -> Expr:
    """Returns a function of expressions of one dtype."""
    return FunctionCall(function, args, args[0].dtype)


def neg(expr: Expr) -> Expr:
    """Returns -x; a minus already there is taken away."""
    match expr:
        case Const(value=value, dtype=dtype):
            return Const(-value, dtype)
        case Unary(op="neg", operand=operand):
            return operand
    return Unary("neg", expr, expr.dtype)


def add(left: Expr, right: Expr) -> Expr:
    """Returns x + y."""
    if is_number(left, 0):
        return right
    if is_number(right, 0):
        return left
    if isinstance(right, Unary) and right.op == "neg":
        return sub(left, right.operand)
    return binary("add", left, right)


def sub(left: Expr, right: Expr) -> Expr:
    """Returns x - y."""
    if is_number(right, 0):
        return left
    if is_number(left, 0):
        return neg(right)
    if isinstance(right, Unary) and right.op == "neg":
        return add(left, right.operand)
    return binary("sub", left, right)


def mul(left: Expr, right: Expr) -> Expr:
    """Returns x * y; a minus sign moves outwards, where a sum may absorb it."""
    if is_number(left, 1):
        return right
    if is_number(right, 1):
        return left
    if isinstance(left, Unary) and left.op == "neg":
        return neg(mul(left.operand, right))
    if isinstance(right, Unary) and right.op == "neg":
        return neg(mul(left, right.operand))
    return binary("mul", left, right)


def div(left: Expr, right: Expr) -> Expr:
    """Returns x / y."""
    if is_number(right, 1):
        return left
    if isinstance(left, Unary) and left.op == "neg":
        return neg(div(left.operand, right))
    return binary("div", left, right)


def cast(expr: Expr, dtype: str) -> Expr:
    """Returns the expression in a dtype."""
    if expr.dtype == dtype:
        return expr
    if isinstance(expr, Const) and expr.dtype in FLOATS:
        # Rules look for constants: a power of 2 is no power.
        return number(as_dtype(expr.dtype).dtype.type(expr.value), dtype)
    return Cast(expr, dtype)


def both(conditions: Iterable[Expr]) -> Expr:
    """Returns the conjunction of conditions; of none, true."""
    result: Expr | None = None
    for condition in conditions:
        result = condition if result is None else binary("land", result, condition)
    return Const(True, "bool") if result is None else result


def negation(condition: Expr) -> Expr:
    """Returns the opposite of a condition."""
    if isinstance(condition, Unary) and condition.op == "not":
        return condition.operand
    return Unary("not", condition, "bool")
