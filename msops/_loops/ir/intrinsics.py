"""Operations and functions of the loop IR: one row each, with what they mean in numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
LOGICAL = ("land", "lor")

Domain = Literal["number", "integer", "float", "bool"]

BINARY: dict[str, tuple[str, Domain]] = {
    "add": ("+", "number"),
    "sub": ("-", "number"),
    "mul": ("*", "number"),
    # On floats only: the languages in front refuse `/` on integers.
    "div": ("/", "float"),
    # Towards minus infinity, as Python's; an integer divided by 0 gives 0, as numpy's.
    "floordiv": ("//", "number"),
    "mod": ("%", "number"),
    # Towards zero, as C's; by 0 they give 0, too.
    "truncdiv": ("truncdiv", "integer"),
    "truncmod": ("truncmod", "integer"),
    # Of an integer and a negative exponent: the quotient towards zero, and 0 for a base of 0.
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


@dataclass(frozen=True)
class Function:
    """A row of `FUNCTIONS`.

    Attributes:
      arity: number of arguments, all of one dtype.
      domain: what dtypes it takes; the result has the same, unless `to_bool`.
      to_bool: the result is a bool.
    """

    arity: int
    domain: Domain
    to_bool: bool = False


_FLOAT = Function(1, "float")

FUNCTIONS: dict[str, Function] = {
    **dict.fromkeys(
        (
            "sqrt", "rsqrt", "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p",
            "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
            "atanh", "erf", "sigmoid", "floor", "ceil", "trunc", "nearbyint", "round",
        ),
        _FLOAT,
    ),
    "abs": Function(1, "number"),
    # -1, 0 or 1 in the operand's dtype; NaN of NaN.
    "sign": Function(1, "number"),
    "atan2": Function(2, "float"),
    # Sign of the first argument, as C's.
    "fmod": Function(2, "float"),
    "isnan": Function(1, "float", to_bool=True),
    "isinf": Function(1, "float", to_bool=True),
    "isfinite": Function(1, "float", to_bool=True),
    "popcount": Function(1, "integer"),
}  # fmt: skip
"""Each `Call` function. `nearbyint` rounds halves to even, `round` away from zero, as C's."""

REDUCIBLE = ("add", "mul", "min", "max", "land", "lor", "and", "or", "xor")
"""Operations whose repeated updates may be reassociated."""

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = ("bool", *INTEGERS, *FLOATS)
"""The dtypes of the loop IR."""


def is_float(dtype: str) -> bool:
    """Tells whether a dtype of the IR is a floating point type."""
    return dtype in FLOATS


def result_dtype(op: str, operand: str) -> str:
    """Returns the dtype of a `Binary` operation on operands of a dtype."""
    return "bool" if op in COMPARISONS or op in LOGICAL else operand
