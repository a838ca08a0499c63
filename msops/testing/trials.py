"""Trials of the op on inputs that it was not given, and what came of them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from msops.errors import InferenceTypeError, InferenceValueError, MsopsError
from msops.testing.bounds import AccessBounds, find_bounds
from msops.testing.exceptions import is_on_purpose, tells_of_accident
from msops.testing.guarded import POISONS, HangError, Job, Run, arrays_of, run_jobs
from msops.testing.memory import difference_lines, unique, unwritten_lines
from msops.testing.other_inputs import is_real
from msops.testing.python_settings import SettingsWatch
from msops.testing.subject import EndsProcessError, Subject

# What many calls may take besides one, on a busy machine too.
_MANY_CALLS_S = 5.0
# What NumPy says of arrays that do not fit.
_OF_SHAPES = re.compile(r"cannot reshape|could not (?:be )?broadcast|shape mismatch|not aligned")
NOT_TRIED = "a handler of XLA could end this process"

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
      may_leave: whether it may have left something in its process.
      reason: what a refusal says.
      subject: the op, if its kernel ran.
      in_place: of the faults, results that differ where an output does not lie in its input.
    """

    inputs: str
    flat: tuple[np.ndarray, ...]
    refusal: str
    faults: tuple[str, ...]
    results: tuple[np.ndarray, ...] = ()
    job: Job | None = None
    leaves_buffers: bool = False
    may_leave: bool = False
    reason: str = ""
    subject: Subject | None = None
    in_place: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class TryOut:
    """Inputs that an op is tried on, and what they are in words.

    Attributes:
      may_raise: whether each exception is a refusal, not msops's own alone.
    """

    inputs: str
    subject: Subject
    flat: Arrays
    may_raise: bool = False


def fault_lines(trials: Sequence[Trial]) -> list[str]:
    """Reports what went wrong, and on which inputs."""
    lines = [f"{trial.inputs}: {line}" for trial in trials for line in trial.faults]
    return lines or _left_behind(trials)


def _left_behind(trials: Sequence[Trial]) -> list[str]:
    """Reports what a kernel leaves in its process again and again, where it refuses inputs, too.

    Of those that it refuses, the first counts; and all that may have left something.
    """
    here = [trial.subject for trial in trials if trial.subject and trial.job is None]
    if lines := here[0].changed_settings() if here else []:
        return [f"on other inputs: {line}" for line in lines]
    refused = [trial for trial in trials if trial.refusal and trial.subject is not None][:1]
    suspected = [
        trial
        for trial in trials
        if trial.may_leave and trial.subject is not None and not any(trial is t for t in refused)
    ]
    for trial in (*refused, *suspected):
        if lines := left_in_a_row(trial):
            how = ", refused" if trial.refusal else ", called often"
            return [f"{trial.inputs}{how}: {line}" for line in lines]
    return []


def left_in_a_row(trial: Trial) -> list[str]:
    """Reports what calls in a row leave; their arrays are those of a trial in which it ran."""
    subject, fails = trial.subject, bool(trial.refusal)
    assert subject is not None
    if trial.job is not None:
        limit_s = trial.job.limit_s + _MANY_CALLS_S
        job = dataclasses.replace(trial.job, in_a_row=True, fails=fails, limit_s=limit_s)
        (run,) = run_jobs([job])
    else:
        run = subject.on(trial.flat).call_in_a_row(SettingsWatch(), fails=fails)
    return [*run.left, *(() if subject.options.stateful else run.effects)]


def summary(trials: Sequence[Trial]) -> str:
    """Returns which inputs were taken, and which refused by whom."""
    groups: dict[str, list[str]] = {}
    for trial in trials:
        what = f"refused by {trial.refusal}" if trial.refusal else "taken"
        groups.setdefault(what, []).append(trial.inputs)
    return "; ".join(f"{what}: {', '.join(inputs)}" for what, inputs in groups.items())


def tries(subject: Subject, cases: Mapping[str, Arrays], may_raise: bool = False) -> list[TryOut]:
    """Returns inputs of an op, by what they are in words, as cases."""
    return [TryOut(name, subject, flat, may_raise) for name, flat in cases.items()]


def try_out(subject: Subject, cases: Mapping[str, Arrays], is_safe: bool) -> Iterator[Trial]:
    """Tries an op on inputs, by what they are in words; see `try_each`."""
    yield from try_each(tries(subject, cases), is_safe)


def try_each(cases: Sequence[TryOut], is_safe: bool) -> Iterator[Trial]:
    """Tries cases: on guarded memory where the kernel is in a library, else here.

    Args:
      cases: what is tried.
      is_safe: whether the op may run in this process.
    """
    jobs: list[tuple[TryOut, Job]] = []
    others: list[Trial] = []
    lowered = set()
    for case in cases:
        structs = tuple((array.shape, array.dtype) for array in case.flat)
        try:
            if (case.subject, structs) not in lowered:
                case.subject.check_taken(case.flat)
            lowered.add((case.subject, structs))
            job = case.subject.job(case.flat)
        except Exception as error:
            if case.may_raise and not isinstance(error, EndsProcessError):
                others.append(Trial(case.inputs, case.flat, type(error).__name__, ()))
            else:
                others.append(_refused_early(case, error))
            continue
        if job is not None:
            jobs.append((case, dataclasses.replace(job, poison=POISONS[0])))
        elif is_safe:
            others.append(_try_here(case))
    backs = [job for _, job in jobs]
    fronts = [
        dataclasses.replace(job, placement="front", poison=POISONS[1], again=True) for job in backs
    ]
    aparts = {i: _apart(job) for i, job in enumerate(backs) if job.call.aliases}
    runs = run_jobs([*backs, *fronts, *aparts.values()])
    backs_of, fronts_of = runs[: len(backs)], runs[len(backs) : 2 * len(backs)]
    aparts_of = dict(zip(aparts, runs[2 * len(backs) :], strict=True))
    bounds = find_bounds(backs, backs_of, fronts_of)
    for i, (case, job) in enumerate(jobs):
        yield _trial_of(case, job, backs_of[i], fronts_of[i], aparts_of.get(i), bounds[i])
    yield from others


def _apart(job: Job) -> Job:
    return dataclasses.replace(job, apart=True)


def those_that_end(cases: Sequence[TryOut], is_safe: bool) -> list[Trial]:
    """Tries cases, all at once if each ends in time, else each alone; leaves out what does not."""
    try:
        return list(try_each(cases, is_safe))
    except HangError:
        found: list[Trial] = []
        for case in cases if len(cases) > 1 else ():
            found += those_that_end([case], is_safe)
        return found


def _refused_early(case: TryOut, error: Exception) -> Trial:
    if isinstance(error, EndsProcessError):
        return Trial(case.inputs, case.flat, "", (str(error),), leaves_buffers=True)
    # What `out` raises comes as it is.
    if isinstance(error, MsopsError) or is_on_purpose(error):
        return Trial(case.inputs, case.flat, type(error).__name__, (), reason=str(error))
    line = ": ".join([type(error).__name__, *str(error).splitlines()[:1]])
    return Trial(case.inputs, case.flat, "", (line,))


def _try_here(case: TryOut) -> Trial:
    subject, name, flat = case.subject, case.inputs, case.flat
    try:
        runs = subject.runs_in_python(flat, POISONS)
        if not runs:
            return Trial(name, flat, "", (), tuple(subject.run(flat)))
    except HangError:
        raise
    except Exception as error:
        return _refused_early(case, error)
    back, front = runs
    refusal = back.raised or front.raised
    if refusal is None:
        structs, is_stateful = subject.outputs(flat).structs, bool(subject.options.stateful)
        aliased = [output for _, output in subject.request(flat).aliases()]
        faults = unwritten_lines(structs, back, front, aliased, is_stateful)
        if not is_stateful:
            faults += [f"two calls: {line}" for line in difference_lines(structs, back, front)]
        faults += [f"{line}, changed" for line in back.changed]
        return Trial(
            name,
            flat,
            "",
            tuple(faults),
            tuple(arrays_of(back, structs)),
            may_leave=back.may_leave and front.may_leave,
            subject=subject,
        )
    if not case.may_raise and _is_of_inference(refusal) and _is_as_large(flat, subject.flat):
        return Trial(name, flat, "", (str(refusal).splitlines()[0],))
    refused = dataclasses.replace(_refused_early(case, refusal), subject=subject)
    # Integers, and attributes, may be counts, of which some do not fit.
    is_fit = (
        not case.may_raise
        and subject.has_given_attributes
        and all(
            (a.shape, a.dtype) == (b.shape, b.dtype) and is_real(a)
            for a, b in zip(flat, subject.flat, strict=True)
        )
    )
    if is_fit and is_accident(refused) and _OF_SHAPES.search(refused.reason):
        line = refused.reason.splitlines()[0]
        return Trial(name, flat, "", (f"shapes depend on values: {line}",))
    return refused


def _is_of_inference(error: MsopsError) -> bool:
    """Returns whether a function returned what the op does not declare."""
    return isinstance(error, (InferenceTypeError, InferenceValueError))


def _is_as_large(flat: Sequence[np.ndarray], own: Sequence[np.ndarray]) -> bool:
    """Returns whether arrays differ from others in having more elements at most.

    Below some size, results may have another shape.
    """
    return all(
        a.dtype == b.dtype and a.ndim == b.ndim and a.size >= b.size
        for a, b in zip(flat, own, strict=True)
    )


def _trial_of(
    case: TryOut, job: Job, back: Run, front: Run, apart: Run | None, bounds: AccessBounds
) -> Trial:
    is_stateful = bool(case.subject.options.stateful)
    faults = [*bounds.lines, *(back.changed or front.changed)]
    results: tuple[np.ndarray, ...] = ()
    if not (back.crash or front.crash or back.error):
        aliased = [output for _, output in job.call.aliases]
        faults += unwritten_lines(job.outputs, back, front, aliased, is_stateful)
        if not is_stateful:
            faults += difference_lines(job.outputs, back, front)
        results = tuple(arrays_of(back, job.outputs))
    in_place: list[str] = []
    # A kernel that writes through the pointer of the input, as it may, leaves the output.
    has_apart = apart and not (apart.crash or apart.error or apart.changed)
    if apart is not None and has_apart and results and not (faults or is_stateful):
        lines = difference_lines(job.outputs, back, apart)
        in_place = [f"in the memory of its input: {line}" for line in lines]
    faults += in_place
    refusal = "return code" if back.error else ""
    leaves_buffers = bool(bounds.lines or back.crash or front.crash)
    return Trial(
        case.inputs,
        job.inputs,
        refusal,
        tuple(unique(faults)),
        results,
        job,
        leaves_buffers,
        back.may_leave or front.may_leave,
        back.error,
        case.subject,
        tuple(in_place),
    )


def is_accident(trial: Trial) -> bool:
    """Returns whether a Python function refuses inputs by an exception that nobody meant."""
    return bool(trial.refusal) and tells_of_accident(trial.reason)


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
            found[index] = tuple(arrays_of(run, job.outputs))
    return found
