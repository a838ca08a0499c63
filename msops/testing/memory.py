"""What a kernel does to memory: checks that stand on runs between guard pages."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import jax
import numpy as np

from msops._calls.host_function import HostFunction
from msops.errors import MsopsError
from msops.testing.bounds import Bounds, crash_line, find_bounds
from msops.testing.guarded import Job, Run, run_jobs, show, size_bytes
from msops.testing.report import Finding, failed, passed, skipped
from msops.testing.subject import Subject, rolled

# Two poisons that are unlike in every bit: a byte that keeps both was never written.
POISONS = (0xA4, 0x5B)


@dataclasses.dataclass(frozen=True)
class MemoryRuns:
    """The runs of one kernel on the same inputs.

    Attributes:
      kernel: the kernel's name.
      outputs: shapes and dtypes of its outputs.
      is_stateful: whether the op says that equal calls may differ.
      is_reentrant: whether the op says that calls may overlap.
      aliased: the outputs that lie in the buffer of an input.
      back: buffers are aligned to 64 bytes, and end at a guard page but for what that leaves;
        `again` is the same once more.
      front: buffers begin at a guard page, and are poisoned otherwise.
      bounds: where the kernel left its buffers.
      at_64, at_16: buffers begin at odd multiples of so many bytes.
      threads: the kernel on two threads at once; nothing if it does not take unlike inputs.
    """

    kernel: str
    outputs: tuple[jax.ShapeDtypeStruct, ...]
    is_stateful: bool
    is_reentrant: bool
    aliased: tuple[int, ...]
    back: Run
    front: Run
    again: Run
    at_64: Run
    at_16: Run
    threads: Run
    bounds: Bounds

    @property
    def hazard(self) -> str:
        """Why the kernel may not run in this process; empty if it may.

        What `bounds` adds does no harm here: the rest of the 64 bytes in which an array ends lies
        on the same page.
        """
        runs = (self.back, self.front, self.again, self.at_64, self.threads)
        if any(run.crash for run in runs):
            return f"kernel {self.kernel} crashes"
        if any(run.damage for run in runs):
            return f"kernel {self.kernel} writes outside its buffers"
        return ""

    @property
    def is_complete(self) -> bool:
        """Whether the kernel ran to its end where buffers are aligned as XLA aligns its own."""
        runs = (self.back, self.front, self.again)
        return not any(run.crash or run.error for run in runs)


def run_on_guarded_memory(subject: Subject) -> MemoryRuns | None:
    """Returns the runs of a kernel in a library; None for any other kernel."""
    call = subject.native()
    if call is None:
        return None
    job = Job(call, subject.flat, subject.outputs().structs, poison=POISONS[0])
    jobs = [
        job,
        dataclasses.replace(job, placement="front", poison=POISONS[1]),
        job,
        dataclasses.replace(job, placement="odd 64"),
        dataclasses.replace(job, placement="odd 16"),
        dataclasses.replace(job, inputs=tuple(map(rolled, subject.flat))),
    ]
    aliased = tuple(output for _, output in call.aliases)
    options = subject.options
    back, front, again, at_64, at_16, others = run_jobs(jobs)
    # Two threads need unlike inputs, and the kernel may not take those that are made up here.
    threads = Run()
    if not (others.crash or others.error or others.damage):
        (threads,) = run_jobs([dataclasses.replace(job, other_inputs=jobs[-1].inputs)])
    (bounds,) = find_bounds([job], [back], [front])
    return MemoryRuns(
        kernel=call.kernel_name,
        outputs=job.outputs,
        is_stateful=options.stateful,
        is_reentrant=call.reentrant,
        aliased=aliased,
        back=back,
        front=front,
        again=again,
        at_64=at_64,
        at_16=at_16,
        threads=threads,
        bounds=bounds,
    )


def run_in_python(subject: Subject) -> MemoryRuns | None:
    """Returns the runs of a Python function over poisoned arrays; None for any other kernel."""
    function = subject.host_function()
    if function is None:
        return None
    structs = subject.outputs().structs
    back, front, again = (
        _call_function(function, subject.flat, structs, poison)
        for poison in (POISONS[0], POISONS[1], POISONS[0])
    )
    # What pointers a Python function gets, and on which threads, is numpy's concern and JAX's.
    neither = Run()
    return MemoryRuns(
        kernel=subject.op.name,
        outputs=structs,
        is_stateful=subject.options.stateful,
        is_reentrant=True,
        aliased=tuple(output for _, output in function.inplace),
        back=back,
        front=front,
        again=again,
        at_64=neither,
        at_16=neither,
        threads=neither,
        bounds=Bounds(),
    )


def _call_function(
    function: HostFunction,
    flat: Sequence[np.ndarray],
    structs: Sequence[jax.ShapeDtypeStruct],
    poison: int,
) -> Run:
    """Calls a function as the handler of a pyfunc does."""
    inputs = tuple(array.copy() for array in flat)
    outputs = tuple(
        np.full(size_bytes(s), poison, np.uint8).view(s.dtype).reshape(s.shape) for s in structs
    )
    for index, output in function.inplace:
        outputs[output][...] = inputs[index]
    views = tuple(array.view() for array in inputs)
    for view in views:
        view.flags.writeable = False
    try:
        result = function.call(views, outputs)
        if result is not None:
            function.store(result, outputs[0])
    except MsopsError as error:
        return Run(error=str(error))
    changed = tuple(
        f"input {index}, {show(array)}"
        for index, (array, own) in enumerate(zip(inputs, flat, strict=True))
        if array.tobytes() != own.tobytes()
    )
    return Run(changed=changed, outputs=tuple(output.tobytes() for output in outputs))


def check_return_code(runs: MemoryRuns) -> Finding:
    """Checks that the kernel returns 0 and throws nothing."""
    check = "return code"
    if runs.back.crash:
        return skipped(check, "the kernel crashes")
    return refused(runs.kernel, runs.back.error) if runs.back.error else passed(check, "no error")


def refused(kernel: str, error: str) -> Finding:
    """Returns the finding for a kernel that does not take the inputs at all."""
    return failed(
        "return code",
        f"kernel {kernel} fails on these inputs",
        error.splitlines(),
        "Check it on inputs that it takes; opcheck tries others by itself.",
    )


def check_bounds(runs: MemoryRuns) -> Finding:
    """Checks that nothing before or beyond a buffer is read or written."""
    check = "memory bounds"
    crashes, damage, unseen = runs.bounds.crashes, runs.bounds.damage, runs.bounds.unseen_bytes
    if not crashes and not damage:
        hidden = (
            f"; a read of up to {unseen} bytes beyond one would not show, as the kernel needs them "
            "aligned"
        )
        return passed(check, f"no access outside of its buffers{hidden if unseen else ''}")
    outside = bool(damage) or any(crash.outside for crash in crashes)
    ended = f" and ends by {crashes[0].signal}" if crashes else ""
    return failed(
        check,
        f"kernel {runs.kernel} {'leaves its buffers' if outside else 'crashes'}{ended}",
        runs.bounds.lines,
        "Compare its loops with the shapes it is given, out_shape with what it writes, and the C "
        "types of its pointers with the dtypes.",
    )


def check_written(runs: MemoryRuns) -> Finding:
    """Checks that every byte of the outputs is written."""
    check = "outputs written"
    if not runs.is_complete:
        return skipped(check, "the kernel does not end with 0")
    lines = unwritten_lines(runs.outputs, runs.back, runs.front, runs.aliased)
    if lines:
        return failed(
            check,
            f"kernel {runs.kernel} leaves elements of its outputs as they were",
            lines,
            "Write every element, since outputs are not zeroed; or infer a smaller shape.",
        )
    return passed(check, "every element")


def check_inputs(runs: MemoryRuns) -> Finding:
    """Checks that inputs are as they were."""
    check = "inputs unchanged"
    changed = unique([*runs.back.changed, *runs.front.changed])
    if changed:
        return failed(
            check,
            f"kernel {runs.kernel} writes to its inputs",
            changed,
            "Write to outputs, or to a workspace; an input may be in use elsewhere.",
        )
    if not runs.is_complete:
        return skipped(check, "the kernel does not end with 0")
    return passed(check, "bytes compared")


def check_repeatable(runs: MemoryRuns) -> Finding:
    """Checks that results depend on the inputs alone."""
    check = "repeatable"
    if runs.is_stateful:
        return skipped(check, "the op is stateful")
    if not runs.is_complete:
        return skipped(check, "the kernel does not end with 0")
    lines = difference_lines(runs.outputs, runs.back, runs.again)
    if lines:
        return failed(
            check,
            f"kernel {runs.kernel} returns other results for the same inputs",
            lines,
            "Pass Custom(..., stateful=True) if that is meant; else look for static variables, "
            "clocks and unseeded random numbers.",
        )
    lines = difference_lines(runs.outputs, runs.back, runs.front)
    if lines:
        return failed(
            check,
            f"results of kernel {runs.kernel} depend on memory that it has not written",
            lines,
            "Write outputs and workspaces before reading them, and read no input beyond its end.",
        )
    return passed(check, "same bytes twice, and over other memory")


def check_alignment(runs: MemoryRuns) -> Finding:
    """Checks that the kernel asks for no more than the 64 bytes to which XLA aligns arrays."""
    check = "alignment"
    if runs.is_stateful:
        return skipped(check, "the op is stateful")
    if check_repeatable(runs).verdict != "passed":
        return skipped(check, "elsewhere in memory results differ already")
    lines = _misaligned_lines(runs, runs.at_64)
    if lines:
        return failed(
            check,
            f"kernel {runs.kernel} needs arrays aligned to more than 64 bytes",
            lines,
            "XLA aligns arrays to 64 bytes on the CPU: use unaligned loads and stores, and no "
            "__builtin_assume_aligned of more.",
        )
    if _misaligned_lines(runs, runs.at_16):
        return passed(check, "more than 16 bytes are needed, and XLA gives 64")
    return passed(check, "16 bytes will do")


def _misaligned_lines(runs: MemoryRuns, run: Run) -> list[str]:
    """Tells what a run did that one on aligned arrays did not."""
    if run.crash:
        return [crash_line(run.crash)]
    if run.error:
        return run.error.splitlines()
    return [*run.damage, *difference_lines(runs.outputs, runs.back, run)]


def check_threads(runs: MemoryRuns) -> Finding:
    """Checks that two threads at once, with unlike inputs, compute what one does."""
    check = "two threads"
    if runs.aliased:
        return skipped(check, "the kernel works in place: a second call has other inputs")
    if runs.is_stateful:
        return skipped(check, "the op is stateful")
    if check_repeatable(runs).verdict != "passed":
        return skipped(check, "on one thread results differ already")
    remedy = (
        "Keep nothing in static variables; ask for a workspace in Init. "
        "Or pass Custom(..., reentrant=False)."
    )
    if runs.threads.crash:
        summary = f"kernel {runs.kernel} crashes when two threads run it"
        return failed(check, summary, [crash_line(runs.threads.crash)], remedy)
    if runs.threads.differing:
        return failed(
            check,
            f"kernel {runs.kernel} computes something else when two threads run it",
            [f"{runs.threads.differing} of {runs.threads.calls} calls differ"],
            remedy,
        )
    if not runs.threads.calls:
        return skipped(check, "the kernel does not take the same values in another order")
    serial = "" if runs.is_reentrant else ", one at a time (reentrant=False)"
    return passed(check, f"{runs.threads.calls} calls side by side{serial}")


def unique(lines: Iterable[str]) -> list[str]:
    """Returns lines without repetitions."""
    return list(dict.fromkeys(lines))


def unwritten_lines(
    outputs: Sequence[jax.ShapeDtypeStruct], one: Run, other: Run, aliased: Sequence[int] = ()
) -> list[str]:
    """Tells per output which elements kept a byte of poison in both runs, poisoned unlike.

    Those in `aliased` hold an input before the call, and no poison.
    """
    lines = []
    for index, struct in enumerate(outputs):
        if index in aliased:
            continue
        kept = np.logical_and.reduce(
            [
                np.frombuffer(run.outputs[index], np.uint8) == poison
                for run, poison in zip((one, other), POISONS, strict=True)
            ]
        )
        elements = np.flatnonzero(kept.reshape(-1, struct.dtype.itemsize).any(1))
        if elements.size:
            lines.append(_places("output", index, struct, elements, "not written"))
    return lines


def difference_lines(outputs: Sequence[jax.ShapeDtypeStruct], one: Run, other: Run) -> list[str]:
    """Tells per output which elements two runs made differ."""
    lines = []
    for index, struct in enumerate(outputs):
        left, right = (np.frombuffer(run.outputs[index], np.uint8) for run in (one, other))
        unlike = (left != right).reshape(-1, struct.dtype.itemsize).any(1)
        # What was never written differs by its poison alone; that is another check's finding.
        kept = (left == POISONS[0]) & (right == POISONS[1])
        unlike &= ~kept.reshape(-1, struct.dtype.itemsize).any(1)
        elements = np.flatnonzero(unlike)
        if elements.size:
            lines.append(_places("output", index, struct, elements, "different"))
    return lines


def _places(
    kind: str, index: int, struct: jax.ShapeDtypeStruct, elements: np.ndarray, what: str
) -> str:
    """Describes some elements of an array, given by their flat indices."""
    first = int(elements[0])
    place = ", ".join(str(int(i)) for i in np.unravel_index(first, struct.shape))
    total = int(np.prod(struct.shape, dtype=np.int64))
    return (
        f"{kind} {index}, {show(struct)}: {elements.size} of {total} elements {what}, the first "
        f"[{place}] at byte {first * struct.dtype.itemsize}"
    )
