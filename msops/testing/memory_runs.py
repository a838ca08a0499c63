"""The runs of a kernel between guard pages, each when a check asks for it."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from msops.testing.bounds import AccessBounds, find_bounds
from msops.testing.guarded import POISONS, HangError, Job, Run, run_jobs
from msops.testing.other_inputs import other_values, resized, rolled
from msops.testing.subject import Subject

# Extents of which each alone is another.
_EXTENTS = 3


@dataclasses.dataclass(frozen=True)
class Runs:
    """The runs of one kernel on the same inputs.

    Attributes:
      kernel: the kernel's name.
      outputs: shapes and dtypes of its outputs.
      is_stateful: whether the op says that equal calls may differ.
      aliased: the outputs that lie in the buffer of an input.
      back: in a library, buffers are aligned to 64 bytes, and end at a guard page but for what that
        leaves; `again` is the same once more.
      front: buffers begin at a guard page, and are poisoned otherwise.
      subject: the op.
    """

    kernel: str
    outputs: tuple[jax.ShapeDtypeStruct, ...]
    is_stateful: bool
    aliased: tuple[int, ...]
    back: Run
    front: Run
    again: Run
    subject: Subject

    @functools.cached_property
    def in_a_row(self) -> Run:
        """Many calls on the same inputs."""
        return self.subject.call_in_a_row()

    @property
    def left(self) -> tuple[str, ...]:
        """What many calls changed of the process that the op does not say they do, a line each."""
        return (*self.in_a_row.left, *(() if self.is_stateful else self.in_a_row.effects))

    @property
    def is_complete(self) -> bool:
        """Whether the kernel ran to its end where buffers are aligned as XLA aligns its own."""
        runs = (self.back, self.front, self.again)
        return not any(run.crash or run.error for run in runs)


@dataclasses.dataclass(frozen=True)
class GuardedRuns(Runs):
    """The runs of a kernel in a library; those that only some checks need are made for them.

    Attributes:
      job: what `back` is a run of.
      locked: the run whose inputs cannot be written; None if outputs lie in them.
      apart: then, the run whose outputs lie beside their inputs, and hold the same.
    """

    job: Job
    locked: Run | None
    apart: Run | None

    @functools.cached_property
    def bounds(self) -> AccessBounds:
        """Where the kernel left its buffers."""
        (bounds,) = find_bounds([self.job], [self.back], [self.front])
        return bounds

    @functools.cached_property
    def elsewhere(self) -> tuple[Run, Run, Run]:
        """Buffers at odd multiples of 64 bytes, and of 16, and many calls on the same memory.

        XLA asks 16 bytes of no kernel: one that does not end there is no worse for it.
        """
        jobs = [
            dataclasses.replace(self.job, placement="odd 64"),
            dataclasses.replace(self.job, in_a_row=True),
            dataclasses.replace(self.job, placement="odd 16"),
        ]
        try:
            at_64, in_a_row, at_16 = run_jobs(jobs)
        except HangError:
            at_64, in_a_row = run_jobs(jobs[:2])
            at_16 = Run(error="the kernel does not end")
        return at_64, at_16, in_a_row

    @property
    def at_64(self) -> Run:
        """The run whose buffers begin at odd multiples of 64 bytes."""
        return self.elsewhere[0]

    @property
    def at_16(self) -> Run:
        """The run whose buffers begin at odd multiples of 16 bytes."""
        return self.elsewhere[1]

    @property
    def in_a_row(self) -> Run:
        """Many calls on the same memory."""
        return self.elsewhere[2]

    @functools.cached_property
    def threads(self) -> Run:
        """The kernel on threads at once; nothing if it does not take unlike inputs.

        On some of the same size, and on some of another, if it takes these.
        """
        if self.subject.unlike is None:
            return Run()
        flats = [self.subject.unlike, *([self._elsewhere] if self._elsewhere else [])]
        beside = tuple(job for job in map(self.subject.job, flats) if job is not None)
        (run,) = run_jobs([dataclasses.replace(self.job, beside=beside)])
        return run

    @functools.cached_property
    def on_checked_heap(self) -> tuple[Run, Run]:
        """One call, and many, on a heap that glibc checks, whose size it then does not count.

        What it gives and takes back there, it fills.
        """
        environment = _checked_heap()
        if not environment:
            return self.back, self.in_a_row
        once, in_a_row = run_jobs(
            [self.job, dataclasses.replace(self.job, in_a_row=True)], environment
        )
        return once, in_a_row

    @functools.cached_property
    def _elsewhere(self) -> tuple[np.ndarray, ...] | None:
        """Inputs of other values and sizes that the kernel takes, or these in another order."""
        flat = self.subject.flat
        extents = {n for array in flat for n in array.shape if n > 1}
        smaller, larger = ({n: n + step for n in extents} for step in (-1, 1))
        cases = [
            tuple(resized(_scaled(array), smaller) for array in flat),
            tuple(resized(rolled(array), smaller) for array in flat),
            tuple(resized(rolled(array), larger) for array in flat),
            tuple(map(rolled, flat)),
        ]
        return next((case for case in cases if self.subject.stands([case])), None)

    @functools.cached_property
    def after_others(self) -> Run:
        """The run in a process in which the kernel has run before, on other values and sizes."""
        flat = self.subject.flat
        extents = {n for array in flat for n in array.shape if n > 1}
        # A kernel may keep something for each size, or by one extent of it alone.
        others = [
            tuple(resized(array, {n: n + 1}) for array in flat) for n in sorted(extents)[:_EXTENTS]
        ]
        alone = others if len(others) > 1 and self.subject.stands(others) else []
        # The first that the op takes sets what a kernel keeps.
        first = self._elsewhere
        flats = [flat for flat in (first, self.subject.unlike, *alone) if flat is not None]
        before = [job for job in map(self.subject.job, flats) if job is not None]
        if not before:
            return self.again
        # What depends on addresses differs here from `back`, too.
        before = [dataclasses.replace(job, poison=POISONS[1]) for job in before]
        *_, run = run_jobs([*before, self.job], moved=True)
        return run

    @functools.cached_property
    def after_other_attributes(self) -> dict[str, Run]:
        """By attribute, the run in a process in which the kernel has run with another value of it.

        The values that a kernel takes are not known: one that it refuses, crashes for, or writes
        outside of its buffers for is skipped.
        """
        runs: dict[str, Run] = {}
        call = self.job.call
        for name, value in call.attributes:
            for other in other_values(value):
                attributes = {**dict(call.attributes), name: other}
                changed = dataclasses.replace(call, attributes=tuple(attributes.items()))
                before = dataclasses.replace(self.job, call=changed, poison=POISONS[1])
                try:
                    first, run = run_jobs([before, self.job])
                except HangError:
                    continue
                if not (first.crash or first.error or first.damage):
                    runs[name] = run
                    break
        return runs

    @property
    def hazard(self) -> str:
        """Why the kernel may not run in this process; empty if it may.

        What `bounds` adds does no harm here: the rest of the 64 bytes in which an array ends lies
        on the same page.
        """
        alone = (self.back, self.front, self.again, self.at_64)
        runs = (*alone, self.threads, self.in_a_row, *self.on_checked_heap)
        if any(run.crash for run in runs):
            return f"kernel {self.kernel} crashes"
        if any(run.damage for run in runs):
            return f"kernel {self.kernel} writes outside its buffers"
        if self.left:
            return f"kernel {self.kernel} changes the process that it runs in"
        return ""


def _checked_heap() -> dict[str, str]:
    """Returns the environment in which glibc checks its heap; empty if it has not the library."""
    # Files that a process has mapped may have names that are not UTF-8.
    with open("/proc/self/maps", errors="surrogateescape") as maps:
        libc = next((line.split()[-1] for line in maps if "libc.so.6" in line), "")
    checker = Path(libc).with_name("libc_malloc_debug.so.0") if libc else None
    if checker is None or not checker.exists():
        return {}
    return {"LD_PRELOAD": str(checker), "MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165"}


def _scaled(array: np.ndarray) -> np.ndarray:
    """Returns unlike values in another order; integers, which may be indices, stay."""
    unlike = rolled(array)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        return unlike
    return (unlike * array.dtype.type(2) + array.dtype.type(1)).astype(array.dtype)


def run_on_guarded_memory(subject: Subject) -> GuardedRuns | None:
    """Returns the runs of a kernel in a library; None for any other kernel."""
    job = subject.job()
    if job is None:
        return None
    job = dataclasses.replace(job, poison=POISONS[0])
    front = dataclasses.replace(job, placement="front", poison=POISONS[1])
    in_place = bool(job.call.aliases)
    changed = dataclasses.replace(job, apart=in_place, locked=not in_place)
    back, before, again, other = run_jobs([job, front, job, changed])
    return GuardedRuns(
        kernel=job.call.kernel_name,
        outputs=job.outputs,
        is_stateful=bool(subject.options.stateful),
        aliased=tuple(output for _, output in job.call.aliases),
        back=back,
        front=before,
        again=again,
        subject=subject,
        job=job,
        locked=None if in_place else other,
        apart=other if in_place else None,
    )


def run_in_python(subject: Subject) -> Runs | None:
    """Returns the runs of a Python function over poisoned arrays; None for any other kernel."""
    function = subject.host_function()
    if function is None:
        return None
    back, front, again = (
        subject.call_function(function, subject.flat, poison)
        for poison in (POISONS[0], POISONS[1], POISONS[0])
    )
    return Runs(
        kernel=subject.op.__name__,
        outputs=subject.outputs().structs,
        is_stateful=bool(subject.options.stateful),
        aliased=tuple(output for _, output in function.inplace),
        back=back,
        front=front,
        again=again,
        subject=subject,
    )
