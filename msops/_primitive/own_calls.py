"""Calls of a Python function that are made while its first call runs, by a thread that it awaits.

JAX lets a second call of a program that it compiles wait for the end of the first one. If that is a
call of a Python function which waits for the thread of the second, both would wait forever; on one
thread, JAX reports it.
"""

from __future__ import annotations

import concurrent.futures
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import jax

from msops.errors import KernelError

_PAUSE_S = 0.01


class RunningCalls:
    """The calls of one compiled function that run now.

    Args:
      who: the op, for messages.

    Attributes:
      by_thread: each with `arrays`, and `calls_itself`, which may become true while it runs.
      known: types of the arrays of calls that succeeded by themselves: no call waits for another.
    """

    def __init__(self, who: str):
        self.by_thread: dict[int, SimpleNamespace] = {}
        self.known: set[tuple[Any, ...]] = set()
        self._who = who

    def await_first(self, arrays: Sequence[Any]) -> None:
        """Waits for first calls as JAX would, but not for one that waits for this thread.

        Raises:
          KernelError: there is such a call.
        """
        types = tuple(map(jax.typeof, arrays))
        if types in self.known:
            return
        for thread, call in tuple(self.by_thread.items()):
            if thread == threading.get_ident() or types != tuple(map(jax.typeof, call.arrays)):
                continue
            while self.by_thread.get(thread) is call and types not in self.known:
                if _awaits(thread, _awaited_objects()):
                    call.calls_itself = True
                    raise self.error()
                time.sleep(_PAUSE_S)

    def error(self) -> KernelError:
        """Returns the error of a call that calls itself: one each, as its frames hold arrays."""
        return KernelError.explained(
            self._who,
            "it is called inside its own call, by a thread that its function waits for",
            "If the function calls its op, have it call itself.",
        )


def _awaited_objects() -> list[Any]:
    """Returns what another thread may wait for, if it waits for this one."""
    frame: Any = sys._getframe()
    found: list[Any] = [threading.current_thread()]
    while frame is not None:
        item = frame.f_locals.get("self") if frame.f_code.co_name == "run" else None
        future = getattr(item, "future", None)
        if isinstance(future, concurrent.futures.Future):
            found.append(future)
        frame = frame.f_back
    return found


# The functions that wait, and what they wait for is their `self`.
_WAITS: tuple[Callable[..., Any], ...] = (threading.Thread.join, concurrent.futures.Future.result)


def _awaits(thread: int | None, objects: Sequence[Any]) -> bool:
    """Returns whether a thread waits for one of `objects`, or for a thread that does."""
    frame: Any = sys._current_frames().get(thread) if thread is not None else None
    codes = [function.__code__ for function in _WAITS]
    while frame is not None:
        if frame.f_code in codes:
            awaited = frame.f_locals.get("self")
            if any(awaited is one for one in objects):
                return True
            return isinstance(awaited, threading.Thread) and _awaits(awaited.ident, objects)
        frame = frame.f_back
    return False
