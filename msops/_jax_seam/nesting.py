"""Calls of programs whose Python functions call JAX: in the calling thread, a few at a time.

JAX runs a program with a Python function in the thread that calls it, if nothing that it needs is
pending. Else a thread of XLA's waits for the function; and once each of these waits for one, what
the functions call has none. So the caller waits before the call until nothing is pending.

Each such program holds one of JAX's places for programs until its function has returned, and so
does each that is called inside. So threads take turns if there are many.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax._src import pjit
from jax._src.interpreters import pxla
from jax._src.lib import _jax

from msops._jax_seam.values import ARRAY_TYPE

_PLACES = 31
"""How many programs may hold places; the last one is for what the functions call."""

_PATIENCE_S = 60.0
"""How long a call waits for its turn; functions may themselves wait for another thread's call."""


class HeldFunction:
    """A Python function that programs hold and call.

    Attributes:
      calls_jax: whether it has called a program of JAX; None before its first call.
    """

    calls_jax: bool | None = None


def watch_calls(hook: Callable[..., None]) -> None:
    """Sees to programs that JAX calls in Python, and has a hook called after them.

    JAX does not call its own hook there. These are programs with effects, each first call, all
    calls of a program whose first failed, and, from now on, those of functions that call JAX.
    """
    executable = getattr(pxla, "ExecuteReplicated", None)
    if executable is None:
        return
    execute, find_fast_way = executable.__call__, pjit._get_fastpath_data

    @functools.wraps(execute)
    def call(program: Any, *inputs: Any) -> Any:
        for each in program.keepalive or ():
            if isinstance(each, HeldFunction) and each.calls_jax is not False:
                results = _call_in_turn(execute, program, inputs)
                break
        else:
            results = execute(program, *inputs)
        hook(program, inputs, None, results)
        return results

    @functools.wraps(find_fast_way)
    def find(executable: Any, *args: Any, **keywords: Any) -> Any:
        program = getattr(executable, "unsafe_call", None)
        for each in getattr(program, "keepalive", None) or ():
            if isinstance(each, HeldFunction) and each.calls_jax:
                return None
        return find_fast_way(executable, *args, **keywords)

    executable.__call__ = call
    pjit._get_fastpath_data = find


def note(call: Any) -> None:
    """Notes that a function calls JAX; `call` is the method that programs call."""
    function: HeldFunction = call.__self__
    was_called = function.calls_jax is False
    function.calls_jax = True
    if was_called:
        # JAX finds the programs again, and their fast way no more.
        _jax.PjitFunctionCache.clear_all()


def _call_in_turn(execute: Callable[..., Any], program: Any, inputs: Sequence[Any]) -> Any:
    """Calls a program by `execute`, in this thread, when it may and nothing is pending."""
    if any(type(value) is not ARRAY_TYPE for value in inputs):
        inputs = _on_device(program, inputs)
    # A program runs behind those that its thread called before, and so does this one.
    for value in (*inputs, _nothing()()):
        # An error is that of whoever uses the array.
        with contextlib.suppress(Exception):
            value.block_until_ready()
    try:
        return _turns.take(execute, program, inputs)
    finally:
        for each in program.keepalive:
            if isinstance(each, HeldFunction) and each.calls_jax is None:
                each.calls_jax = False


def _on_device(program: Any, inputs: Sequence[Any]) -> Sequence[Any]:
    """Returns inputs as JAX would copy them to the program's device, some on XLA's threads."""
    if program.mut:
        return inputs
    kept = sorted(program.kept_var_idx)
    moved = dict(zip(kept, program.in_handler([inputs[i] for i in kept]), strict=True))
    return [moved.get(i, value) for i, value in enumerate(inputs)]


@functools.cache
def _nothing() -> Callable[[], jax.Array]:
    return jax.jit(lambda: jnp.zeros(()))


class _Turns:
    """How many threads call such programs, and how deep inside each other."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._threads = 0
        self._deepest = 1
        self._own = threading.local()

    def take(self, execute: Callable[..., Any], program: Any, inputs: Sequence[Any]) -> Any:
        """Calls a program when few enough threads call some; inside of a function, at once."""
        depth = getattr(self._own, "depth", 0)
        with self._changed:
            if depth == 0:
                self._changed.wait_for(self._is_free, _PATIENCE_S)
                self._threads += 1
            self._deepest = max(self._deepest, depth + 1)
        self._own.depth = depth + 1
        try:
            return execute(program, *inputs)
        finally:
            self._own.depth = depth
            if depth == 0:
                with self._changed:
                    self._threads -= 1
                    self._changed.notify()

    def _is_free(self) -> bool:
        # Functions of functions may be found to call JAX only now.
        return self._threads < _PLACES // (self._deepest + 1)


_turns = _Turns()
