"""The Tensors by which a function is differentiated, while it runs.

MindSpore refuses to change such a leaf in place, because its own gradient would be lost. The values
are compared as objects: a differentiated function has tracers of its own.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any


class _Thread(threading.local):
    values: tuple[Any, ...] = ()


_thread = _Thread()


@contextlib.contextmanager
def differentiated_by(values: Sequence[Any]) -> Iterator[None]:
    """Makes `values` leaves inside the block, beside those of the blocks around it."""
    outer = _thread.values
    _thread.values = (*outer, *values)
    try:
        yield
    finally:
        _thread.values = outer


def is_leaf(value: Any) -> bool:
    """Returns whether a function of this thread is being differentiated by `value`."""
    return any(leaf is value for leaf in _thread.values)
