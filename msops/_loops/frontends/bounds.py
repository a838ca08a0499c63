"""Bounds of loops, which are int32 whatever the author counts in."""

from __future__ import annotations

from msops._loops.ir.nodes import INDEX_DTYPE, Binary, Cast, Const, Expr
from msops._loops.ir.ranges import dtype_range, range_of


def as_bound(value: Expr) -> Expr:
    """Returns an integer as a bound of a loop: the nearest int32."""
    least, greatest = dtype_range(INDEX_DTYPE)
    if isinstance(value, Const):
        return Const(min(max(int(value.value), least), greatest), INDEX_DTYPE)
    dtype = value.dtype
    if dtype == INDEX_DTYPE:
        return value
    low, high = range_of(value, {})
    if low < least:
        value = Binary("max", value, Const(least, dtype), dtype)
    if high > greatest:
        value = Binary("min", value, Const(greatest, dtype), dtype)
    return Cast(value, INDEX_DTYPE)
