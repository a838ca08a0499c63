"""Whether the elements of arrays exist that accesses touch."""

from __future__ import annotations

from collections.abc import Mapping

from msops._loops.ir.nodes import Buffer, Load, Store
from msops._loops.ir.ranges import Ranges, is_within, range_of
from msops._loops.ir.walk import loads


def exists(access: Load | Store, ranges: Ranges, buffers: Mapping[str, Buffer]) -> bool:
    """Returns whether an access is in range wherever these ranges hold, whatever is around it.

    Elements that its indices read exist there, too. Of arrays that are not among the buffers, as
    those of an iteration of a loop inside, this is not known.
    """
    buffer = buffers.get(access.buffer)
    if buffer is None:
        return not access.indices
    return all(
        is_within(range_of(index, ranges), (0, size - 1))
        and all(exists(load, ranges, buffers) for load in loads(index))
        for index, size in zip(access.indices, buffer.shape, strict=True)
    )
