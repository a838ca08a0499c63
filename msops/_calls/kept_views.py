"""Arrays over a program's memory that are still held when their call has ended.

The call fails, but its author's code goes on, and holds them. The native module gives them memory
of their own; here is how they are found. Arrays that numpy makes of another one, by slices or by
`reshape`, refer to it, but it does not know them: the whole process is searched. Memory that was
passed on as a number, or to another library's objects, is not found.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


def find_aliases(views: Sequence[np.ndarray]) -> list[tuple[int, np.ndarray]]:
    """Returns the arrays that use the memory of `views`, each with the position of its view.

    A memoryview of them is released: it fails from then on.
    """
    positions = {id(view): position for position, view in enumerate(views)}
    arrays: list[tuple[int, np.ndarray]] = []
    memoryviews: list[memoryview] = []
    for value in _values_of_process():
        if not isinstance(value, (np.ndarray, memoryview)):
            continue
        position = _position(value, positions)
        if position is None:
            continue
        if isinstance(value, memoryview):
            memoryviews.append(value)
        elif value is not views[position]:
            arrays.append((position, value))
    # An array over a memoryview holds its memory by it.
    bases = {id(array.base) for _, array in arrays}
    for value in memoryviews:
        if id(value) not in bases:
            _release(value)
    return arrays


def _position(value: Any, positions: dict[int, int]) -> int | None:
    """Returns the position of the view that lends its memory to `value`, if one does."""
    while value is not None:
        if id(value) in positions:
            return positions[id(value)]
        value = value.base if isinstance(value, np.ndarray) else _object_of(value)
    return None


def _object_of(value: Any) -> Any:
    try:
        return value.obj if isinstance(value, memoryview) else None
    except ValueError:  # released
        return None


def _release(value: memoryview) -> None:
    try:
        value.release()
    except BufferError:  # something else over it needs it
        return


def _values_of_process() -> Iterator[Any]:
    """Yields what can be reached from the objects that gc knows, modules, and running functions.

    The objects of gc alone are not all: it does not know a tuple or a dict of arrays alone, nor
    what `gc.freeze` took from it.
    """
    seen: set[int] = set()
    waiting = [gc.get_objects(), sys.modules, *_frames()]
    while waiting:
        holder = waiting.pop()
        is_array = isinstance(holder, np.ndarray) and holder.dtype == object
        for value in holder.flat if is_array else gc.get_referents(holder):
            if id(value) not in seen:
                seen.add(id(value))
                waiting.append(value)
                yield value


def _frames() -> Iterator[Any]:
    for frame in sys._current_frames().values():
        above: Any = frame
        while above is not None:
            yield above
            above = above.f_back
