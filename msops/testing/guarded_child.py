"""Runs kernels on guarded memory; a process of its own, since a wrong kernel crashes it.

Run as ``python -I -S guarded_child.py`` by `msops.testing.child_processes`, which names folders on
its standard input, a line of hexadecimal digits each. For each folder it forks, and writes to
standard output how the fork ended. `msops.testing.guarded` has written ``jobs`` into the folder,
and reads back ``events`` (marshalled one after the other), ``fault`` (what fault_report.h writes)
and ``errors`` (what came to standard error). This file imports neither JAX nor msops nor numpy: it
runs under the sanitizers. As it runs without the package, all of it is in one file.

A buffer lies so, the guards being pages that can be neither read nor written:

    guard | canaries | the buffer | canaries | guard

Which end lies at a guard is the run's placement. Outputs and workspaces are poisoned; so a byte
that keeps the poison of two runs with unlike poisons has never been written.
"""

from __future__ import annotations

import binascii
import contextlib
import ctypes
import fcntl
import functools
import importlib.machinery
import importlib.util
import itertools
import marshal
import mmap
import os
import resource
import signal
import sys
import threading
import time

TYPE_CHECKING = False  # as type checkers know it, without the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, BinaryIO, NoReturn

_PAGE = mmap.PAGESIZE
# Wide enough for an index that is off by a row of a large array, or that 32 bits do not hold;
# address space costs nothing. Where that is limited, less has to do.
_GUARDS = (1 << 32, 4096 * _PAGE)
_PROT_NONE = 0

# Threads have to overlap even on a busy machine; an alarm stops them in the middle of kernels.
_ROUNDS, _ROUND_S, _BETWEEN_NAPS_S = 5, 0.08, 0.0002
_TIMED_CALLS, _LEAST_CALLS, _MOST_CALLS = 4, 4, 1 << 20
# A kernel that is so slow overlaps with itself in a single call.
_SLOW_S = 0.2

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.malloc.restype = ctypes.c_void_p
_libc.malloc.argtypes = [ctypes.c_size_t]
_libc.free.argtypes = [ctypes.c_void_p]
_libc.setlocale.restype = ctypes.c_char_p
_libc.setlocale.argtypes = [ctypes.c_int, ctypes.c_char_p]
_libc.initstate.restype = ctypes.c_void_p
_libc.initstate.argtypes = [ctypes.c_uint, ctypes.c_void_p, ctypes.c_size_t]
_libc.setstate.argtypes = [ctypes.c_void_p]
_libc.seed48.restype = ctypes.POINTER(ctypes.c_ushort * 3)
_libm = ctypes.CDLL("libm.so.6")

# Calls of one kernel in a row, or as many as this time lets.
_IN_A_ROW, _IN_A_ROW_S = 200, 1.0
_PAGES = "pages of address space"
_HEAP = "bytes of the heap"
# By one call. glibc's smallest chunk has 32 bytes; Python itself keeps some bytes now and then.
_LEAST_GROWTH = {_HEAP: 16}

# What the process that forks waits for: the end of a fork, and to be asked to end it.
_WAITED_FOR = (signal.SIGCHLD, signal.SIGTERM)

# Rounds in which files are looked at before and after a call, and the least time between two of
# them, in which other processes write theirs. File systems tell times apart that are some ms apart.
_LOOKS_AT_FILES, _BETWEEN_LOOKS_S = 6, 0.01
# Files of a folder of which each is asked when it changed.
_FULL = 1000
# Bytes of the state of rand() by its kind; that is the state's first number, modulo 5.
_RANDOM_BYTES = (8, 32, 64, 128, 256)

# A seed and a mask that no kernel sets, and signals that Python, or a shell, has ignored.
_SEED, _UMASK = 20_231, 0o027
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT)

# A flag of glibc's struct FILE: without a buffer. With one for a line it begins on a terminal.
_BUFFERING = 0x2

# Names of settings.
_CHILDREN = "the child processes"
ENVIRONMENT = "the environment variable"
_DESCRIPTOR = "the descriptor"
# Numbers of prctl that read a setting, and the setting.
_PROCESS_OPTIONS = {
    3: "whether the process leaves core dumps",
    30: "how late timers may be",
    7: "whether capabilities are kept",
    39: "whether new privileges are denied",
}
# Lines of /proc/self/status that no process changes by itself, and files with one setting each.
_STATUS = (
    *("Umask", "VmLck", "THP_enabled", "CapEff", "Seccomp", "Seccomp_filters"),
    "Mems_allowed_list",
)
_FILES_OF_SETTINGS = ("personality", "oom_score_adj", "coredump_filter")


class GuardedBuffer:
    """Memory between two guards.

    Args:
      size: bytes of the buffer.
      placement: "front" (the buffer begins at a guard), "back" (it ends at a guard, but for what
        its alignment leaves), "odd 64" or "odd 16" (likewise, but it begins at an odd multiple of
        so many bytes).
      alignment: of the start in bytes, for "back".
      is_far: whether, for "front" and "back", a page of canaries lies before that guard.
      fill: the value of canary bytes.
    """

    def __init__(self, size: int, placement: str, alignment: int, is_far: bool, fill: int):
        # One page more than the buffer needs, for canaries on the side without a guard.
        self._body_size = -(-size // _PAGE) * _PAGE + _PAGE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        for guard in _GUARDS:
            self._mapped = 2 * guard + self._body_size
            base = _libc.mmap(None, self._mapped, _PROT_NONE, flags, -1, 0)
            if base not in (None, ctypes.c_void_p(-1).value):
                break
        else:
            raise MemoryError(f"no address space for a buffer of {size} bytes")
        self._base, self._body = base, base + guard
        if _libc.mprotect(self._body, self._body_size, mmap.PROT_READ | mmap.PROT_WRITE):
            raise MemoryError(f"no memory for a buffer of {size} bytes")
        ctypes.memset(self._body, fill, self._body_size)
        self.size, self._fill = size, fill
        end = self._body + self._body_size
        room = _PAGE if is_far else 0
        self.address = {
            "front": self._body + room,
            "back": (end - room - size) // alignment * alignment,
            "odd 64": (end - size - 64) // 128 * 128 + 64,
            "odd 16": (end - size - 16) // 32 * 32 + 16,
        }[placement]
        self.slack = end - self.address - size

    def damage(self) -> tuple[int, int, int, int] | None:
        """Returns the size, and of bad canaries first and last offset from the start, and count."""
        head = self.address - self._body
        body = ctypes.string_at(self._body, self._body_size)
        canary = bytes([self._fill])
        around = body[:head], body[head + self.size :]
        if all(part.count(canary) == len(part) for part in around):
            return None
        offsets = [index - head for index, byte in enumerate(around[0]) if byte != self._fill]
        offsets += [self.size + i for i, byte in enumerate(around[1]) if byte != self._fill]
        return self.size, offsets[0], offsets[-1], len(offsets)

    def lock(self) -> None:
        """Makes the buffer one that can only be read."""
        _libc.mprotect(self._body, self._body_size, mmap.PROT_READ)

    def free(self) -> None:
        """Gives the memory back."""
        _libc.munmap(self._base, self._mapped)


class HeapBuffer:
    """Memory of malloc, whose ends the address sanitizer watches."""

    slack = 0

    def __init__(self, size: int):
        self.size = size
        self.address = _libc.malloc(size)

    def damage(self) -> None:
        """Returns None: the sanitizer says what it saw itself."""

    def free(self) -> None:
        """Gives the memory back."""
        _libc.free(self.address)


class ChildFrame:
    """The memory of one call: inputs, poisoned outputs, poisoned workspaces."""

    def __init__(self, kernel: Any, job: Mapping[str, Any], inputs: Sequence[bytes]):
        self._kernel, self._inputs, self._has_aliases = kernel, inputs, bool(job["aliases"])
        self.buffers: list[Any] = []

        def add(size: int) -> Any:
            index, placement, far = len(self.buffers), job["placement"], job["far"]
            # Unlike in every buffer: a kernel may copy canaries of one over those of another.
            fill = job["poison"] ^ 0x3C ^ (0x11 * index & 0xFF)
            is_far = far is None or index in far
            self.buffers.append(
                HeapBuffer(size)
                if placement == "heap"
                else GuardedBuffer(size, placement, job["alignment"], is_far, fill)
            )
            return self.buffers[-1]

        for data in inputs:
            buffer = add(len(data))
            ctypes.memmove(buffer.address, data, len(data))
            if job["locked"]:
                buffer.lock()
        # An output that is an input's has no buffer of its own.
        holders = {output: index for index, output in job["aliases"]}
        for index, size in enumerate([*job["outputs"], *kernel.workspace_sizes]):
            if index in holders and job["apart"]:
                ctypes.memmove(add(size).address, inputs[holders[index]], size)
            elif index in holders:
                self.buffers.append(self.buffers[holders[index]])
            else:
                ctypes.memset(add(size).address, job["poison"], size)
        self._outputs = self.buffers[len(inputs) :][: len(job["outputs"])]

    def run(self) -> dict[str, Any]:
        """Calls the kernel; returns what that did to the memory."""
        error = None
        try:
            self.repeat(1)
        except RuntimeError as raised:
            error = str(raised)
        return {
            "error": error,
            "damage": [buffer.damage() for buffer in self.buffers],
            "changed": [
                None
                if self.buffers.count(buffer) > 1
                else first_difference(data, ctypes.string_at(buffer.address, buffer.size))
                for buffer, data in zip(self.buffers, self._inputs, strict=False)
            ],
            "outputs": [ctypes.string_at(buffer.address, buffer.size) for buffer in self._outputs],
            "slack": max((buffer.slack for buffer in self.buffers), default=0),
        }

    def repeat(self, calls: int, expected: Sequence[bytes] = ()) -> int:
        """Calls the kernel so often; returns after how many calls an output was unlike.

        Outputs are poisoned before each; but none that is an input, too.
        """
        addresses = [buffer.address for buffer in self.buffers]
        compared = () if self._has_aliases else expected
        first = len(self._inputs)
        return self._kernel.run(addresses, calls, list(enumerate(compared, first)))

    def free(self) -> None:
        """Gives the memory back."""
        for buffer in dict.fromkeys(self.buffers):
            buffer.free()


def run_once(kernel: Any, job: Mapping[str, Any], events: BinaryIO) -> dict[str, Any]:
    """Runs a kernel once on fresh memory; returns what it did to it."""
    frame = ChildFrame(kernel, job, job["inputs"])
    emit(events, "layout", [(buffer.address, buffer.size) for buffer in frame.buffers])
    seen = frame.run()
    frame.free()
    return seen


def run_on_threads(kernel: Any, job: Mapping[str, Any], events: BinaryIO) -> dict[str, Any]:
    """Runs a kernel on two threads with unlike inputs; counts results unlike those of one.

    An event at each step shows that it goes on, and no step takes more than a few calls' time.
    """
    frames = [ChildFrame(kernel, job, inputs) for inputs in (job["inputs"], job["other_inputs"])]
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
        calls = max(_LEAST_CALLS, min(_MOST_CALLS, int(_ROUND_S / once_s)))
    made = differing = 0
    errors: list[str] = []
    while not (differing or errors) and made < _ROUNDS * calls * len(frames):
        emit(events, "step", None)
        made += calls * len(frames)
        differing, errors = _race(frames, [run["outputs"] for run in alone], calls)
    for frame in frames:
        frame.free()
    return {"calls": made, "differing": differing, "error": errors[0] if errors else None}


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
        for _ in range(2):
            emit(events, "step", None)
            before = process_resources()
            differing += repeat(half, seen["outputs"])
            made += half
            after = process_resources()
            growth.append({name: count - before[name] for name, count in after.items()})
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


def files_of_calls(call: Callable[[], object]) -> list[str]:
    """Reports files that each call makes or writes to, in the folders where such files lie.

    Other processes use these folders, too. What they do, they do between calls as well: a time
    without a call is as long as the call before it. In a folder where files come at such a time,
    only those count that each call writes to.
    """
    in_calls, between = [], []
    seen = _files()
    for _ in range(_LOOKS_AT_FILES):
        start_s = time.perf_counter()
        call()
        after = _files()
        in_calls.append(_newer(seen, after))
        if not in_calls[-1]:  # not each call does
            return []
        time.sleep(max(_BETWEEN_LOOKS_S, time.perf_counter() - start_s))
        seen = _files()
        between.append(_newer(after, seen))
    if same := set.intersection(*in_calls).difference(*between):
        return [f"files: each call writes to {name}" for name in sorted(same)]
    others = set(map(os.path.dirname, set().union(*between)))
    for folder in sorted(set(map(os.path.dirname, in_calls[-1])) - others):
        each = [[name for name in names if os.path.dirname(name) == folder] for names in in_calls]
        if all(each):
            return [f"files: each call leaves one, as {min(each[-1])}"]
    return []


def _files() -> dict[str, int]:
    """Returns when each file in the folders for temporary ones, and in the working one, changed.

    Of the files of a full folder it is only known that they are there: to ask each takes long.
    """
    found = {}
    for folder in {os.environ.get("TMPDIR", "/tmp"), "/tmp", "/var/tmp", "/dev/shm", os.getcwd()}:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            listed = list(entries)
            for entry in listed:
                with contextlib.suppress(OSError):
                    is_asked = len(listed) <= _FULL
                    found[entry.path] = (
                        entry.stat(follow_symlinks=False).st_mtime_ns if is_asked else 0
                    )
    return found


def _newer(before: Mapping[str, int], after: Mapping[str, int]) -> set[str]:
    return {name for name, time_ns in after.items() if before.get(name) != time_ns}


def changed_settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, str]:
    """Returns a line for each setting of the process that is no longer what it was, by its name.

    Child processes that have ended are no change.
    """
    return {
        name: f"{name}: {before.get(name)!r} before, {after.get(name)!r} after"
        for name in {**before, **after}
        if before.get(name) != after.get(name)
        and not (name == _CHILDREN and after[name] < before[name])
        # One that a kernel opens once and keeps is no change; "open files" are counted.
        and not (name.startswith(_DESCRIPTOR) and name not in before)
    }


def growth_lines(growth: Sequence[Mapping[str, int]], half: int, calls: int) -> list[str]:
    """Reports what grew by each call, and so in both halves of them; a cache that fills does not.

    Memory of the heap takes pages, so pages are named only where it did not grow.
    """
    grown = {
        name: sum(part[name] for part in growth)
        for name in (growth[0] if len(growth) == 2 else ())
        if all(part[name] >= half * _LEAST_GROWTH.get(name, 1) for part in growth)
    }
    if len(grown) > 1:
        grown.pop(_PAGES, None)
    return [f"{name}: {count} more after {calls} calls" for name, count in grown.items()]


def effect_settings() -> dict[str, Any]:
    """Returns what a kernel may change that has effects, as its op says, but no other."""
    return {"the state of rand()": _state_of_rand(), "the state of drand48()": _state_of_drand48()}


def _set_unusual() -> None:
    """Sets what a kernel might set to what it is anyway: that would not show."""
    _libc.srandom(_SEED)
    os.umask(_UMASK)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_DFL)


def _state_of_rand() -> str:
    """Returns the numbers that glibc's rand() goes on from."""
    scratch = (ctypes.c_char * 128)()
    state = _libc.initstate(1, scratch, len(scratch))
    kind = ctypes.c_int32.from_address(state).value % len(_RANDOM_BYTES)
    numbers = ctypes.string_at(state, _RANDOM_BYTES[kind])
    _libc.setstate(state)
    return f"{binascii.crc32(numbers):08x}"


def _state_of_drand48() -> tuple[int, ...]:
    state = tuple(_libc.seed48((ctypes.c_ushort * 3)()).contents)
    _libc.seed48((ctypes.c_ushort * 3)(*state))
    return state


def open_descriptors() -> dict[str, str]:
    """Returns what each open descriptor but the standard ones leads to."""
    found = {}
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the list itself is closed
            if int(number) > 2:
                found[f"{_DESCRIPTOR} {number}"] = os.readlink(f"/proc/self/fd/{number}")
    return found


def process_settings() -> dict[str, Any]:
    """Returns what a kernel may change of its process, and should leave."""
    settings = {
        "the rounding mode": _libm.fegetround(),
        "the floating point errors that trap": _libm.fegetexcept(),
        "the working directory": os.getcwd(),
        "the root directory": os.readlink("/proc/self/root"),
        "the locale": _libc.setlocale(6, None),
        "the blocked signals": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "the alternate stack for signals": _signal_stack(),
        "the processors that the thread may use": sorted(os.sched_getaffinity(0)),
        "the scheduling policy": os.sched_getscheduler(0),
        "the priority": os.getpriority(os.PRIO_PROCESS, 0),
        "the user and the group": (os.getresuid(), os.getresgid(), sorted(os.getgroups())),
        "the session and the group of processes": (os.getsid(0), os.getpgid(0)),
        "the name of the thread": _thread_name(),
        _CHILDREN: _children(),
    }
    for name in ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF"):
        settings[f"the timer {name}"] = signal.getitimer(getattr(signal, name)) != (0.0, 0.0)
    for option, name in _PROCESS_OPTIONS.items():
        settings[name] = _libc.prctl(option, 0, 0, 0, 0)
    settings |= _handlers_of_cpp() | _formats_of_streams() | _settings_of_files()
    with contextlib.suppress(OSError):  # no library here uses OpenMP
        gomp = ctypes.CDLL("libgomp.so.1", mode=os.RTLD_NOLOAD)
        settings["the number of OpenMP's threads"] = gomp.omp_get_max_threads()
    for number, name in enumerate(("input", "output", "error")):
        try:
            link = os.readlink(f"/proc/self/fd/{number}")
            settings[f"standard {name}"] = link
            settings[f"the flags of standard {name}"] = fcntl.fcntl(number, fcntl.F_GETFL)
        except OSError:
            settings[f"standard {name}"] = "closed"
    for name in dir(resource):
        if name.startswith("RLIMIT_"):
            settings[f"the limit {name}"] = resource.getrlimit(getattr(resource, name))
    for number in signal.valid_signals():
        settings[f"the handler of {getattr(number, 'name', number)}"] = _handler_of(number)
    for entry in itertools.takewhile(bool, _environment()):
        name, _, value = entry.decode(errors="replace").partition("=")
        settings[f"{ENVIRONMENT} {name}"] = value
    if os.uname().machine == "x86_64":
        # MXCSR is the last word of glibc's fenv_t: flush-to-zero, denormals-are-zero.
        state = (ctypes.c_uint32 * 64)()
        _libm.fegetenv(state)
        settings["flushing of subnormals to zero"] = state[7] & 0x8040
        settings["the precision of the x87"] = state[0] & 0x300
    return settings


def _thread_name() -> str:
    with open("/proc/thread-self/comm", errors="replace") as name:
        return name.read().rstrip("\n")


def _signal_stack() -> int:
    """Returns where signals of the thread have a stack of their own; 0 without one."""
    stack = (ctypes.c_size_t * 8)()
    _libc.sigaltstack(None, stack)
    return stack[0]


def _handlers_of_cpp() -> dict[str, str]:
    """Returns what C++ calls when it cannot go on, or has no memory."""
    names = {
        "the terminate handler": "_ZSt13get_terminatev",
        "the handler of a failing new": "_ZSt15get_new_handlerv",
    }
    handlers = {}
    with contextlib.suppress(OSError, AttributeError):  # another library of C++
        library = ctypes.CDLL("libstdc++.so.6")
        for name, symbol in names.items():
            function = getattr(library, symbol)
            function.restype = ctypes.c_size_t
            handlers[name] = hex(function())
    return handlers


def _formats_of_streams() -> dict[str, str]:
    """Returns how C++ writes numbers, and how C buffers its standard output."""
    formats = {}
    with contextlib.suppress(OSError, ValueError):  # another library of C++
        library = ctypes.CDLL("libstdc++.so.6", mode=os.RTLD_NOLOAD)
        for name in ("cout", "cerr"):
            stream = (ctypes.c_size_t * 4).in_dll(library, f"_ZSt4{name}")
            # Behind two pointers to functions: precision, width, and the flags in half a word.
            flags = ctypes.c_uint32.from_address(ctypes.addressof(stream) + 32).value
            formats[f"the format of std::{name}"] = f"{stream[2]} digits, flags {flags:#x}"
    for name in ("stdout", "stderr"):
        file = ctypes.c_void_p.in_dll(_libc, name).value
        if file:
            buffering = ctypes.c_uint32.from_address(file).value & _BUFFERING
            formats[f"the buffering of {name}"] = hex(buffering)
    return formats


def _settings_of_files() -> dict[str, str]:
    """Returns settings that the system shows as files.

    The umask is one: `os.umask` would set it for every thread of the caller.
    """
    # A process may have a name that is not UTF-8.
    with open("/proc/self/status", errors="surrogateescape") as status:
        lines = dict(line.split(":", 1) for line in status if ":" in line)
    settings = {f"{name} of the process": lines.get(name, "").strip() for name in _STATUS}
    for name in _FILES_OF_SETTINGS:
        with contextlib.suppress(OSError), open(f"/proc/self/{name}") as file:
            settings[f"{name} of the process"] = file.read().strip()
    return settings


def _environment() -> Any:
    """Returns the process's variables, which Python's own copy need not know."""
    return ctypes.POINTER(ctypes.c_char_p).in_dll(_libc, "environ") or ()


def _children() -> int:
    """Returns how many processes this one has started that run, or that nobody has waited for."""
    count = 0
    with contextlib.suppress(OSError):  # a thread may end meanwhile, and not every system has this
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children") as children:
                count += len(children.read().split())
    return count


def _handler_of(number: int) -> str:
    """Returns the handler that the process has, which Python need not have set."""
    action = (ctypes.c_size_t * 32)()
    _libc.sigaction(number, None, action)
    return {0: "default", 1: "ignored"}.get(action[0], hex(action[0]))


def process_resources() -> dict[str, int]:
    """Returns what a kernel may take of its process, and should give back."""
    resources = {
        name: len(os.listdir(f"/proc/self/{folder}"))
        for name, folder in (("open files", "fd"), ("threads", "task"))
    }
    with contextlib.suppress(OSError), open("/proc/self/timers") as timers:
        resources["timers"] = sum(line.startswith("ID:") for line in timers)
    key = ctypes.c_uint()
    if not _libc.pthread_key_create(ctypes.byref(key), None):  # the first that is free
        resources["keys of data of threads"] = key.value
        _libc.pthread_key_delete(key)
    with open("/proc/self/statm") as sizes:
        resources[_PAGES] = int(sizes.read().split()[0])
    if hasattr(_libc, "mallinfo2"):
        _libc.mallinfo2.restype = _Heap
        heap = _libc.mallinfo2()
        resources[_HEAP] = heap.uordblks + heap.hblkhd
    return resources


class _Heap(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


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


def first_difference(left: bytes, right: bytes) -> int | None:
    """Returns where two texts of one length differ first."""
    if left == right:
        return None
    return next(i for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b)


def emit(events: BinaryIO, kind: str, value: Any) -> None:
    """Writes one event, so that it stays when the process ends."""
    marshal.dump((kind, value), events)
    events.flush()


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
        _set_unusual()
        settings: dict[str, Any] = {}
        effects: dict[str, Any] = {}
        for job in jobs:
            emit(events, "start", None)
            try:
                kernel = bind(native, job)
            except RuntimeError as raised:
                emit(events, "refused", str(raised))
                continue
            settings = settings or {**process_settings(), **open_descriptors()}
            effects = effects or effect_settings()
            run: Callable[[Any, Mapping[str, Any], BinaryIO], dict[str, Any]] = run_once
            if job["other_inputs"] is not None:
                run = run_on_threads
            elif job["in_a_row"]:
                run = functools.partial(run_in_a_row, settings, effects)
            emit(events, "done", run(kernel, job, events))


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
    """Forks for each folder that standard input names, and answers with its exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a parent that ignores it leaves it ignored
    signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED_FOR)
    for line in sys.stdin.buffer:
        while signal.SIGTERM in signal.sigpending():  # meant for the fork before, which had ended
            signal.sigwait(_WAITED_FOR)
        pid = os.fork()
        if not pid:
            run_fork(os.fsdecode(bytes.fromhex(line.decode())))
        os.write(1, b"%d\n" % wait_for_end(pid))


if __name__ == "__main__":
    main()
