"""Operations on symbolic scalars, and Python's operators for them."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from msops._loops.frontends.spec import common_dtype
from msops._loops.frontends.tvm.dtypes import fold
from msops._loops.frontends.tvm.expr import (
    NOTHING,
    ConstExpr,
    ScalarExpr,
    Sources,
    as_expr,
    cast,
    const,
)
from msops._loops.frontends.tvm.tracing import value_error
from msops._loops.ir.nodes import Binary, BinaryOp, Select
from msops._loops.ir.operators import INTEGERS, is_float, result_dtype


def matched(name: str, left: Any, right: Any) -> tuple[ScalarExpr, ScalarExpr]:
    """Returns two operands in their common dtype, converted as TVM does it.

    Integers become the other operand's float, or the wider of two integers (signed if one is);
    floats of different width do not mix. A Python float takes the other float's dtype.
    """
    x = as_expr(left, like=right if isinstance(right, ScalarExpr) else None)
    y = as_expr(right, like=x)
    dtype = common_dtype(x.dtype, y.dtype)
    if dtype is None:
        raise value_error(
            name,
            f"cannot match type {x.dtype} vs {y.dtype}",
            f'Cast one of the two: x.astype("{y.dtype}") or y.astype("{x.dtype}").',
        )
    return cast(x, dtype), cast(y, dtype)


_INTEGER_OPS = ("and", "or", "xor", "shl", "shr", "truncdiv", "truncmod")
# What leaves an integer on its left as it is: indices stay short.
_NEUTRAL = {"add": 0, "sub": 0, "mul": 1, "floordiv": 1, "truncdiv": 1}
_BOOL_OPS = ("and", "or", "xor", "eq", "ne", "land", "lor")


def binary(op: BinaryOp, left: Any, right: Any) -> ScalarExpr:
    """Returns an operation of the loop IR on two operands, which are matched first."""
    x, y = matched(op, left, right)
    if x.dtype == "bool" and op not in _BOOL_OPS:
        x, y = x.astype("int32"), y.astype("int32")
    if op in _INTEGER_OPS and is_float(x.dtype):
        raise value_error(
            op,
            f"expected integers; got {x.dtype}",
            'Cast the operands first: x.astype("int32").',
        )
    if isinstance(x, ConstExpr) and isinstance(y, ConstExpr):
        number = fold(op, x.value, y.value, x.dtype)
        if number is not None:
            return const(number, result_dtype(op, x.dtype))
    if x.dtype in INTEGERS and op in _NEUTRAL:
        if isinstance(y, ConstExpr) and y.value == _NEUTRAL[op]:
            return x
        if isinstance(x, ConstExpr) and x.value == _NEUTRAL[op] and op in ("add", "mul"):
            return y
    return ScalarExpr(Binary(op, x.node, y.node, result_dtype(op, x.dtype)), union_of((x, y)))


def union_of(exprs: Iterable[ScalarExpr]) -> Sources:
    """Returns the tensors that any of the expressions reads."""
    return NOTHING.union(*(expr.sources for expr in exprs))


def true_divide(left: Any, right: Any) -> ScalarExpr:
    """Returns the quotient of floats; integers are an error, since `/` could mean two things."""
    x, y = matched("/", left, right)
    if not is_float(x.dtype):
        raise value_error(
            "/",
            f"the division of {x.dtype} by {y.dtype} is ambiguous",
            "Write // or tvm.floordiv to round down, tvm.truncdiv to round towards zero, or cast "
            "to a float.",
        )
    return binary("div", x, y)


def select(condition: Any, then: Any, otherwise: Any) -> ScalarExpr:
    """Returns one of two expressions, of which only the chosen one is evaluated."""
    test = as_condition("tvm.if_then_else", condition)
    x, y = matched("tvm.if_then_else", then, otherwise)
    if isinstance(test, ConstExpr):
        return x if test.value else y
    return ScalarExpr(Select(test.node, x.node, y.node, x.dtype), union_of((test, x, y)))


def as_condition(name: str, value: Any) -> ScalarExpr:
    """Returns a bool expression; integers hold where they are not 0."""
    expr = as_expr(value)
    if expr.dtype == "bool":
        return expr
    if expr.dtype in INTEGERS:
        return binary("ne", expr, 0)
    raise value_error(
        name,
        f"expected a condition; got a value of dtype {expr.dtype}",
        "Compare it: x > 0.0.",
    )


def as_index(name: str, value: Any) -> ScalarExpr:
    """Returns an integer expression to index or bound a loop with."""
    expr = as_expr(value)
    if expr.dtype in INTEGERS:
        return expr
    raise value_error(
        name,
        f"expected an integer; got a value of dtype {expr.dtype}",
        'Cast it: x.astype("int32").',
    )


Operator: TypeAlias = Callable[[Any, Any], ScalarExpr]

OPERATORS: dict[str, Operator] = {
    "add": functools.partial(binary, "add"),
    "sub": functools.partial(binary, "sub"),
    "mul": functools.partial(binary, "mul"),
    "truediv": true_divide,
    "floordiv": functools.partial(binary, "floordiv"),
    "mod": functools.partial(binary, "mod"),
    "lshift": functools.partial(binary, "shl"),
    "rshift": functools.partial(binary, "shr"),
    "and": functools.partial(binary, "and"),
    "or": functools.partial(binary, "or"),
    "xor": functools.partial(binary, "xor"),
}
"""Python's arithmetic operators, by the name of their method."""

COMPARISONS: dict[str, Operator] = {
    name: functools.partial(binary, name)  # type: ignore[arg-type]
    for name in ("lt", "le", "gt", "ge", "eq", "ne")
}
"""Python's comparisons, by the name of their method."""


def _is_operand(value: Any) -> bool:
    return isinstance(value, (ScalarExpr, numbers.Number, np.bool_))


def _define_operators() -> None:
    def method(operator: Operator, swapped: bool) -> Callable[[ScalarExpr, Any], Any]:
        def apply(self: ScalarExpr, other: Any) -> Any:
            if not _is_operand(other):
                return NotImplemented
            return operator(other, self) if swapped else operator(self, other)

        return apply

    for name, operator in OPERATORS.items():
        setattr(ScalarExpr, f"__{name}__", method(operator, swapped=False))
        setattr(ScalarExpr, f"__r{name}__", method(operator, swapped=True))
    for name, operator in COMPARISONS.items():
        setattr(ScalarExpr, f"__{name}__", method(operator, swapped=False))
    setattr(ScalarExpr, "equal", method(COMPARISONS["eq"], swapped=False))  # noqa: B010


_define_operators()
