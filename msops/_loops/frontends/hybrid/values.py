"""The values of expressions of the loop language, while a kernel is translated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    FunctionCall,
    Load,
    Select,
    Unary,
    Var,
)


@dataclass(frozen=True)
class WholeTensor:
    """A whole array; its elements are values, it is none."""

    buffer: Buffer


Value: TypeAlias = "Expr | WholeTensor | str | tuple[Value, ...]"
"""A scalar of the IR, a tensor, a dtype's name, or a tuple (shapes, indices, captured tuples)."""

EXPR = (Const, Var, Load, Unary, Binary, FunctionCall, Cast, Select)


def literal(value: bool | int | float) -> Const:
    """Returns a number as the language types it: int32, float32 or bool.

    A constant has no type of its own yet: beside an operand of another type it takes that one.
    """
    if isinstance(value, bool):
        return Const(value, "bool")
    return Const(value, "int32" if isinstance(value, int) else "float32")


def describe(value: Value) -> str:
    """Returns what a value is, for messages."""
    if isinstance(value, WholeTensor):
        what = "tensor" if value.buffer.shape else "scalar"
        return f"the {what} '{value.buffer.name}'"
    if isinstance(value, str):
        return f"the string {value!r}"
    if isinstance(value, tuple):
        return "a tuple"
    return named(value.dtype)


def named(dtype: str) -> str:
    """Returns a dtype with its article."""
    return f"{'an' if dtype.startswith('i') else 'a'} {dtype}"
