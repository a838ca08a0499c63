"""What a kernel may change of its process, and should leave."""

from __future__ import annotations

import binascii
import contextlib
import ctypes
import fcntl
import itertools
import os
import resource
import signal

from msops.testing.child.libc import LIBC, LIBM

TYPE_CHECKING = False  # as type checkers know it, without the import of typing
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Bytes of the state of rand() by its kind; that is the state's first number, modulo 5.
_RANDOM_BYTES = (8, 32, 64, 128, 256)
# A seed and a mask that no kernel sets, and signals that Python, or a shell, has ignored.
_SEED, _UMASK = 20_231, 0o027
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT)
# A flag of glibc's struct FILE: without a buffer. With one for a line it begins on a terminal.
_BUFFERING = 0x2
# A std::ostream of libstdc++, of which the fourth word from its end is the buffer.
_WORDS_OF_STREAM = 34
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


def process_settings() -> dict[str, Any]:
    """Returns what a kernel may change of its process, and should leave."""
    settings = {
        "the rounding mode": LIBM.fegetround(),
        "the floating point errors that trap": LIBM.fegetexcept(),
        "the working directory": os.getcwd(),
        "the root directory": os.readlink("/proc/self/root"),
        "the locale": LIBC.setlocale(6, None),
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
        settings[name] = LIBC.prctl(option, 0, 0, 0, 0)
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
        LIBM.fegetenv(state)
        settings["flushing of subnormals to zero"] = state[7] & 0x8040
        settings["the precision of the x87"] = state[0] & 0x300
    return settings


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


def effect_settings() -> dict[str, Any]:
    """Returns what a kernel may change that has effects, as its op says, but no other."""
    return {"the state of rand()": _state_of_rand(), "the state of drand48()": _state_of_drand48()}


def set_unusual() -> None:
    """Sets what a kernel might set to what it is anyway: that would not show."""
    LIBC.srandom(_SEED)
    os.umask(_UMASK)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_DFL)


def _state_of_rand() -> str:
    """Returns the numbers that glibc's rand() goes on from."""
    scratch = (ctypes.c_char * 128)()
    state = LIBC.initstate(1, scratch, len(scratch))
    kind = ctypes.c_int32.from_address(state).value % len(_RANDOM_BYTES)
    numbers = ctypes.string_at(state, _RANDOM_BYTES[kind])
    LIBC.setstate(state)
    return f"{binascii.crc32(numbers):08x}"


def _state_of_drand48() -> tuple[int, ...]:
    state = tuple(LIBC.seed48((ctypes.c_ushort * 3)()).contents)
    LIBC.seed48((ctypes.c_ushort * 3)(*state))
    return state


def open_descriptors() -> dict[str, str]:
    """Returns what each open descriptor but the standard ones leads to."""
    found = {}
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the list itself is closed
            if int(number) > 2:
                found[f"{_DESCRIPTOR} {number}"] = os.readlink(f"/proc/self/fd/{number}")
    return found


def _thread_name() -> str:
    with open("/proc/thread-self/comm", errors="replace") as name:
        return name.read().rstrip("\n")


def _signal_stack() -> int:
    """Returns where signals of the thread have a stack of their own; 0 without one."""
    stack = (ctypes.c_size_t * 8)()
    LIBC.sigaltstack(None, stack)
    return stack[0]


def _handlers_of_cpp() -> dict[str, str]:
    """Returns what C++ calls when it cannot go on, or has no memory, and its locale."""
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
        locale = ctypes.c_size_t()
        library._ZNSt6localeC1Ev(ctypes.byref(locale))  # a reference to the global one
        handlers["the locale of C++"] = hex(locale.value)
        library._ZNSt6localeD1Ev(ctypes.byref(locale))
    return handlers


def _formats_of_streams() -> dict[str, str]:
    """Returns how and where C++ writes numbers, and how C buffers its standard output."""
    formats = {}
    with contextlib.suppress(OSError, ValueError):  # another library of C++
        library = ctypes.CDLL("libstdc++.so.6", mode=os.RTLD_NOLOAD)
        for name in ("cout", "cerr"):
            stream = (ctypes.c_size_t * _WORDS_OF_STREAM).in_dll(library, f"_ZSt4{name}")
            # Behind two pointers to functions: precision, width, and the flags in half a word.
            flags = ctypes.c_uint32.from_address(ctypes.addressof(stream) + 32).value
            formats[f"the format of std::{name}"] = f"{stream[2]} digits, flags {flags:#x}"
            formats[f"the buffer of std::{name}"] = hex(stream[-4])
    for name in ("stdout", "stderr"):
        file = ctypes.c_void_p.in_dll(LIBC, name).value
        if file:
            buffering = ctypes.c_uint32.from_address(file).value & _BUFFERING
            formats[f"the buffering of {name}"] = hex(buffering)
            formats[f"the stream {name}"] = hex(file)
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
    return ctypes.POINTER(ctypes.c_char_p).in_dll(LIBC, "environ") or ()


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
    LIBC.sigaction(number, None, action)
    return {0: "default", 1: "ignored"}.get(action[0], hex(action[0]))
