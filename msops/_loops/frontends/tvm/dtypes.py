"""Dtypes of TVM expressions: their names, what two become together, numbers folded."""

from __future__ import annotations

from typing import Any

import numpy as np

from msops._base.dtypes import as_dtype as find_dtype
from msops._loops.frontends.tvm.tracing import type_error
from msops._loops.ir.operators import COMPARISONS, DTYPES, INTEGERS, LOGICAL, is_float, result_dtype
from msops._loops.ir.scalars import EXACT
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


_FOLDED = (
    "add", "sub", "mul", "min", "max", "floordiv", "mod", "truncdiv", "truncmod",
    *COMPARISONS, *LOGICAL,
)  # fmt: skip


def fold(op: str, x: Any, y: Any, dtype: str) -> bool | int | None:
    """Returns the value of an operation on two numbers, so that attributes can be shapes.

    None where the loop IR has to say what it is: floats round to their dtype, integers wrap.
    """
    if is_float(dtype) or op not in _FOLDED:
        return None
    if op in ("floordiv", "mod", "truncdiv", "truncmod") and y == 0:
        return None
    number = EXACT[op](x, y)
    if result_dtype(op, dtype) in INTEGERS:
        info = np.iinfo(dtype)
        if not info.min <= number <= info.max:
            return None
    return number
