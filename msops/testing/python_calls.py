"""Python functions called as programs call them: on another thread; and stopped in time."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import gc
import itertools
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import jax
import numpy as np

from msops import _jax_seam as seam
from msops._calls.host_function import HostFunction
from msops.errors import MsopsError
from msops.testing.child.files import files_of_calls, times_of_folders
from msops.testing.child.resources import growth_lines, process_resources
from msops.testing.guarded import HangError, Run, show, size_bytes
from msops.testing.other_inputs import is_real
from msops.testing.python_settings import SettingsWatch, lines_of_generators
from msops.testing.spent_time import Stopwatch

# Calls in a row, twice, or as many as this time lets, on a busy machine too.
_HALF, _IN_A_ROW_S = 50, 2.0
# How long threads call a function at once, and how often they take turns.
_TOGETHER_S, _SWITCH_S = 0.15, 1e-5
_BLOCKS = "blocks of Python's memory"
# So many by that many calls: other threads may free some meanwhile.
_KEPT = 40
_COLLECTIONS = 3
# NumPy's and Python's own caches fill within some hundred calls.
_ROUNDS = 6
# And a cache for numbers has filled after so many, each a little smaller.
_CACHED, _STEP = 2200, 2.0**-16
_COUNTED = ("open files", "threads", "timers", "keys of data of threads", _BLOCKS)
# Arrays up to this size NumPy keeps when they are free; and how many of each size are poisoned.
_SMALL_BYTES, _ARRAYS_OF_A_SIZE = 256, 3
_MORE_ELEMENTS = (-2, -1, 0, 1, 2)


def call_function(
    function: HostFunction,
    flat: Sequence[np.ndarray],
    structs: Sequence[jax.ShapeDtypeStruct],
    poison: int,
    watch: SettingsWatch,
    limit_s: float,
    title: str,
) -> Run:
    """Calls a function as the handler of a pyfunc does, over poisoned outputs.

    Raises:
      HangError: it did not end in time. It is stopped as soon as it runs Python code.
    """

    def work() -> Run:
        before, times = process_resources(), times_of_folders()
        with watch.calls():
            run = call_here(function, flat, structs, poison)
        after = process_resources()
        may_leave = any(after.get(name, 0) > before.get(name, 0) for name in _COUNTED)
        may_leave = may_leave or times_of_folders() != times
        return dataclasses.replace(run, may_leave=may_leave)

    return _in_time(work, limit_s, title)


def call_in_a_row(
    function: HostFunction,
    flat: Sequence[np.ndarray],
    structs: Sequence[jax.ShapeDtypeStruct],
    watch: SettingsWatch,
    limit_s: float,
    title: str,
    fails: bool = False,
) -> Run:
    """Calls a function many times on the same arrays; returns what that changed.

    Memory is counted in Python's blocks: it gives little back to the system. What `watch` saw in
    calls before counts, too: most functions that change a setting do so in the first.

    Args:
      function: what is called.
      flat, structs: its arrays, and shapes and dtypes of its results.
      watch: sees what calls change.
      limit_s: how long a call may take.
      title: of a call, for messages.
      fails: whether the function may raise, which then ends nothing.

    Raises:
      HangError: a call did not end in time.
    """

    def work() -> Run:
        seeding = lines_of_generators(lambda: call_here(function, flat, structs, 0))
        first = run = call_here(function, flat, structs, 0)
        growth = []
        made, differing, end_s = 1, 0, time.monotonic() + _IN_A_ROW_S
        with _without_collection(), watch.calls():
            for _ in range(2):
                before = _resources()
                for _ in range(_HALF):
                    if (run.error and not fails) or time.monotonic() > end_s:
                        break
                    run = call_here(function, flat, structs, 0)
                    made, differing = made + 1, differing + (run.outputs != first.outputs)
                after = _resources()
                growth.append({name: after.get(name, 0) - before.get(name, 0) for name in _COUNTED})
        files: list[str] = []
        kept: list[str] = []
        if (not run.error or fails) and time.monotonic() < end_s:
            files = files_of_calls(lambda: call_here(function, flat, structs, 0))
        if not run.error and all(part[_BLOCKS] >= _KEPT for part in growth):
            kept = _kept_lines(lambda: call_here(function, flat, structs, 0))
        if not (run.error or fails or kept):
            others = _other_numbers(flat)
            with contextlib.suppress(MsopsError):  # it does not take all of them
                kept = _kept_for_each(lambda: _outputs_of(function, next(others), structs))
        return Run(
            error="" if fails else run.error,
            calls=made,
            differing=differing,
            left=tuple(growth_lines(_without_blocks(growth), _HALF, made)),
            effects=(*seeding, *files, *kept),
        )

    run = _in_time(work, limit_s + 2 * _IN_A_ROW_S, title)
    return dataclasses.replace(run, left=(*watch.lines(), *run.left))


def call_on_threads(
    calls: Sequence[tuple[HostFunction, Sequence[np.ndarray], Sequence[jax.ShapeDtypeStruct]]],
    limit_s: float,
    title: str,
) -> Run:
    """Makes calls again and again, each on a thread of its own; returns how many came out unlike.

    Threads take turns as often as Python lets them.

    Raises:
      HangError: a call did not end in time.
    """

    def work() -> Run:
        expected = [_outputs_of(*call) for call in calls]
        made, differing, errors = [], [], []

        def repeat(number: int) -> None:
            end_s = time.monotonic() + _TOGETHER_S
            try:
                while time.monotonic() < end_s:
                    found = _outputs_of(*calls[number])
                    made.append(number)
                    if found != expected[number]:
                        differing.append(number)
            except MsopsError as error:
                errors.append(str(error))

        interval = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_S)
        try:
            with ThreadPoolExecutor(len(calls)) as pool:
                list(pool.map(repeat, range(len(calls))))
        finally:
            sys.setswitchinterval(interval)
        return Run(calls=len(made), differing=len(differing), error="".join(errors[:1]))

    return _in_time(work, limit_s + _TOGETHER_S, title)


def _outputs_of(
    function: HostFunction,
    flat: Sequence[np.ndarray],
    structs: Sequence[jax.ShapeDtypeStruct],
) -> list[bytes]:
    """Returns what comes of a call, as bytes, with as little else as can be."""
    outputs = tuple(np.zeros(s.shape, s.dtype) for s in structs)
    for index, output in function.inplace:
        outputs[output][...] = flat[index]
    result = function.call(tuple(array.copy() for array in flat), outputs)
    if result is not None:
        function.store(result, outputs[0])
    return [output.tobytes() for output in outputs]


def _resources() -> dict[str, int]:
    return {**process_resources(), _BLOCKS: sys.getallocatedblocks()}


def _without_blocks(growth: Sequence[dict[str, int]]) -> list[dict[str, int]]:
    """Returns what grew, but for memory: garbage is in it until Python collects that."""
    return [{name: n for name, n in part.items() if name != _BLOCKS} for part in growth]


def _kept_lines(call: Callable[[], object]) -> list[str]:
    """Reports memory that calls keep, of which nothing is garbage; a cache fills at last."""
    kept = 0
    for _ in range(_ROUNDS):
        for _ in range(_COLLECTIONS):  # what an object keeps is garbage behind it
            gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(_HALF):
            call()
        gc.collect()
        kept = sys.getallocatedblocks() - before
        if kept < _KEPT:
            return []
    return [f"{_BLOCKS}: {kept} more after {_HALF} calls"]


def _kept_for_each(call: Callable[[], object]) -> list[str]:
    """Reports memory that calls keep for all of many numbers: a cache may, if it fills at last."""
    end_s, watch = time.monotonic() + _IN_A_ROW_S, Stopwatch(os.getpid(), threading.get_native_id())
    least = float(_KEPT)
    for calls in (_HALF, _CACHED, _CACHED):
        for _ in range(_COLLECTIONS):
            gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(calls):
            call()
            if time.monotonic() > end_s and watch.read_s() > _IN_A_ROW_S:
                return []
        gc.collect()
        kept = sys.getallocatedblocks() - before
        if kept < least:
            return []
        least = kept / calls / 2 * _CACHED
    return [f"{_BLOCKS}: {kept} more after {_CACHED} calls, each with other numbers"]


def _other_numbers(flat: Sequence[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """Yields arrays of ever smaller floats; integers may be indices, and stay."""
    for number in itertools.count(1):
        factor = 1 - number * _STEP
        yield [(array * factor).astype(array.dtype) if is_real(array) else array for array in flat]


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Lets Python collect no garbage meanwhile: it would hide what calls keep."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _in_time(work: Callable[[], Run], limit_s: float, title: str) -> Run:
    """Returns what a function returns on another thread.

    Raises:
      HangError: it did not end in time.
    """
    outcome: Future[Run] = Future()
    watches: list[Stopwatch] = []  # made here, it would be memory that calls seem to keep
    is_wide = seam.x64_enabled()  # the setting may be of this thread alone

    def run() -> None:
        watches.append(Stopwatch(os.getpid(), threading.get_native_id()))
        try:
            with jax.enable_x64(is_wide):
                outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=run, name="opcheck", daemon=True)
    thread.start()
    left_s = limit_s
    while thread.is_alive() and left_s > 0:
        thread.join(left_s)
        left_s = limit_s - sum(watch.read_s() for watch in watches)
    if thread.is_alive():
        raise HangError(title, limit_s, _stop(thread))
    return outcome.result()


def call_here(
    function: HostFunction,
    flat: Sequence[np.ndarray],
    structs: Sequence[jax.ShapeDtypeStruct],
    poison: int,
) -> Run:
    """Calls a function on this thread, over poisoned outputs, however long that takes."""
    # Lists: of a tuple that a generator fills, Python keeps the memory, which would be counted.
    # NumPy computes numbers, not arrays, of arrays without axes.
    inputs = [np.array(array, order="C") for array in flat]
    outputs = [
        np.full(size_bytes(s), poison, np.uint8).view(s.dtype).reshape(s.shape) for s in structs
    ]
    _poison_free_memory([*inputs, *outputs], poison)
    for index, output in function.inplace:
        outputs[output][...] = inputs[index]
    views = [array.view() for array in inputs]
    for view in views:
        view.flags.writeable = False
    try:
        result = function.call(tuple(views), tuple(outputs))
        if result is not None:
            function.store(result, outputs[0])
    except MsopsError as error:
        return Run(error=str(error), raised=error)
    changed = [
        f"input {index}, {show(array)}"
        for index, (array, own) in enumerate(zip(inputs, flat, strict=True))
        if array.tobytes() != own.tobytes()
    ]
    return Run(changed=tuple(changed), outputs=(*map(np.ndarray.tobytes, outputs),))


def _poison_free_memory(arrays: Sequence[np.ndarray], poison: int) -> None:
    """Fills the memory that NumPy gives to arrays of such sizes next, and to small ones.

    So `np.empty` of a function holds another byte in each of two calls.
    """
    steps = {array.itemsize for array in arrays} or {1}
    sizes = {array.nbytes + n * array.itemsize for array in arrays for n in _MORE_ELEMENTS}
    small = range(min(steps), min(_SMALL_BYTES, 4 * max(sizes, default=0)), min(steps))
    for size in {*sizes, *small}:
        # All at once: one that is free again is the next that NumPy gives.
        _ = [np.full(max(size, 1), poison, np.uint8) for _ in range(_ARRAYS_OF_A_SIZE)]


def _stop(thread: threading.Thread) -> list[str]:
    """Raises an exception in a thread; returns where it was."""
    assert thread.ident is not None
    frame = sys._current_frames().get(thread.ident)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
    )
    if frame is None:
        return []
    where = traceback.extract_stack(frame)[-1]
    return [f"in {where.name}, {where.filename}, line {where.lineno}"]
