"""Waits among calls of programs, so that JAX has room for those that Python functions call.

A CPU of JAX takes 32 programs that have not ended; one more call waits for a place. Where programs
that wait for a Python function hold all places, and the function calls JAX, it waits forever. So a
call now and then waits for its result, and for all that its thread has called before: JAX runs the
programs of a thread in their order.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import Any

import jax
from jax._src import api
from jax._src.interpreters import pxla

_PLACES = 16
"""About how many programs have not ended; the functions of as many may call one more each."""

_left = 0
"""How many calls do not wait; of all threads, which may miscount it a little."""


def leave_room() -> None:
    """Has JAX call `_pace` after its calls of compiled programs, from now on.

    JAX does not in a thread that has left `jax.debug_nans`. While `jax_debug_nans` is on, JAX waits
    for each result itself.
    """
    hook = api._post_hook_state
    if hook.get_global() is None:
        hook.set_global(_pace)
        _pace_calls_without_hook()


@functools.cache
def _pace_calls_without_hook() -> None:
    """Has `_pace` called after programs that JAX calls in Python, without its hook.

    These are programs with effects, each first call, and all calls of a program whose first failed.
    """
    executable = getattr(pxla, "ExecuteReplicated", None)
    if executable is None:
        return
    execute = executable.__call__

    @functools.wraps(execute)
    def call(program: Any, *inputs: Any) -> Any:
        results = execute(program, *inputs)
        _pace(program, inputs, None, results)
        return results

    executable.__call__ = call


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
