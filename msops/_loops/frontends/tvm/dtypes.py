"""Dtypes of TVM expressions: their names, what two become together, numbers folded."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from msops._base.dtypes import as_dtype as find_dtype
from msops._loops.frontends.tvm.tracing import type_error
from msops._loops.ir.intrinsics import DTYPES, INTEGERS, is_float, result_dtype
from msops.errors import MsopsError


def as_dtype(value: Any) -> str:
    """Returns the name of a dtype of the loop IR.

    Args:
      value: its name, or anything else that names one; ``"uint1"`` is TVM's name for bool.
    """
    if value == "uint1":
        return "bool"
    if isinstance(value, str) and value in DTYPES:
        return value
    try:
        name = find_dtype(value).name
    except MsopsError:
        name = ""
    if name in DTYPES:
        return name
    raise type_error(
        "tvm dtype",
        f"expected one of {', '.join(DTYPES)}; got {value!r}",
        "Name one of them.",
    )


def common_dtype(x: str, y: str) -> str | None:
    """Returns the dtype in which an operation is done; None if the two do not mix.

    Source: observed on the TVM of MindSpore 2.0.0.
    """
    if x == y:
        return x
    if is_float(x) or is_float(y):
        return None if is_float(x) and is_float(y) else (x if is_float(x) else y)
    if "bool" in (x, y):
        return y if x == "bool" else x
    bits = max(np.iinfo(x).bits, np.iinfo(y).bits)
    is_signed = not (x.startswith("u") and y.startswith("u"))
    return f"int{bits}" if is_signed else f"uint{bits}"


def _truncdiv(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


_FOLDED: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "min": min,
    "max": max,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "truncdiv": _truncdiv,
    "truncmod": lambda x, y: x - _truncdiv(x, y) * y,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "land": lambda x, y: x and y,
    "lor": lambda x, y: x or y,
}


def fold(op: str, x: Any, y: Any, dtype: str) -> bool | int | None:
    """Returns the value of an operation on two numbers, so that attributes can be shapes.

    None where the loop IR has to say what it is: floats round to their dtype, integers wrap.
    """
    if is_float(dtype) or op not in _FOLDED:
        return None
    if op in ("floordiv", "mod", "truncdiv", "truncmod") and y == 0:
        return None
    number = _FOLDED[op](x, y)
    if result_dtype(op, dtype) in INTEGERS:
        info = np.iinfo(dtype)
        if not info.min <= number <= info.max:
            return None
    return number
