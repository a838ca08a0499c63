"""How much memory an array takes."""

from __future__ import annotations

import math
from functools import cache

from msops._base.dtypes import as_dtype
from msops._loops.ir.nodes import Buffer


def size_bytes(buffer: Buffer) -> int:
    """Returns the size of a buffer as an array."""
    return math.prod(buffer.shape) * itemsize(buffer.dtype)


@cache
def itemsize(dtype: str) -> int:
    """Returns the bytes of an element."""
    return as_dtype(dtype).dtype.itemsize
