"""Trials of the op on inputs that it was not given, and what came of them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from msops.errors import InferenceValueError, MsopsError
from msops.testing.bounds import AccessBounds, find_bounds
from msops.testing.guarded import HangError, Job, Run, run_jobs
from msops.testing.memory import difference_lines, unique, unwritten_lines
from msops.testing.memory_runs import POISONS
from msops.testing.subject import Subject

Arrays: TypeAlias = tuple[np.ndarray, ...]


@dataclasses.dataclass(frozen=True)
class Trial:
    """The outcome of one set of inputs.

    Attributes:
      inputs: what was tried, in words.
      flat: what was tried.
      refusal: "inference", "return code" or "error" if the op would not take them; empty if it did.
      faults: what went wrong, a line each.
      results: what came of it; nothing if something went wrong.
      job: the run of a kernel in a library.
      leaves_buffers: whether it crashed, or reached beyond an array.
    """

    inputs: str
    flat: tuple[np.ndarray, ...]
    refusal: str
    faults: tuple[str, ...]
    results: tuple[np.ndarray, ...] = ()
    job: Job | None = None
    leaves_buffers: bool = False


def fault_lines(trials: Sequence[Trial]) -> list[str]:
    """Reports what went wrong, and on which inputs."""
    lines = [f"{trial.inputs}: {line}" for trial in trials for line in trial.faults]
    return lines or _left_by_refusals(trials)


def _left_by_refusals(trials: Sequence[Trial]) -> list[str]:
    """Reports what a kernel leaves in its process where it refuses inputs, again and again."""
    for trial in trials:
        if trial.job is not None and trial.refusal == "return code":
            (run,) = run_jobs([dataclasses.replace(trial.job, in_a_row=True, fails=True)])
            return [f"{trial.inputs}, refused: {line}" for line in run.left]
    return []


def summary(trials: Sequence[Trial]) -> str:
    """Returns which inputs were taken, and which refused by whom."""
    groups: dict[str, list[str]] = {}
    for trial in trials:
        what = f"refused by {trial.refusal}" if trial.refusal else "taken"
        groups.setdefault(what, []).append(trial.inputs)
    return "; ".join(f"{what}: {', '.join(inputs)}" for what, inputs in groups.items())


def try_out(
    subject: Subject,
    cases: Mapping[str, tuple[np.ndarray, ...]],
    is_safe: bool,
    may_raise: bool = False,
) -> Iterator[Trial]:
    """Tries cases: on guarded memory where the kernel is in a library, else here.

    Args:
      subject: the op.
      cases: inputs, by what they are in words.
      is_safe: whether the op may run in this process.
      may_raise: whether each exception is a refusal, not msops's own alone.
    """
    jobs: dict[str, Job] = {}
    others: list[Trial] = []
    lowered = set()
    for name, flat in cases.items():
        structs = tuple((array.shape, array.dtype) for array in flat)
        try:
            if structs not in lowered:
                subject.check_taken(flat)
            lowered.add(structs)
            job = subject.job(flat)
        except Exception as error:
            if may_raise:
                others.append(Trial(name, flat, type(error).__name__, ()))
            else:
                others.append(_refused_early(name, flat, error))
            continue
        if job is not None:
            jobs[name] = dataclasses.replace(job, poison=POISONS[0])
        elif is_safe:
            others.append(_try_here(subject, name, flat))
    backs = list(jobs.values())
    fronts = [dataclasses.replace(job, placement="front", poison=POISONS[1]) for job in backs]
    runs = run_jobs([*backs, *fronts])
    backs_of, fronts_of = runs[: len(backs)], runs[len(backs) :]
    bounds = find_bounds(backs, backs_of, fronts_of)
    trial_of = functools.partial(_trial_of, bool(subject.options.stateful))
    yield from map(trial_of, jobs, backs, backs_of, fronts_of, bounds)
    yield from others


def _refused_early(name: str, flat: tuple[np.ndarray, ...], error: Exception) -> Trial:
    if isinstance(error, MsopsError):
        return Trial(name, flat, type(error).__name__, ())
    return Trial(name, flat, "", (f"{type(error).__name__}: {str(error).splitlines()[0]}",))


def _try_here(subject: Subject, name: str, flat: tuple[np.ndarray, ...]) -> Trial:
    try:
        return Trial(name, flat, "", (), tuple(subject.run_in_time(flat)))
    except HangError:
        raise
    except InferenceValueError as error:  # below some size, results may have another shape
        if all(
            a.ndim == b.ndim and a.size >= b.size for a, b in zip(flat, subject.flat, strict=True)
        ):
            return Trial(name, flat, "", (str(error).splitlines()[0],))
        return _refused_early(name, flat, error)
    except Exception as error:
        return _refused_early(name, flat, error)


def _trial_of(
    is_stateful: bool, name: str, job: Job, back: Run, front: Run, bounds: AccessBounds
) -> Trial:
    faults = [*bounds.lines, *(back.changed or front.changed)]
    results: tuple[np.ndarray, ...] = ()
    if not (back.crash or front.crash or back.error):
        aliased = [output for _, output in job.call.aliases]
        faults += unwritten_lines(job.outputs, back, front, aliased, is_stateful)
        if not is_stateful:
            faults += difference_lines(job.outputs, back, front)
        results = _results_of_run(job, back)
    refusal = "return code" if back.error else ""
    leaves_buffers = bool(bounds.lines or back.crash or front.crash)
    return Trial(name, job.inputs, refusal, tuple(unique(faults)), results, job, leaves_buffers)


def results_of(subject: Subject, cases: Sequence[Arrays], is_safe: bool) -> list[Arrays | None]:
    """Returns what comes of inputs of sizes that were tried; None where the op refuses them.

    Raises:
      HangError: a call did not end in time.
    """
    found: list[Arrays | None] = [None] * len(cases)
    jobs: dict[int, Job] = {}
    of_kind: dict[Hashable, Job | None] = {}
    for index, flat in enumerate(cases):
        kind = tuple((array.shape, array.dtype) for array in flat)
        try:
            if kind not in of_kind:
                of_kind[kind] = subject.job(flat)
            job = of_kind[kind]
            if job is not None:
                jobs[index] = dataclasses.replace(job, inputs=flat)
            elif is_safe:
                found[index] = tuple(subject.run_in_time(flat))
        except HangError:
            raise
        except Exception:  # it does not take them
            continue
    runs = run_jobs(list(jobs.values()))
    for (index, job), run in zip(jobs.items(), runs, strict=True):
        if not (run.crash or run.error):
            found[index] = _results_of_run(job, run)
    return found


def _results_of_run(job: Job, run: Run) -> Arrays:
    return tuple(
        np.frombuffer(data, struct.dtype).reshape(struct.shape)
        for data, struct in zip(run.outputs, job.outputs, strict=True)
    )
