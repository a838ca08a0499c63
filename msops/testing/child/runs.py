"""A job: a kernel called once, on some threads, or many times in a row."""

from __future__ import annotations

import contextlib
import functools
import marshal
import signal
import threading
import time

from msops.testing.child.files import files_of_calls, times_of_folders
from msops.testing.child.frames import ChildFrame
from msops.testing.child.resources import growth_lines, process_resources
from msops.testing.child.settings import (
    changed_settings,
    effect_settings,
    open_descriptors,
    process_settings,
)

TYPE_CHECKING = False  # as type checkers know it, without the import of typing
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, BinaryIO

# Threads have to overlap even on a busy machine; an alarm stops them in the middle of kernels.
_ROUNDS, _CALLS_S, _BETWEEN_NAPS_S = 5, 0.16, 0.0002
_TIMED_CALLS, _LEAST_CALLS, _MOST_CALLS = 4, 4, 1 << 20
# A kernel that is so slow overlaps with itself in a single call.
_SLOW_S = 0.2
# Calls in which what each of them keeps shows: glibc may have as many free chunks of one size, less
# one or two, that count as taken. And how long one call may be for them.
_KEEPING, _QUICK_S = 9, 2e-4
# Calls of one kernel in a row, or as many as this time lets.
_IN_A_ROW, _IN_A_ROW_S = 200, 1.0


def run_once(kernel: Any, job: Mapping[str, Any], events: BinaryIO) -> dict[str, Any]:
    """Runs a kernel once on fresh memory; returns what it did to it."""
    frame = ChildFrame(kernel, job, job["inputs"])
    emit(events, "layout", [(buffer.address, buffer.size) for buffer in frame.buffers])
    start_s = time.perf_counter()
    seen = frame.run()
    is_quick = time.perf_counter() - start_s < _QUICK_S
    grown = job["again"] and is_quick and _grows(frame)
    frame.free()
    return {**seen, "grown": grown}


def _grows(frame: ChildFrame) -> bool:
    """Returns whether some calls take of the process what they do not give back."""
    before, times = process_resources(), times_of_folders()
    with contextlib.suppress(RuntimeError):
        frame.repeat(_KEEPING)
    has_grown = any(count > before[name] for name, count in process_resources().items())
    return has_grown or times_of_folders() != times


def run_on_threads(
    beside: Sequence[Any], kernel: Any, job: Mapping[str, Any], events: BinaryIO
) -> dict[str, Any]:
    """Runs a kernel on threads with unlike inputs; counts results unlike those of one.

    An event at each step shows that it goes on, and no step takes more than a few calls' time.

    Args:
      beside: the kernel, bound to the shapes of each run that the job has beside its own.
      kernel: the kernel, bound to the shapes of the job.
      job: the inputs.
      events: where they are written.
    """
    kernels, jobs = (kernel, *beside), (job, *job["beside"])
    frames = [
        ChildFrame(bound, own, own["inputs"]) for bound, own in zip(kernels, jobs, strict=True)
    ]
    alone = []
    for frame in frames:
        start_s = time.perf_counter()
        alone.append(frame.run())
        once_s = time.perf_counter() - start_s
        emit(events, "step", None)
    if any(run["error"] for run in alone):
        return {"calls": 0, "differing": 0, "error": None}
    calls = 1
    if once_s < _SLOW_S:
        start_s = time.perf_counter()
        try:
            frames[0].repeat(_TIMED_CALLS)
        except RuntimeError:  # it fails on one thread already
            return {"calls": 0, "differing": 0, "error": None}
        once_s = (time.perf_counter() - start_s) / _TIMED_CALLS
        calls = max(_LEAST_CALLS, min(_MOST_CALLS, int(_CALLS_S / len(frames) / once_s)))
    made = differing = 0
    errors: list[str] = []
    while not (differing or errors) and made < _ROUNDS * calls * len(frames):
        emit(events, "step", None)
        made += calls * len(frames)
        differing, errors = _race(frames, [run["outputs"] for run in alone], calls)
    for frame in frames:
        frame.free()
    return {"calls": made, "differing": differing, "error": errors[0] if errors else None}


def _race(
    frames: Sequence[ChildFrame], expected: Sequence[Sequence[bytes]], calls: int
) -> tuple[int, list[str]]:
    """Calls the kernel on all frames at once.

    Returns:
      After how many calls outputs were unlike, and the errors that ended a thread's calls.
    """
    barrier = threading.Barrier(len(frames))
    differing: list[int] = []
    errors: list[str] = []

    def work(frame: ChildFrame, outputs: Sequence[bytes]) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
        barrier.wait()
        try:
            differing.append(frame.repeat(calls, outputs))
        except RuntimeError as raised:
            errors.append(str(raised))

    threads = [
        threading.Thread(target=work, args=arguments)
        for arguments in zip(frames, expected, strict=True)
    ]
    signal.setitimer(signal.ITIMER_REAL, _BETWEEN_NAPS_S, _BETWEEN_NAPS_S)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    signal.setitimer(signal.ITIMER_REAL, 0)
    return sum(differing), errors


def run_in_a_row(
    settings: Mapping[str, Any],
    effects: Mapping[str, Any],
    kernel: Any,
    job: Mapping[str, Any],
    events: BinaryIO,
) -> dict[str, Any]:
    """Runs a kernel many times on one memory; returns what differed, and what it left behind.

    Args:
      settings, effects: those that the process had before any call.
    """
    frame = ChildFrame(kernel, job, job["inputs"])
    emit(events, "layout", [(buffer.address, buffer.size) for buffer in frame.buffers])
    seen = frame.run()
    emit(events, "step", None)
    fails = bool(job["fails"])
    made, half, differing, error, growth = 1, 0, 0, None if fails else seen["error"], []

    def repeat(calls: int, expected: Sequence[bytes] = ()) -> int:
        if not fails:
            return frame.repeat(calls, expected)
        for _ in range(calls):
            with contextlib.suppress(RuntimeError):
                frame.repeat(1)
        return 0

    files: list[str] = []
    try:
        start_s = time.perf_counter()
        repeat(_TIMED_CALLS)
        once_s = (time.perf_counter() - start_s) / _TIMED_CALLS
        made += _TIMED_CALLS
        half = max(_LEAST_CALLS, min(_IN_A_ROW, int(_IN_A_ROW_S / once_s)) // 2)
        # Twice without calls, as counting takes some bytes itself at first.
        for count in (0, 0, half, half):
            emit(events, "step", None)
            before = process_resources()
            differing += repeat(count, seen["outputs"]) if count else 0
            made += count
            after = process_resources()
            growth.append({name: number - before[name] for name, number in after.items()})
        growth = growth[2:]
        if once_s < _SLOW_S:
            emit(events, "step", None)
            files = files_of_calls(functools.partial(repeat, 1))
    except RuntimeError as raised:
        error = str(raised)
    after_all = {**process_settings(), **open_descriptors()}
    left = [*changed_settings(settings, after_all).values(), *growth_lines(growth, half, made)]
    changed_effects = [*changed_settings(effects, effect_settings()).values(), *files]
    frame.free()
    return {
        "calls": made,
        "differing": differing,
        "error": error,
        "left": left,
        "effects": changed_effects,
    }


def emit(events: BinaryIO, kind: str, value: Any) -> None:
    """Writes one event, so that it stays when the process ends."""
    marshal.dump((kind, value), events)
    events.flush()
