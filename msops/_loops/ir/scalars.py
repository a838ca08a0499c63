"""The semantics of the loop IR: every operation on single values, as Python functions.

Values are Python's: `bool`, `int` within the dtype's range, and for floats a numpy scalar of the
type that does the arithmetic: float64, or float32 for float32 and for the two 16-bit types, whose
results are rounded to 16 bits after each operation. Constant folding and the interpreter use the
same table; where Python's own operator does the same, the interpreter writes that. Callers silence
numpy's warnings (`np.errstate`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from msops._base.dtypes import as_dtype
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.operators import BITS, COMPARISONS, LOGICAL, is_float
from msops._loops.ir.ranges import dtype_range

Value: TypeAlias = Any
"""A bool, an int or a numpy float32 or float64 scalar."""


def zero(dtype: str) -> Value:
    """Returns what an element of a dtype is before it is written."""
    return constant(0, dtype)


def constant(value: bool | int | float, dtype: str) -> Value:
    """Returns a number as a value of a dtype."""
    return _rounding(dtype)(value) if is_float(dtype) else bool(value) if dtype == "bool" else value


def identity(op: str, dtype: str) -> bool | int | float:
    """Returns what one of the `REDUCIBLE` operations combines with any value to that value."""
    if is_float(dtype) and op in ("min", "max"):
        return math.inf if op == "min" else -math.inf
    least, greatest = (0, 1) if is_float(dtype) else dtype_range(dtype)
    ones = -1 if least < 0 else greatest
    number = {"mul": 1, "land": 1, "and": ones, "min": greatest, "max": least}.get(op, 0)
    return float(number) if is_float(dtype) else bool(number) if dtype == "bool" else number


def arithmetic_dtype(dtype: str) -> np.dtype[Any]:
    """Returns the numpy dtype whose scalars hold values of a dtype."""
    if is_float(dtype):
        return np.dtype("float64" if dtype == "float64" else "float32")
    return as_dtype(dtype).dtype


def unary(op: str, dtype: str) -> Callable[[Value], Value]:
    """Returns the function of a `Unary` operation on an operand of a dtype."""
    if op == "not":
        return operator.not_
    if op == "invert":
        return _wrapped(operator.invert, dtype)
    if op == "bits":
        own, other = (as_dtype(each).dtype.type for each in (dtype, BITS[dtype]))
        return lambda value: constant(own(value).view(other).item(), BITS[dtype])
    return operator.neg if is_float(dtype) else _wrapped(operator.neg, dtype)


def binary(op: str, dtype: str) -> Callable[[Value, Value], Value]:
    """Returns the function of a `Binary` operation on operands of a dtype.

    `land` and `lor` are here as functions of two values; who runs programs must not evaluate the
    right one where the left one decides.
    """
    if op in LOGICAL:
        return EXACT[op]
    if op in COMPARISONS:
        compare = EXACT[op]
        return (lambda a, b: bool(compare(a, b))) if is_float(dtype) else compare
    if is_float(dtype):
        return _rounded(_FLOAT_BINARY.get(op, EXACT[op]), dtype)
    if op in ("shl", "shr"):
        return _shift(op, dtype)
    return _integer_binary(op) if dtype == "bool" else _wrapped(_integer_binary(op), dtype)


def call(function: str, dtype: str) -> Callable[..., Value]:
    """Returns a function of `functions.FUNCTIONS` on arguments of a dtype."""
    row = FUNCTIONS[function]
    meaning = row.numpy
    if row.to_bool:
        return lambda *args: bool(meaning(*args))
    if is_float(dtype):
        # In float64, rounded once: what a kernel computes is compared with the exact result.
        return _rounded(lambda *args: meaning(*map(np.float64, args)), dtype)
    integer = as_dtype(dtype).dtype.type
    return lambda *args: int(meaning(*map(integer, args)))


def cast(source: str, target: str) -> Callable[[Value], Value]:
    """Returns the conversion from one dtype to another."""
    if target == "bool":
        return lambda a: bool(a != 0)
    if is_float(target):
        rounding = _rounding(target)
        if is_float(source):
            return rounding
        # numpy converts a 64-bit integer to float32 at once; by way of a Python int it would
        # round to float64 before.
        integer, arithmetic = as_dtype(source).dtype.type, arithmetic_dtype(target)
        return lambda a: rounding(integer(a).astype(arithmetic))
    return _saturate(target) if is_float(source) else _wrapped(int, target)


# Integers.


def _bits(dtype: str) -> int:
    return as_dtype(dtype).dtype.itemsize * 8


def _wrapped(exact: Callable[..., int], dtype: str) -> Callable[..., int]:
    """Returns a function of integers with its result wrapped into the range of a dtype."""
    (low, high), mask = dtype_range(dtype), (1 << _bits(dtype)) - 1

    def wrap(*args: int) -> int:
        result = exact(*args)
        return result if low <= result <= high else ((result - low) & mask) + low

    return wrap


def _shift(op: str, dtype: str) -> Callable[[int, int], int]:
    # A distance counts as unsigned, so a negative one is beyond the width.
    width = _bits(dtype)
    if op == "shl":
        return _wrapped(lambda a, b: a << b if 0 <= b < width else 0, dtype)
    return lambda a, b: a >> (b if 0 <= b < width else width)


def _saturate(dtype: str) -> Callable[[Value], int]:
    low, high = dtype_range(dtype)

    def convert(a: Value) -> int:
        if a != a:
            return 0
        return low if a <= low else high if a >= high else int(a)

    return convert


def _truncated_quotient(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _least(a: Any, b: Any) -> Any:
    """Returns the lesser number, NaN if one is, where Python's `min` goes by their order."""
    return a if a != a or a < b or _is_minus_zero(a, b) else b


def _greatest(a: Any, b: Any) -> Any:
    return a if a != a or a > b or _is_minus_zero(b, a) else b


def _is_minus_zero(a: Any, b: Any) -> bool:
    """Returns whether the first of equal numbers is -0: it is less than 0 for `min` and `max`."""
    return bool(a == b == 0 and np.signbit(a))


EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "truncdiv": _truncated_quotient,
    "truncmod": lambda a, b: a - b * _truncated_quotient(a, b),
    "pow": operator.pow,
    "min": _least,
    "max": _greatest,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "land": lambda a, b: a and b,
    "lor": lambda a, b: a or b,
    **{op: getattr(operator, op) for op in COMPARISONS},
}
"""Each operation on Python's numbers, which have no range; what Python raises for is an error."""


def _integer_power(a: int, b: int) -> int:
    """Returns the power modulo 2**64; a negative exponent gives the quotient truncated."""
    if b >= 0:
        return pow(a, b, 1 << 64)
    return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)


def _integer_binary(op: str) -> Callable[[int, int], int]:
    """Returns an operation on integers without a range, which gives 0 for a division by 0."""
    if op == "pow":
        return _integer_power
    exact = EXACT[op]
    if op in ("floordiv", "mod", "truncdiv", "truncmod"):
        return lambda a, b: exact(a, b) if b else 0
    return exact


# Floats.


def _rounding(dtype: str) -> Callable[[Value], Value]:
    """Returns the conversion of any number to a value of a float dtype."""
    if dtype in ("float32", "float64"):
        return as_dtype(dtype).dtype.type
    narrow = as_dtype(dtype).dtype.type
    return lambda a: np.float32(narrow(a))


def _rounded(function: Callable[..., Value], dtype: str) -> Callable[..., Value]:
    rounding = _rounding(dtype)
    if dtype == "float64":
        return function
    return lambda *args: rounding(function(*args))


# `operator.pow`, not `np.power`, which takes the root for an exponent of 1/2: a NaN of -inf.
_FLOAT_BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "min": _least,
    "max": _greatest,
}
