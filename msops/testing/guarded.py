"""Kernels run in a child process on guarded memory, and what came of it.

The child runs `msops.testing.child`. A crash ends it, so the jobs behind the one that crashed run
in a further child.

One file, as it has one format from both ends: the jobs that it writes for the child, and the events
and faults that it reads back.
"""

from __future__ import annotations

import dataclasses
import marshal
import os
import re
import signal
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops import _jax_seam as seam
from msops._base.dtypes import as_dtype
from msops._base.temporary import temporary_folder
from msops._calls.handlers import native_module
from msops._calls.library_call import AicpuCall, AotCall, ForeignCall, LibraryCall
from msops.errors import BackendError, MsopsError
from msops.testing.child_processes import ForkServer, server_for
from msops.testing.spent_time import Stopwatch

_FAULT = struct.Struct("=iiQi")
_ACCESS = {0: "read", 1: "write", -1: "access"}
# The kernel's codes for a fault without an address, and for one of alignment.
_SI_KERNEL, _BUS_ADRALN = 128, 1
_NEAR = 1 << 32
# What glibc writes before it terminates a process whose heap is damaged.
_HEAP = re.compile(
    r"^.*(?:corrupted (?:size|double|chunk)|corruption|munmap_chunk\(\)"
    r"|(?:free|[mc]alloc|realloc|malloc_consolidate)\(\):).*$",
    re.MULTILINE,
)
# Two poisons that are unlike in every bit: a byte that keeps both was never written.
POISONS = (0xA4, 0x5B)
# How long a child may take to start.
_START_S = 60.0


class HangError(Exception):
    """A call of a kernel did not end in time, and was stopped.

    Attributes:
      call: the kernel with its arrays.
      limit_s: how long it ran.
      details: where it was, a line each, if that is known.
    """

    def __init__(self, call: str, limit_s: float, details: Sequence[str] = ()):
        super().__init__(call)
        self.call, self.limit_s, self.details = call, limit_s, tuple(details)


@dataclasses.dataclass(frozen=True)
class Job:
    """One run of a kernel.

    Attributes:
      call: the call into the library.
      inputs: the input arrays.
      outputs: shapes and dtypes of the outputs.
      limit_s: how long a call may take.
      placement: where buffers lie: "front", "back", "odd 64", "odd 16" (see the child) or "heap".
      alignment: in bytes, for "back": 64 is what XLA promises, at 1 buffers end at the guard.
      far: the buffers between which and the guard lies a page more; None for all.
      poison: the byte that outputs and workspaces are filled with.
      beside: further runs of the kernel, each on a thread of its own at the same time.
      locked: whether the inputs cannot be written.
      in_a_row: whether the kernel is called many times on the same memory.
      again: whether the kernel, if it is quick, is called some times more, see `Run.may_leave`.
      fails: whether these calls may return other than 0.
      infers: whether the library is only asked for the shape of an output.
      apart: whether an output that lies in an input has memory of its own, with the same content.
    """

    call: LibraryCall
    inputs: tuple[np.ndarray, ...]
    outputs: tuple[jax.ShapeDtypeStruct, ...]
    limit_s: float
    placement: str = "back"
    alignment: int = 64
    far: frozenset[int] | None = frozenset()
    poison: int = 0xA4
    beside: tuple[Job, ...] = ()
    locked: bool = False
    in_a_row: bool = False
    again: bool = False
    fails: bool = False
    infers: bool = False
    apart: bool = False


@dataclasses.dataclass(frozen=True)
class Crash:
    """How a child ended that did not finish its job.

    Attributes:
      signal: the signal's name, or what else terminated it.
      access: the one that failed, in terms of the call's buffers; empty if not known.
      outside: whether that access lay outside of all buffers, and not at a nonsense address.
      text: what the process wrote to its standard error.
      edge: what `access` begins with, if the access lay outside: which side of which buffer.
      buffer: the index of that buffer, if the access lay near one.
      offset: how many bytes from the buffer's start the access lay.
      on_heap: whether glibc terminated it because memory that it had allocated is damaged; then
        `access` is what glibc says.
    """

    signal: str
    access: str
    outside: bool
    text: str
    edge: str = ""
    buffer: int | None = None
    offset: int = 0
    on_heap: bool = False


@dataclasses.dataclass(frozen=True)
class Run:
    """The outcome of a job.

    Attributes:
      crash: how the process ended in it, if it did.
      error: what msops says of a kernel, or its Init, that returned other than 0 or threw.
      damage: per buffer with bad canaries a line that says where.
      changed: per changed input a line that says where.
      outputs: the outputs' bytes.
      calls: on threads, or in a row: how often the kernel was called.
      differing: after how many of these a result was another than that of the first, alone.
      left: in a row: what of the process the calls changed or kept, a line each.
      effects: in a row: what the calls changed that an op with effects may change.
      may_leave: whether calls took something of the process that they did not give back, or calls
        in that process changed a setting; later ones need not.
      slack: the most bytes that lie between the end of a buffer and a guard close to it.
      raised: of a Python function, what `error` is the text of.
      text: what the process wrote to its standard error.
    """

    crash: Crash | None = None
    error: str = ""
    damage: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    outputs: tuple[bytes, ...] = ()
    calls: int = 0
    differing: int = 0
    left: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    may_leave: bool = False
    slack: int = 0
    raised: MsopsError | None = None
    text: str = ""


def run_jobs(
    jobs: Sequence[Job],
    environment: Mapping[str, str] | None = None,
    watched: bool = True,
    moved: bool = False,
) -> list[Run]:
    """Runs kernels, each on fresh memory.

    Args:
      jobs: what to run.
      environment: variables added to the child's environment.
      watched: whether the child notes the address of a fault; a sanitizer does so itself.
      moved: whether libc, the heap and the stack must lie at other addresses than in other runs.

    Raises:
      HangError: a call did not end in time; what is behind it has not run.
    """
    runs: list[Run] = []
    with server_for(environment or {}, moved) as server:
        while len(runs) < len(jobs):
            runs += _run_until_crash(server, jobs[len(runs) :], watched)
    return runs


def _run_until_crash(server: ForkServer, jobs: Sequence[Job], watched: bool) -> list[Run]:
    """Runs jobs in one child; returns those it came to, the last of which may have crashed."""
    with temporary_folder("opcheck") as folder:
        content = (native_module().__file__, watched, [_described(job) for job in jobs])
        (folder / "jobs").write_bytes(marshal.dumps(content))
        for file in ("events", "errors"):
            (folder / file).touch()
        ended, text = _run_in_fork(server, folder, jobs)
        runs: list[Run] = []
        layout: Sequence[tuple[int, int]] = ()
        started = 0
        for kind, value in _read_events(folder / "events"):
            if kind == "changed":  # by any of them
                return [dataclasses.replace(run, may_leave=True) for run in runs]
            job = jobs[len(runs)]
            if kind == "start":
                started, layout = started + 1, ()
            elif kind == "layout":
                layout = value
            elif kind == "step":
                pass
            elif kind == "refused":
                runs.append(Run(error=value, text=text))
            else:
                runs.append(_run_of(job, value, text))
        if len(runs) == len(jobs):
            return runs
        if started == len(runs):
            if not runs:
                raise BackendError.explained(
                    "opcheck",
                    f"the process that runs kernels {ended} before the first call",
                    "See whether the folder for temporary files (TMPDIR) has space; else please "
                    "report this.",
                    text.splitlines(),
                )
            crash = _heap_crash(ended, text) or Crash(
                ended, "after it had returned, in a thread of its own", False, text
            )
            return [*runs[:-1], Run(crash=crash, text=text)]
        crash = _crash_of(jobs[len(runs)], layout, folder / "fault", ended, text)
        if runs and crash.access == "in the kernel's Init":
            crash = dataclasses.replace(crash, access="between two calls, or in the kernel's Init")
        return [*runs, Run(crash=crash, text=text)]


def _run_in_fork(server: ForkServer, folder: Path, jobs: Sequence[Job]) -> tuple[str, str]:
    """Runs the jobs of a folder; returns how that process ended and its standard error.

    Raises:
      HangError: a job did not end in time.
    """
    events = folder / "events"
    size = 0

    def check(stopwatch: Stopwatch) -> None:
        nonlocal size
        if events.stat().st_size != size:
            size = events.stat().st_size
            stopwatch.restart()
        spent_s = stopwatch.read_s()
        if spent_s > jobs[0].limit_s:
            _check_progress(events, jobs, spent_s)

    code = server.run(folder, check)
    how = signal.Signals(-code).name if code < 0 else f"exited with status {code}"
    return how, (folder / "errors").read_text(errors="replace")


def _check_progress(events: Path, jobs: Sequence[Job], spent_s: float) -> None:
    """Raises HangError if the job that runs has had no event for longer than it may take."""
    started = [kind for kind, _ in _read_events(events)].count("start")
    if not started:
        if spent_s > _START_S:
            raise RuntimeError(f"opcheck: the process that runs kernels hangs for {_START_S:g} s")
        return
    job = jobs[started - 1]
    title, limit_s = title_of(job.call.kernel_name, job.inputs, job.outputs), job.limit_s
    if job.beside:  # they have one machine
        title, limit_s = f"{title}, on two threads", (1 + len(job.beside)) * limit_s
    if spent_s > limit_s:
        raise HangError(title, limit_s)


def _read_events(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open("rb") as file:
        while True:
            try:
                yield marshal.load(file)
            except (EOFError, ValueError, TypeError):  # the last may be cut off by a crash
                return


def _described(job: Job) -> dict[str, Any]:
    """Returns a job in what needs no package to read."""
    call = job.call
    arrays: tuple[Any, ...] = (*job.inputs, *job.outputs)
    described: dict[str, Any] = {
        "op": call.op,
        "library": call.library.hash,
        "library_name": call.library.name,
        "shapes": [list(array.shape) for array in arrays],
        "dtypes": [as_dtype(array.dtype).name for array in arrays],
        "attributes": dict(call.attributes),
        "reentrant": call.reentrant,
    }
    if isinstance(call, AotCall):
        described |= {"symbol": call.kernel_name, "workspaces": list(call.workspaces)}
    if isinstance(call, AicpuCall):
        described |= {
            "type": call.kernel_name,
            "input_count": len(job.inputs),
            "dynamic_outputs": call.dynamic_outputs,
        }
    if isinstance(call, ForeignCall):
        described |= {
            "symbol": call.kernel_name,
            "input_count": len(job.inputs),
            "attributes": [_typed(*item) for item in call.encode()["attributes"].items()],
        }
    library = call.library
    return {
        "kind": type(call).__name__,
        "call": described,
        "library": (
            library.hash,
            os.fspath(library.path),
            os.fspath(library.origin or ""),
            library.old_string_abi,
        ),
        "inputs": _bytes_of(job.inputs),
        "beside": list(map(_described, job.beside)),
        "outputs": [size_bytes(struct) for struct in job.outputs],
        "aliases": call.aliases,
        "placement": job.placement,
        "alignment": job.alignment,
        "far": job.far,
        "poison": job.poison,
        "locked": job.locked,
        "in_a_row": job.in_a_row,
        "again": job.again,
        "fails": job.fails,
        "infers": job.infers,
        "apart": job.apart,
    }


def _typed(name: str, value: Any) -> tuple[str, str, bool, bytes]:
    """Returns an attribute of a handler: its name, dtype, whether it is a list, and bytes."""
    if isinstance(value, str):
        return name, "", False, value.encode()
    array = np.asarray(value)
    return name, array.dtype.name, bool(array.ndim), array.tobytes()


def size_bytes(struct: Any) -> int:
    """Returns the size of an array that has a shape and a dtype."""
    return int(np.prod(struct.shape, dtype=np.int64)) * struct.dtype.itemsize


def _bytes_of(arrays: Sequence[np.ndarray]) -> list[bytes]:
    return [np.ascontiguousarray(_as_kernels_see(array)).tobytes() for array in arrays]


def _as_kernels_see(array: np.ndarray) -> np.ndarray:
    """Returns an array with one byte for each element narrower than that, as XLA hands it over."""
    dtype = seam.byte_dtype(array.dtype)
    if dtype == array.dtype:
        return array
    return array.astype(dtype) if jnp.issubdtype(array.dtype, jnp.integer) else array.view(dtype)


def _run_of(job: Job, seen: Mapping[str, Any], text: str) -> Run:
    if "calls" in seen:
        return Run(
            error=seen["error"] or "",
            calls=seen["calls"],
            differing=seen["differing"],
            left=tuple(seen.get("left", ())),
            effects=tuple(seen.get("effects", ())),
            text=text,
        )
    return Run(
        error=seen["error"] or "",
        damage=tuple(
            _damage_line(job, index, *damage)
            for index, damage in enumerate(seen["damage"])
            if damage is not None
        ),
        changed=tuple(
            f"{name_of(job, index)}, changed from byte {offset} on"
            for index, offset in enumerate(seen["changed"])
            if offset is not None
        ),
        outputs=tuple(seen["outputs"]),
        may_leave=bool(seen["grown"]),
        slack=seen["slack"],
        text=text,
    )


def arrays_of(run: Run, structs: Sequence[Any]) -> list[np.ndarray]:
    """Returns the outputs of a run as arrays of such shapes and dtypes."""
    return [
        np.frombuffer(data, struct.dtype).reshape(struct.shape)
        for data, struct in zip(run.outputs, structs, strict=True)
    ]


def struct_of(job: Job, index: int) -> Any:
    """Returns the array in a buffer; None for a workspace."""
    arrays = (*job.inputs, *job.outputs)
    return arrays[index] if index < len(arrays) else None


def title_of(kernel: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> str:
    """Returns how messages name a call: "Shift(float32[4]) -> float32[3]"."""
    taken, given = (", ".join(map(show, arrays)) for arrays in (inputs, outputs))
    return f"{kernel}({taken}) -> {given or 'nothing'}"


def name_of(job: Job, index: int) -> str:
    """Returns how messages name a buffer: "output 0, float32[3,4]"."""
    inputs, outputs = len(job.inputs), len(job.outputs)
    if index >= inputs + outputs:
        return f"workspace {index - inputs - outputs}"
    kind, number = ("input", index) if index < inputs else ("output", index - inputs)
    return f"{kind} {number}, {show(struct_of(job, index))}"


def show(struct: Any) -> str:
    """Returns shape and dtype of an array as text: "float32[3,4]"."""
    return f"{as_dtype(struct.dtype).name}[{','.join(map(str, struct.shape))}]"


def _damage_line(job: Job, index: int, size: int, first: int, last: int, count: int) -> str:
    where = f"byte {first}" if first == last else f"bytes {first} to {last}"
    return f"{_edge('write', job, index, first, size)}: at {where} ({count} changed)"


def _edge(access: str, job: Job, index: int, offset: int, size: int) -> str:
    """Names the side of a buffer of so many bytes on which an offset from its start lies."""
    name = name_of(job, index)
    if 0 <= offset < size:
        return f"{access} of {name}"
    if offset < 0:
        return f"{access} before {name}"
    return f"{access} beyond {name}, which ends at byte {size}"


def _heap_crash(ended: str, text: str) -> Crash | None:
    """Returns the crash of a process that glibc ended, as its heap is damaged."""
    lines = _HEAP.findall(text) if ended == "SIGABRT" else []
    if not lines:
        return None
    return Crash(ended, f"the heap is damaged: glibc says {lines[-1]!r}", False, text, on_heap=True)


def _crash_of(
    job: Job, layout: Sequence[tuple[int, int]], fault: Path, ended: str, text: str
) -> Crash:
    if (on_heap := _heap_crash(ended, text)) is not None:
        return on_heap
    record = fault.read_bytes() if fault.exists() else b""
    if len(record) < _FAULT.size or not layout:
        # On threads there are two layouts, and no event names them.
        before = not layout and not job.beside
        return Crash(ended, "in the kernel's Init" if before else "", False, text)
    _, code, address, access = _FAULT.unpack(record[: _FAULT.size])
    if ended not in ("SIGSEGV", "SIGBUS"):
        return Crash(ended, "", False, text)
    if code == _SI_KERNEL or (ended == "SIGBUS" and code == _BUS_ADRALN):
        return Crash(ended, "an access that is misaligned, or at no valid address", False, text)
    if address < 1 << 16:
        return Crash(ended, f"{_ACCESS[access]} at address {address:#x}", False, text)

    def distance(index: int) -> int:
        start, size = layout[index]
        return max(start - address, address - (start + size) + 1, 0)

    nearest = min(range(len(layout)), key=distance, default=None)
    if nearest is None or distance(nearest) > _NEAR:
        far = f"{_ACCESS[access]} far from every buffer"
        return Crash(ended, f"{far}, at address {address:#x}", True, text, far)
    start, size = layout[nearest]
    offset = address - start
    edge = _edge(_ACCESS[access], job, nearest, offset, size)
    return Crash(ended, f"{edge}: at byte {offset}", True, text, edge, nearest, offset)
