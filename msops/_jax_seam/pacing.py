"""Waits among calls of programs, so that JAX has room for those that Python functions call.

A CPU of JAX takes 32 programs that have not ended; one more call waits for a place. Where programs
that wait for a Python function hold all places, and the function calls JAX, it waits forever. So a
call now and then waits for its result, and for all that its thread has called before: JAX runs the
programs of a thread in their order.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import jax
from jax._src import api

_PLACES = 16
"""About how many programs have not ended; the functions of as many may call one more each."""

_left = 0
"""How many calls do not wait; of all threads, which may miscount it a little."""


def leave_room() -> None:
    """Has JAX call `_pace` after its calls of compiled programs, from now on.

    JAX does not after a program with effects, nor in a thread that has left `jax.debug_nans`. While
    `jax_debug_nans` is on, JAX waits for each result itself.
    """
    hook = api._post_hook_state
    if hook.get_global() is None:
        hook.set_global(_pace)


def _pace(program: Any, inputs: Any, attributes: Any, results: Any) -> None:
    global _left
    if _left > 0:
        _left -= 1
        return
    _left = _PLACES // threading.active_count() - 1
    for array in jax.tree.leaves(results)[:1]:
        # An error is that of whoever uses the result.
        with contextlib.suppress(Exception):
            array.block_until_ready()
