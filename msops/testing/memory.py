"""Checks of a kernel's accesses to memory, on runs between guard pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import jax
import numpy as np

from msops.testing.bounds import crash_line
from msops.testing.guarded import POISONS, Run, show
from msops.testing.memory_runs import GuardedRuns, Runs
from msops.testing.report import Finding, failed, passed, skipped

_HEAP_REMEDY = (
    "Look for a write outside of an allocation, a use after free, or a second free; sanitize=True "
    "names the line."
)


def check_return_code(runs: Runs) -> Finding:
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


def check_bounds(runs: GuardedRuns) -> Finding:
    """Checks that nothing before or beyond a buffer is read or written."""
    check = "memory bounds"
    crashes, damage, unseen = runs.bounds.crashes, runs.bounds.damage, runs.bounds.unseen_bytes
    if not crashes and not damage:
        hidden = (
            f"; a read of up to {unseen} bytes beyond one would not show, as the kernel needs them "
            "aligned"
        )
        return passed(check, f"no access outside of its buffers{hidden if unseen else ''}")
    if not damage and crashes[0].on_heap:
        return failed(
            check,
            f"kernel {runs.kernel} damages the heap ({crashes[0].signal})",
            runs.bounds.lines,
            _HEAP_REMEDY,
        )
    outside = bool(damage) or any(crash.outside for crash in crashes)
    ended = f" ({crashes[0].signal})" if crashes else ""
    return failed(
        check,
        f"kernel {runs.kernel} {'leaves its buffers' if outside else 'crashes'}{ended}",
        runs.bounds.lines,
        "Compare its loops with the shapes it is given, out_shape with what it writes, and the C "
        "types of its pointers with the dtypes.",
    )


def check_written(runs: Runs) -> Finding:
    """Checks that every byte of the outputs is written."""
    check = "outputs written"
    if not runs.is_complete:
        return skipped(check, "the kernel does not end with 0")
    lines = unwritten_lines(runs.outputs, runs.back, runs.front, runs.aliased, runs.is_stateful)
    if not lines and (lines := _no_bool_lines(runs)):
        return failed(
            check,
            f"kernel {runs.kernel} writes bytes to a bool that are neither 0 nor 1",
            lines,
            "Write bool, or x != 0: what reads such a byte may take it for true or for false.",
        )
    if lines:
        return failed(
            check,
            f"kernel {runs.kernel} leaves elements of its outputs as they were",
            lines,
            "Write every element, since outputs are not zeroed; or infer a smaller shape.",
        )
    return passed(check, "every element")


def check_inputs(runs: Runs) -> Finding:
    """Checks that inputs are as they were."""
    check = "inputs unchanged"
    changed = unique([*runs.back.changed, *runs.front.changed])
    if not changed and isinstance(runs, GuardedRuns) and runs.is_complete and runs.locked:
        crash = runs.locked.crash
        restored = "where the old value was back at the end"
        changed = [f"{crash.access}, {restored}"] if crash and _writes_input(runs.locked) else []
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


def check_repeatable(runs: Runs) -> Finding:
    """Checks that results depend on the inputs alone."""
    check = "repeatable"
    if runs.is_stateful:
        return skipped(check, "the op is stateful")
    if not runs.back.error and (lines := _later_ends(runs)):
        return failed(
            check,
            f"kernel {runs.kernel} does not end with 0 when it is called again",
            lines,
            f"{_HEAP_REMEDY} Look also for static variables that the first call sets.",
        )
    if not runs.is_complete:
        return skipped(check, "the kernel does not end with 0")
    first = runs.subject.first  # what this call sets is as it set it in all later ones
    lines = difference_lines(runs.outputs, runs.back, runs.again)
    lines = lines or (difference_lines(runs.outputs, first, runs.back) if first else [])
    if lines:
        return failed(
            check,
            f"kernel {runs.kernel} returns other results for the same inputs",
            lines,
            "Make the op with stateful=True if that is meant; else look for static variables, "
            "clocks and unseeded random numbers.",
        )
    lines = runs.subject.lines_of_turns
    if isinstance(runs, GuardedRuns):
        lines = _lines_after_others(runs)
    if lines:
        return failed(
            check,
            f"results of kernel {runs.kernel} depend on what it was called with before",
            lines,
            "Look for static variables that the first call sets: a size, a table, an input, an "
            "attribute.",
        )
    if isinstance(runs, GuardedRuns) and (lines := _lines_apart(runs)):
        return failed(
            check,
            f"results of kernel {runs.kernel} depend on its working in place",
            lines,
            "inplace= gives an output the memory of an input: read an element before the output at "
            "its place is written.",
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


def _lines_after_others(runs: GuardedRuns) -> list[str]:
    """Reports how results differ from those of a first call."""
    # After values that the kernel may not expect a crash says nothing.
    earlier = {} if runs.after_others.crash else {"": runs.after_others}
    earlier |= {
        f"after a call with another {name}: ": run
        for name, run in runs.after_other_attributes.items()
        # The first call may itself have damaged the heap, with a value that makes no sense.
        if not (run.crash and run.crash.on_heap)
    }
    return [
        f"{what}{line}" for what, run in earlier.items() for line in _lines_after_other(runs, run)
    ]


def _lines_after_other(runs: GuardedRuns, run: Run) -> list[str]:
    """Reports what a run did after another call that it does not do as a first call."""
    if run.crash:
        return [crash_line(run.crash)]
    return run.error.splitlines() or difference_lines(runs.outputs, runs.back, run)


def _lines_apart(runs: GuardedRuns) -> list[str]:
    """Reports how results differ where outputs have memory of their own."""
    apart = runs.apart
    # A kernel that writes through the pointer of the input, as it may, leaves the output.
    if apart is None or apart.crash or apart.error or apart.changed:
        return []
    return difference_lines(runs.outputs, runs.back, apart)


def _later_ends(runs: Runs) -> list[str]:
    """Reports how a call ended behind one that ended well, on the same memory or on such that
    cannot be written.
    """
    if runs.back.crash or runs.front.crash:
        return []
    locked = runs.locked if isinstance(runs, GuardedRuns) else None
    later = [runs.again] if locked is None or _writes_input(locked) else [runs.again, locked]
    crashes = [crash_line(run.crash) for run in later if run.crash]
    return unique([*crashes, *(line for run in later for line in run.error.splitlines())])


def _writes_input(run: Run) -> bool:
    """Returns whether a run crashed where it wrote to an input."""
    return run.crash is not None and run.crash.edge.startswith("write of input")


def check_alignment(runs: GuardedRuns) -> Finding:
    """Checks that the kernel asks for no more than the 64 bytes to which XLA aligns arrays."""
    check = "alignment"
    if runs.is_stateful:
        return skipped(check, "the op is stateful")
    if runs.bounds.lines:
        return skipped(check, "the kernel leaves its buffers at any alignment")
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


def _misaligned_lines(runs: GuardedRuns, run: Run) -> list[str]:
    """Reports what a run did that one on aligned arrays did not."""
    if run.crash:
        return [crash_line(run.crash)]
    if run.error:
        return run.error.splitlines()
    return [*run.damage, *difference_lines(runs.outputs, runs.back, run)]


def check_many_calls(runs: Runs) -> Finding:
    """Checks that a kernel that is called often computes the same, and leaves its process alone."""
    check = "many calls"
    if runs.aliased:
        return skipped(check, "the kernel works in place: a second call has other inputs")
    if not runs.is_complete:
        return skipped(check, "the kernel does not end with 0")
    run = runs.in_a_row
    lines = list(runs.left)
    if run.crash:
        lines.append(crash_line(run.crash))
    elif isinstance(runs, GuardedRuns):
        lines += _heap_lines(runs)
    if run.error:
        lines += [f"after {run.calls} calls:", *run.error.splitlines()]
    if run.differing and not runs.is_stateful:
        lines.append(f"{run.differing} of {run.calls} calls have other results")
    if lines:
        return failed(
            check,
            f"kernel {runs.kernel} does something else, or leaves something, when called often",
            lines,
            "Free what a call allocates, close what it opens, set back what it sets, and keep "
            "nothing in static variables.",
        )
    return passed(check, f"{run.calls} calls: same bytes, and nothing left in the process")


def _heap_lines(runs: GuardedRuns) -> list[str]:
    """Reports what a kernel does to a heap that glibc checks."""
    once, in_a_row = runs.on_checked_heap
    crash = once.crash or in_a_row.crash
    if crash:
        what = "a write outside of an allocation, a use after free, or a second free"
        return [f"{crash.signal} where glibc checks the heap: {what}"]
    if once.error or runs.is_stateful:
        return []
    what = "glibc fills what it allocates and frees: a read before a write, or after free"
    lines = difference_lines(runs.outputs, runs.back, once)
    return [f"other results where {what}", *lines] if lines else []


def check_threads(runs: GuardedRuns) -> Finding:
    """Checks that two threads at once, with unlike inputs, compute what one does."""
    check = "two threads"
    if runs.aliased:
        return skipped(check, "the kernel works in place: a second call has other inputs")
    if runs.is_stateful:
        return skipped(check, "the op is stateful")
    if runs.back.damage:
        return skipped(check, "on one thread the kernel writes outside its buffers already")
    if check_repeatable(runs).verdict != "passed":
        return skipped(check, "on one thread results differ already")
    remedy = (
        "Keep nothing in static variables; ask for a workspace in Init. "
        "Or make the op with reentrant=False."
    )
    if runs.threads.crash:
        summary = f"kernel {runs.kernel} crashes when two threads run it"
        return failed(check, summary, [crash_line(runs.threads.crash)], remedy)
    if runs.threads.error:
        summary = f"kernel {runs.kernel} fails when two threads run it"
        return failed(check, summary, runs.threads.error.splitlines(), remedy)
    if runs.threads.differing:
        return failed(
            check,
            f"kernel {runs.kernel} computes something else when two threads run it",
            [f"{runs.threads.differing} of {runs.threads.calls} calls differ"],
            remedy,
        )
    if not runs.threads.calls:
        what = "end on" if runs.subject.hangs_elsewhere else "take"
        return skipped(check, f"the kernel does not {what} the same values in another order")
    serial = "" if runs.job.call.reentrant else ", one at a time (reentrant=False)"
    return passed(check, f"{runs.threads.calls} calls side by side{serial}")


def unique(lines: Iterable[str]) -> list[str]:
    """Returns lines without repetitions."""
    return list(dict.fromkeys(lines))


def unwritten_lines(
    outputs: Sequence[jax.ShapeDtypeStruct],
    one: Run,
    other: Run,
    aliased: Sequence[int],
    is_stateful: bool,
) -> list[str]:
    """Reports per output which elements kept a byte of poison in both runs, poisoned unlike.

    Outputs in `aliased` hold an input before the call, and no poison. A stateful op may write a
    byte that is this poison in one run, and that one in the other: of its elements all bytes count.
    """
    lines = []
    whole = np.all if is_stateful else np.any
    for index, struct in enumerate(outputs):
        if index in aliased:
            continue
        kept = np.logical_and.reduce(
            [
                np.frombuffer(run.outputs[index], np.uint8) == poison
                for run, poison in zip((one, other), POISONS, strict=True)
            ]
        )
        elements = np.flatnonzero(whole(kept.reshape(-1, struct.dtype.itemsize), axis=1))
        if elements.size:
            lines.append(_located("output", index, struct, elements, "not written"))
    return lines


def _no_bool_lines(runs: Runs) -> list[str]:
    """Reports which elements of outputs of dtype bool are no bool."""
    lines = []
    for index, struct in enumerate(runs.outputs):
        if struct.dtype == bool:
            elements = np.flatnonzero(np.frombuffer(runs.back.outputs[index], np.uint8) > 1)
            if elements.size:
                lines.append(_located("output", index, struct, elements, "neither 0 nor 1"))
    return lines


def difference_lines(outputs: Sequence[jax.ShapeDtypeStruct], one: Run, other: Run) -> list[str]:
    """Reports per output which elements two runs made differ."""
    lines = []
    for index, struct in enumerate(outputs):
        left, right = (np.frombuffer(run.outputs[index], np.uint8) for run in (one, other))
        unlike = (left != right).reshape(-1, struct.dtype.itemsize).any(1)
        # What was never written differs by its poison alone; that is another check's finding.
        kept = (left == POISONS[0]) & (right == POISONS[1])
        unlike &= ~kept.reshape(-1, struct.dtype.itemsize).any(1)
        elements = np.flatnonzero(unlike)
        if elements.size:
            lines.append(_located("output", index, struct, elements, "different"))
    return lines


def _located(
    kind: str, index: int, struct: jax.ShapeDtypeStruct, elements: np.ndarray, what: str
) -> str:
    """Describes some elements of an array, given by their flat indices."""
    first = int(elements[0])
    index_of_first = ", ".join(str(int(i)) for i in np.unravel_index(first, struct.shape))
    total = int(np.prod(struct.shape, dtype=np.int64))
    return (
        f"{kind} {index}, {show(struct)}: {elements.size} of {total} elements {what}, the first "
        f"[{index_of_first}] at byte {first * struct.dtype.itemsize}"
    )
