"""Waits among calls of programs, so that JAX has room for those that Python functions call.

A CPU of JAX takes 32 programs that have not ended; one more call waits for a place. It has as many
threads as cores for programs that do not run in the thread that calls them, and for long copies.
Where all places or all threads are held for functions that call JAX, these wait forever.

`nesting` sees to programs of functions that are known to call JAX. A function may do so late, or
now and then: therefore a call of any program now and then waits for its result, and for all that
its thread has called before, as JAX runs the programs of a thread in their order. Half of the
places stay free.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from typing import Any

import jax
from jax._src import api

from msops._jax_seam import nesting

_PLACES = 16
"""About how many programs have not ended; the functions of as many may call one more each."""


def leave_room(new_hook: Callable[..., Callable[..., None]]) -> None:
    """Has JAX call a hook behind its calls of compiled programs, from now on.

    JAX does not in a thread that has left `jax.debug_nans`. While `jax_debug_nans` is on, JAX waits
    for each result itself.

    Args:
      new_hook: makes it, of what `pacing_hook` of the native module takes.
    """
    state = api._post_hook_state
    if state.get_global() is None:
        state.set_global(_hook(new_hook))


@functools.cache
def _hook(new_hook: Callable[..., Callable[..., None]]) -> Callable[..., None]:
    hook = new_hook(allow=_allow, wait=_wait, note=nesting.note)
    nesting.watch_calls(hook)
    return hook


def _allow() -> int:
    """Returns how many calls do not wait; of all threads."""
    return _PLACES // threading.active_count() - 1


def _wait(program: Any, inputs: Any, attributes: Any, results: Any) -> None:
    for array in jax.tree.leaves(results)[:1]:
        # An error is that of whoever uses the result.
        with contextlib.suppress(Exception):
            array.block_until_ready()
