"""What a translation depends on: shapes and dtypes of arguments, and what two dtypes give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from msops._loops.ir.operators import is_float


@dataclass(frozen=True)
class Spec:
    """Shape and dtype of a tensor; the dtype is one of `operators.DTYPES`."""

    shape: tuple[int, ...]
    dtype: str


def common_dtype(x: str, y: str) -> str | None:
    """Returns the dtype that TVM converts two operands to; None if the two do not mix.

    Source: AKG (TVM 0.6), ``BinaryOpMatchTypes``; observed on the TVM of MindSpore 2.0.0.
    """
    if x == y:
        return x
    if is_float(x) or is_float(y):
        return None if is_float(x) and is_float(y) else (x if is_float(x) else y)
    if "bool" in (x, y):
        return y if x == "bool" else x
    bits = max(np.iinfo(x).bits, np.iinfo(y).bits)
    is_unsigned = x.startswith("u") and y.startswith("u")
    return f"{'u' if is_unsigned else ''}int{bits}"
