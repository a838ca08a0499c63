"""What the process does that runs kernels: it forks for each folder of jobs.

Standard input names folders, a line of hexadecimal digits each. For each folder it forks, and
writes to standard output a plus with the number of that process, and then how it ended.
`msops.testing.guarded` has written ``jobs`` into the folder, and reads back ``events`` (marshalled
one after the other), ``fault`` (what fault_report.h writes) and ``errors`` (what came to standard
error).
"""

from __future__ import annotations

import contextlib
import functools
import importlib.machinery
import importlib.util
import marshal
import os
import signal
import sys

from msops.testing.child.buffers import TooLargeError
from msops.testing.child.libc import LIBC
from msops.testing.child.runs import emit, run_in_a_row, run_on_threads, run_once
from msops.testing.child.settings import (
    changed_settings,
    effect_settings,
    open_descriptors,
    process_settings,
    set_unusual,
)

TYPE_CHECKING = False  # as type checkers know it, without the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, BinaryIO, NoReturn

_PR_SET_PDEATHSIG = 1
# What the process that forks waits for: the end of a fork, and to be asked to end it.
_WAITED_FOR = (signal.SIGCHLD, signal.SIGTERM)


def load_native(path: str) -> Any:
    """Imports msops's C++ module alone."""
    loader = importlib.machinery.ExtensionFileLoader("msops._native", path)
    spec = importlib.util.spec_from_file_location("msops._native", path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def bind(native: Any, job: Mapping[str, Any]) -> Any:
    """Opens a job's library and returns the kernel, bound to the job's shapes."""
    native.register_library(*job["library"])
    return getattr(native, job["kind"])(**job["call"])


def ask(native: Any, job: Mapping[str, Any]) -> None:
    """Asks a job's library for the shapes of its outputs, whatever it answers."""
    call = job["call"]
    native.register_library(*job["library"])
    asked = (call["library"], call["symbol"], call["shapes"], call["dtypes"], call["attributes"])
    with contextlib.suppress(RuntimeError):
        native.infer_shape(*asked, False)


def run_jobs(folder: str) -> None:
    """Runs the jobs of a folder."""
    with open(os.path.join(folder, "jobs"), "rb") as file:
        native_path, watched, jobs = marshal.load(file)
    native = load_native(native_path)
    with (
        open(os.path.join(folder, "fault"), "wb") as fault,
        open(os.path.join(folder, "events"), "ab") as events,
    ):
        # The alarm is for the threads that run kernels.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        native.nap_on_signal(signal.SIGALRM)
        if watched:
            native.report_faults(fault.fileno())
        set_unusual()
        settings: dict[str, Any] = {}
        effects: dict[str, Any] = {}
        for job in jobs:
            emit(events, "start", None)
            if job["infers"]:
                ask(native, job)
                emit(events, "refused", "")
                continue
            try:
                kernel = bind(native, job)
                beside = [bind(native, other) for other in job["beside"]]
            except RuntimeError as raised:
                emit(events, "refused", str(raised))
                continue
            settings = settings or {**process_settings(), **open_descriptors()}
            effects = effects or effect_settings()
            run: Callable[[Any, Mapping[str, Any], BinaryIO], dict[str, Any]] = run_once
            if beside:
                run = functools.partial(run_on_threads, beside)
            elif job["in_a_row"]:
                run = functools.partial(run_in_a_row, settings, effects)
            try:
                result = run(kernel, job, events)
            except TooLargeError as raised:  # a workspace may grow as the square of an extent
                emit(events, "refused", str(raised))
                continue
            emit(events, "done", result)
        after = {**process_settings(), **open_descriptors()} if settings else settings
        if changed_settings(settings, after):
            emit(events, "changed", None)


def run_fork(folder: str) -> NoReturn:
    """Runs the jobs of a folder in a process that has just been forked, and ends it."""
    os.setsid()
    # Not /dev/null: a kernel that redirects a stream there would change nothing that shows. A write
    # to /dev/zero goes nowhere, too.
    for number, path, flags in (
        (0, os.path.join(folder, "input"), os.O_RDONLY | os.O_CREAT),
        (1, "/dev/zero", os.O_WRONLY),
        (2, os.path.join(folder, "errors"), os.O_WRONLY | os.O_CREAT),
    ):
        file = os.open(path, flags)
        os.dup2(file, number)
        os.close(file)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAITED_FOR)
    try:
        run_jobs(folder)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)  # what the kernel's library does at exit is not checked, and may hang


def wait_for_end(pid: int) -> int:
    """Waits until a fork has ended, or until SIGTERM asks to end it; returns its exit status."""
    signal_number = 0
    while signal_number != signal.SIGTERM:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            break
        signal_number = signal.sigwait(_WAITED_FOR)
    # Before it is reaped: then its number may be that of another process, or of a group.
    for end in (os.kill, os.killpg):  # processes of the kernel's, too
        with contextlib.suppress(ProcessLookupError):
            end(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> None:
    """Forks for each folder that standard input names; answers with its number and exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a parent that ignores it leaves it ignored
    signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED_FOR)
    # Where opcheck itself is killed, nobody else ends a kernel that does not end.
    LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    for line in sys.stdin.buffer:
        while signal.SIGTERM in signal.sigpending():  # meant for the fork before, which had ended
            signal.sigwait(_WAITED_FOR)
        pid = os.fork()
        if not pid:
            run_fork(os.fsdecode(bytes.fromhex(line.decode())))
        os.write(1, b"+%d\n" % pid)
        os.write(1, b"%d\n" % wait_for_end(pid))
