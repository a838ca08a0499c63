"""The operators, dtypes and sizes of the loop IR; its functions are in functions.py."""

from __future__ import annotations

import ast
import math
from functools import cache
from typing import Literal

from msops._base.dtypes import as_dtype
from msops._loops.ir.nodes import BinaryOp, Buffer

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
NEGATED: dict[str, BinaryOp] = {
    "eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "le": "gt", "gt": "le",
}  # fmt: skip
"""The comparison that holds where another one of integers does not."""
MIRRORED: dict[str, BinaryOp] = {
    "eq": "eq", "lt": "gt", "ge": "le", "le": "ge", "gt": "lt",
}  # fmt: skip
"""The comparison that holds where another one does with its sides exchanged."""
LOGICAL = ("land", "lor")
QUOTIENTS = ("floordiv", "mod", "truncdiv", "truncmod")

Domain = Literal["number", "integer", "float", "bool"]

BINARY: dict[str, tuple[str, Domain]] = {
    "add": ("+", "number"),
    "sub": ("-", "number"),
    "mul": ("*", "number"),
    # On floats only: the front ends reject `/` on integers.
    "div": ("/", "float"),
    # Towards minus infinity, as Python's; an integer divided by 0 gives 0, as numpy's.
    "floordiv": ("//", "number"),
    "mod": ("%", "number"),
    # Towards zero, as C's; by 0 they give 0, too.
    "truncdiv": ("truncdiv", "integer"),
    "truncmod": ("truncmod", "integer"),
    # Of an integer to a negative exponent, the quotient is rounded towards zero; 0 gives 0.
    "pow": ("pow", "number"),
    # NaN if one operand is, as numpy's.
    "min": ("min", "number"),
    "max": ("max", "number"),
    "and": ("&", "integer"),
    "or": ("|", "integer"),
    "xor": ("^", "integer"),
    # By the operand's width or more: 0, or for shr of a negative number -1.
    "shl": ("<<", "integer"),
    "shr": (">>", "integer"),
    # The right operand is not evaluated where the left one decides.
    "land": ("&&", "bool"),
    "lor": ("||", "bool"),
    "eq": ("==", "number"),
    "ne": ("!=", "number"),
    "lt": ("<", "number"),
    "le": ("<=", "number"),
    "gt": (">", "number"),
    "ge": (">=", "number"),
}
"""Each `Binary` operation: its sign in the text form, and what its operands are. Operations on
integers wrap; "number" and "integer" include bool only for eq, ne, and, or, xor."""


SYNTAX: dict[type[ast.operator | ast.cmpop], BinaryOp] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.Pow: "pow", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "shl", ast.RShift: "shr", ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt",
    ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
"""The operation of each operator and comparison of Python's syntax."""


PYTHON_SIGNS = {op: "**" if op == "pow" else sign for op, (sign, _) in BINARY.items()}
"""How Python writes each `Binary` operation."""


REDUCIBLE = ("add", "mul", "min", "max", "land", "lor", "and", "or", "xor")
"""Operations whose repeated updates may be reassociated."""

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = ("bool", *INTEGERS, *FLOATS)
"""The dtypes of the loop IR."""
BITS = {"float32": "int32", "float64": "int64", "int32": "float32", "int64": "float64"}
"""What `bits` of a dtype is: the number of another dtype that has the same bits."""


def is_float(dtype: str) -> bool:
    """Returns whether a dtype of the IR is a floating point type."""
    return dtype in FLOATS


def result_dtype(op: str, operand: str) -> str:
    """Returns the dtype of a `Binary` operation on operands of a dtype."""
    return "bool" if op in COMPARISONS or op in LOGICAL else operand


def size_bytes(buffer: Buffer) -> int:
    """Returns the size of a buffer as an array."""
    return math.prod(buffer.shape) * itemsize(buffer.dtype)


@cache
def itemsize(dtype: str) -> int:
    """Returns the bytes of an element."""
    return as_dtype(dtype).dtype.itemsize
