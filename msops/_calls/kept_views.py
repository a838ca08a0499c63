"""Arrays over a program's memory that are still held when their call has ended.

The call fails, but its author's code goes on, and holds them. The native module gives them memory
of their own; here is how they are found. Arrays that numpy makes of another one, by slices or by
`reshape`, refer to it, but it does not know them: the whole process is searched. So do pointers of
`array.ctypes.data_as`. Memory that was passed on as a number, or to other objects of ctypes or
another library, is not found.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from msops import _native

_ALIASES = (np.ndarray, memoryview, ctypes._Pointer, ctypes.c_void_p, ctypes.c_char_p)


class Aliases(NamedTuple):
    """What uses the memory of views, each with the position of its view.

    Attributes:
      arrays: arrays.
      pointers: addresses of the memory in which a pointer of ctypes holds its value.
    """

    arrays: list[tuple[int, np.ndarray]]
    pointers: list[tuple[int, int]]


def find_aliases(views: Sequence[np.ndarray]) -> Aliases:
    """Returns what uses the memory of `views`.

    A memoryview of them is released: it fails from then on.
    """
    positions = {id(view): position for position, view in enumerate(views)}
    aliases = Aliases([], [])
    memoryviews: list[memoryview] = []
    # The objects of gc alone are not all: it does not know a tuple or a dict of arrays alone, nor
    # what `gc.freeze` took from it.
    roots = [gc.get_objects(), sys.modules, *_frames()]
    for value in _native.find_reachable(roots, _ALIASES):
        position = _position(value, positions)
        if position is None:
            continue
        if isinstance(value, memoryview):
            memoryviews.append(value)
        elif not isinstance(value, np.ndarray):
            if _points_into(value, views[position]):
                aliases.pointers.append((position, ctypes.addressof(value)))
        elif value is not views[position]:
            aliases.arrays.append((position, value))
    # An array over a memoryview holds its memory by it.
    bases = {id(array.base) for _, array in aliases.arrays}
    for value in memoryviews:
        if id(value) not in bases:
            _release(value)
    return aliases


def _position(value: Any, positions: dict[int, int]) -> int | None:
    """Returns the position of the view that lends its memory to `value`, if one does."""
    while value is not None:
        if id(value) in positions:
            return positions[id(value)]
        value = _lender_of(value)
    return None


def _lender_of(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.base
    try:
        return value.obj if isinstance(value, memoryview) else getattr(value, "_arr", None)
    except ValueError:  # released
        return None


def _points_into(pointer: Any, view: np.ndarray) -> bool:
    """Returns whether a pointer still has the address that it got with an array."""
    distance = (ctypes.cast(pointer, ctypes.c_void_p).value or 0) - view.ctypes.data
    return 0 <= distance <= view.nbytes


def _release(value: memoryview) -> None:
    try:
        value.release()
    except BufferError:  # something else over it needs it
        return


def _frames() -> Iterator[Any]:
    """Yields running frames but those of this file, and what their variables hold.

    What the variables of a running frame hold is not among what `gc` says that objects hold.
    """
    for frame in sys._current_frames().values():
        above: Any = frame
        while above is not None:
            if above.f_globals is not globals():
                yield above
                yield list(above.f_locals.values())
            above = above.f_back
