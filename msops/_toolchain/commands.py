"""Commands that run to their end, or are killed when Python is interrupted."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TypeVar

from msops.errors import BuildError

# How often it is looked whether a command that writes nothing has ended, or Python was interrupted;
# and how long a command's output may stay open after its end.
_LOOK_EVERY_MS = 200
_HELD_OPEN_S = 2.0

T = TypeVar("T")
R = TypeVar("R")


class _Commands:
    """The commands that threads have started for one caller, which kills them together."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self._were_killed = False
        self._lock = threading.Lock()

    def add(self, process: subprocess.Popen[bytes]) -> None:
        """Notes a command; kills it at once if it started after the others were killed."""
        with self._lock:
            self._processes.append(process)
            if self._were_killed:
                _kill(process)

    def kill(self) -> None:
        """Kills those that run, and each that a thread is about to start."""
        with self._lock:
            self._were_killed = True
            for process in self._processes:
                _kill(process)


class _OfThread(threading.local):
    """Where a thread notes the commands that it starts."""

    commands: _Commands | None = None


_of_thread = _OfThread()


def run_command(
    command: tuple[str, ...],
    folder: Path,
    environment: Mapping[str, str],
    echo: Callable[[str], None] | None,
) -> subprocess.CompletedProcess[str]:
    """Runs a command in `folder` without a shell; its outputs come back as one text.

    Args:
      echo: gets each line at once, if it is not None.

    Raises:
      BuildError: it ended, but left a process behind that holds its output open.
      OSError: it does not start.
    """
    run = functools.partial(_run, command, folder, environment, echo)
    if threading.current_thread() is not threading.main_thread():
        return run()
    # An interruption arrives in the main thread, even while that starts a command and does not yet
    # know which process it is.
    (done,) = map_in_threads(lambda task: task(), [run])
    return done


def _run(
    command: tuple[str, ...],
    folder: Path,
    environment: Mapping[str, str],
    echo: Callable[[str], None] | None,
) -> subprocess.CompletedProcess[str]:
    """Runs a command as `run_command` does, on the calling thread."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # What the command starts is in the group too, so that all of it can be killed.
        process_group=0,
    )
    if _of_thread.commands is not None:
        _of_thread.commands.add(process)
    lines = []
    with process:
        try:
            for line in _read_lines(process, command[0]):
                lines.append(line.decode("utf-8", "replace"))
                if echo is not None:
                    echo(lines[-1].rstrip("\n"))
        except BaseException:
            _kill(process)
            raise
    return subprocess.CompletedProcess(command, process.returncode, "".join(lines))


def map_in_threads(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Returns ``function`` of each of `items`, computed on as many threads as processors.

    The threads see the caller's context. An interruption kills the commands that they run.
    """
    commands = _Commands()
    context = contextvars.copy_context()

    def in_context(item: T) -> R:
        return context.copy().run(function, item)

    def prepare() -> None:
        _of_thread.commands = commands

    with ThreadPoolExecutor(os.cpu_count(), initializer=prepare) as pool:
        try:
            return [_result(future) for future in [pool.submit(in_context, item) for item in items]]
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            if isinstance(error, KeyboardInterrupt | SystemExit):
                commands.kill()
            raise


def _result(future: Future[R]) -> R:
    """Waits for what a thread computes."""
    # An interruption that arrives just before a wait does not end it, so no wait is long.
    while not future.done():
        wait([future], _LOOK_EVERY_MS / 1000)
    return future.result()


def _read_lines(process: subprocess.Popen[bytes], program: str) -> Iterator[bytes]:
    """Yields what a process writes, by lines, until nobody can write more."""
    assert process.stdout is not None
    poll = select.poll()
    poll.register(process.stdout, select.POLLIN)
    rest = b""
    latest_s: float | None = None
    while True:
        if poll.poll(_LOOK_EVERY_MS):
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line + b"\n" for line in lines)
        if latest_s is None and process.poll() is not None:
            latest_s = time.monotonic() + _HELD_OPEN_S
        if latest_s is not None and time.monotonic() > latest_s:
            raise BuildError.explained(
                program,
                "the command ended, but a process that it left behind holds its output open",
                "Let it wait for what it starts, or name another compiler with CC, CXX or "
                "CUDA_HOME.",
            )
    if rest:
        yield rest


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kills a command and what it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
