"""Accesses outside of a kernel's buffers, found to the byte.

An access that terminates the process shows where it went; so each buffer lies once with its start
behind a guard page, and once with its end before one, byte for byte. An end before a guard page
aligns the start to the dtype's size, and to more only if the buffer's size is a multiple of more.
XLA promises 64 bytes, so a right kernel may fail there. Hence a fault counts only if the kernel
does the same with its buffers aligned in this way and far from the guards as it does there with
buffers at 64 bytes. Otherwise its buffers are aligned to more, and the bytes that this leaves
before the guard are canaries: a write to them is seen, a read is not.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence

import numpy as np

from msops.testing.guarded import Crash, HangError, Job, Run, arrays_of, run_jobs
from msops.testing.tolerances import disagreements

_ALIGNMENTS_BYTES = (1, 16, 32)


@dataclasses.dataclass(frozen=True)
class AccessBounds:
    """Where a kernel left its buffers.

    Attributes:
      crashes: the accesses that terminated the process, the first of each buffer and side.
      damage: per buffer with bad canaries a line that says where.
      unseen_bytes: how far beyond a buffer a read does not show; 0 if every byte does.
    """

    crashes: tuple[Crash, ...] = ()
    damage: tuple[str, ...] = ()
    unseen_bytes: int = 0

    @property
    def lines(self) -> list[str]:
        """The accesses outside, a line each."""
        # Where buffers have more room, the same access fails farther away.
        nearest: dict[str, Crash] = {}
        for crash in self.crashes:
            # Canaries show the same write, and all of its bytes.
            if crash.edge and any(line.startswith(crash.edge) for line in self.damage):
                continue
            key = crash.edge or crash_line(crash)
            nearest[key] = min(nearest.get(key, crash), crash, key=lambda one: abs(one.offset))
        return list(dict.fromkeys([*self.damage, *map(crash_line, nearest.values())]))


def crash_line(crash: Crash) -> str:
    """Returns the signal, and where the access that raised it went."""
    return f"{crash.signal}: {crash.access}" if crash.access else crash.signal


def find_bounds(
    jobs: Sequence[Job], backs: Sequence[Run], fronts: Sequence[Run]
) -> list[AccessBounds]:
    """Returns per job where the kernel left its buffers.

    Args:
      jobs: runs with the placement "back", aligned as XLA aligns buffers.
      backs: what came of them.
      fronts: what came of them with the placement "front".
    """
    flush: Sequence[Run | None] = [None] * len(jobs)
    with contextlib.suppress(HangError):
        flush = run_jobs([_aligned(job, _ALIGNMENTS_BYTES[0]) for job in jobs])
    return [_bounds(*each) for each in zip(jobs, backs, fronts, flush, strict=True)]


def _aligned(job: Job, alignment: int) -> Job:
    return dataclasses.replace(job, alignment=alignment)


def _bounds(job: Job, back: Run, front: Run, flush: Run | None) -> AccessBounds:
    tight, run = _tightest(job, back, flush)
    return AccessBounds(
        crashes=(
            *_crashes(tight, run),
            *_crashes(dataclasses.replace(job, placement="front"), front),
        ),
        damage=back.damage or front.damage,
        unseen_bytes=run.slack,
    )


def _tightest(job: Job, back: Run, flush: Run | None) -> tuple[Job, Run]:
    """Returns the run with the least alignment at which the kernel works, and what came of it."""
    if flush is None:
        return job, back
    with contextlib.suppress(HangError):  # a kernel may loop until a pointer is aligned
        for alignment in _ALIGNMENTS_BYTES:
            aligned = _aligned(job, alignment)
            run = flush if alignment == _ALIGNMENTS_BYTES[0] else run_jobs([aligned])[0]
            if _alike(job, back, run) or _works_at(job, alignment):
                return aligned, run
    return job, back


def _works_at(job: Job, alignment: int) -> bool:
    """Returns whether far from guards the kernel does the same on buffers of less alignment."""
    far = dataclasses.replace(job, far=None)
    first, again, moved = run_jobs([far, far, _aligned(far, alignment)])
    # Some kernels have other results each time.
    return _alike(job, first, moved, compare_outputs=_alike(job, first, again))


def _alike(job: Job, one: Run, other: Run, compare_outputs: bool = True) -> bool:
    """Returns whether a kernel did the same in two runs, but for the order of its sums."""
    crashes = [run.crash and (run.crash.signal, _kind_of(run.crash)) for run in (one, other)]
    if crashes[0] != crashes[1] or (one.error, one.damage) != (other.error, other.damage):
        return False
    if one.crash or not compare_outputs or one.outputs == other.outputs:
        return True
    left, right = (arrays_of(run, job.outputs) for run in (one, other))
    with np.errstate(all="ignore"):  # what was not written is poison
        return not disagreements(left, right)


def _kind_of(crash: Crash) -> str:
    """Returns what two crashes of one fault have in common.

    What glibc detects first on a damaged heap varies, as does the first byte outside of a buffer
    that lies in a guard.
    """
    return "heap" if crash.on_heap else crash.edge or crash.access


def _crashes(job: Job, run: Run) -> list[Crash]:
    """Returns how a run ended, and how it does where buffers that it has left have more room."""
    crashes: list[Crash] = []
    left: set[int] = set()
    while run.crash:
        crashes.append(run.crash)
        if run.crash.buffer is None or run.crash.buffer in left:
            break
        left.add(run.crash.buffer)
        (run,) = run_jobs([dataclasses.replace(job, far=frozenset(left))])
    return crashes
