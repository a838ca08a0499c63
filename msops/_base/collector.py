"""Python's garbage collector, which waits while a kernel is made."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

_lock = threading.Lock()
_waiting_for = 0
_was_enabled = False


@contextlib.contextmanager
def collector_waits() -> Iterator[None]:
    """Lets the collector of cycles wait for what runs inside, on any thread; then it goes on.

    A compiler makes a hundred thousand small objects that live, and the collector looks through
    them again and again, and through all that a program with JAX holds: a quarter of the time that
    passes take. What runs inside must end soon, as garbage of other threads waits, too.
    """
    global _waiting_for, _was_enabled
    with _lock:
        if _waiting_for == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _waiting_for += 1
    try:
        yield
    finally:
        with _lock:
            _waiting_for -= 1
            if _waiting_for == 0 and _was_enabled:
                _let_survivors_be_old()
                gc.enable()


def _let_survivors_be_old() -> None:
    """Makes all objects those of the oldest generation, none of which it looks through for that.

    The first collection of the youngest would look through all that a compiler has made and kept,
    an eighth of the time that passes take.
    """
    # Those that the program keeps from the collector stay so.
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
