"""Making expressions: of a dtype that follows from their operands, and without what is trivial.

Products with 1 and sums with 0 are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeGuard

from msops._base.dtypes import as_dtype
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Binary,
    BinaryOp,
    Cast,
    Const,
    Expr,
    FunctionCall,
    Load,
    Store,
    Unary,
)
from msops._loops.ir.operators import FLOATS, result_dtype


def integer(value: int) -> Const:
    """Returns a constant of the dtype of loop variables."""
    return Const(value, INDEX_DTYPE)


def binary(op: BinaryOp, left: Expr, right: Expr) -> Binary:
    """Returns an operation on two expressions of one dtype, as it stands."""
    return Binary(op, left, right, result_dtype(op, left.dtype))


def element_of(store: Store) -> Load:
    """Returns the load of the element that a store writes."""
    return Load(store.buffer, store.indices, store.value.dtype)


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
    indices: Iterable[Expr],
    shape: Iterable[int],
    may_join: Callable[[Expr], bool] = lambda index: True,
) -> list[tuple[Expr, int]]:
    """Returns indices and sizes with neighbouring axes joined that are parts of one number.

    An element at [t // 3, t % 3] of an array of n x 3 is at [t] of one of 3 n.

    Args:
      indices: an index for each axis.
      shape: the sizes of the axes.
      may_join: whether some axes may be one with an index.
    """
    joined: list[tuple[Expr, int]] = []
    for axis in zip(indices, shape, strict=True):
        joined.append(axis)
        while len(joined) > 1 and (joint := _joint(*joined[-2:])) and may_join(joint[0]):
            joined[-2:] = [joint]
    return joined


def _joint(outer: tuple[Expr, int], inner: tuple[Expr, int]) -> tuple[Expr, int] | None:
    size = outer[1] * inner[1]
    match outer[0], inner[0]:
        case (
            Binary(op="floordiv", left=row, right=Const(value=each)),
            Binary(op="mod", left=whole, right=Const(value=by)),
        ) if whole == row and by == each == inner[1]:
            return whole, size
        case (
            Binary(
                op="mod",
                left=Binary(op="floordiv", left=row, right=Const(value=each)),
                right=Const(value=rows),
            ),
            Binary(op="mod", left=whole, right=Const(value=by)),
        ) if whole == row and by == each == inner[1]:
            return binary("mod", whole, Const(int(rows) * int(by), whole.dtype)), size
    return None


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
