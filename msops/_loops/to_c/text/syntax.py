"""Small parts of C text: signs, literals, offsets, the C side of a dtype."""

from __future__ import annotations

import math

import numpy as np

from msops._loops.ir.nodes import Binary, Cast, Expr, Unary, Var
from msops._loops.ir.operators import is_float, itemsize
from msops._loops.ir.ranges import dtype_range

ROUNDED = ("float16", "bfloat16")
"""Dtypes that are computed in float."""

SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^",
    "land": "&&", "lor": "||", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip


def bare(text: str) -> str:
    """Returns an expression without parentheses around the whole of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[1:-1] if position == len(text) - 1 else text
    return text


def short_name(dtype: str) -> str:
    """Returns a dtype's part in the names of helpers: i32, u8, f64, bf16, b."""
    letters = dtype.rstrip("0123456789")
    short = {"bool": "b", "int": "i", "uint": "u", "float": "f", "bfloat": "bf"}[letters]
    return short + dtype[len(letters) :]


def has_variable(expr: Expr) -> bool:
    """Returns whether a loop variable is in an expression, outside of its loads."""
    match expr:
        case Var():
            return True
        case Binary(left=left, right=right):
            return has_variable(left) or has_variable(right)
        case Unary(operand=operand) | Cast(operand=operand):
            return has_variable(operand)
    return False


def compares_indices(comparison: Binary) -> bool:
    """Returns whether a comparison is one of int64_t index expressions."""
    dtype = comparison.left.dtype
    # An int64_t holds every value of the other integer dtypes.
    return not is_float(dtype) and dtype != "uint64" and has_variable(comparison)


def offset(indices: tuple[str, ...], shape: tuple[int, ...]) -> str:
    """Returns the offset of an element in row-major order.

    Args:
      indices: the indices, of type int64_t.
      shape: the shape of the array.
    """
    strides = (math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    terms = [
        index if by == 1 else f"{index} * {by}"
        for index, by in zip(indices, strides, strict=True)
        if index != "0"
    ]
    return " + ".join(terms) or "0"


def computed(dtype: str) -> str:
    """Returns the float dtype in which values of a float dtype are computed."""
    return "float32" if dtype in ROUNDED else dtype


def width(dtype: str) -> int:
    """Returns the bits of a dtype."""
    return itemsize(dtype) * 8


def signedness(dtype: str) -> str:
    """Returns the ending for the sign of an integer dtype in the names of helpers."""
    return "unsigned" if dtype_range(dtype)[0] == 0 else "signed"


def division_sign(op: str) -> str:
    """Returns C's operator for a division or a remainder."""
    return "/" if op.endswith("div") else "%"


def float32_text(value: float) -> str:
    """Returns the shortest text that reads as this float32, with a point or an exponent."""
    text = str(np.float32(value))
    return text if "." in text or "e" in text else f"{text}.0"
