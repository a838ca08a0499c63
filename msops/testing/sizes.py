"""The op on other extents and ranks than those it was given."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator

import numpy as np

from msops.testing.bad_inputs import with_unlike_shapes
from msops.testing.bounds import crash_line
from msops.testing.corners import changed_corners
from msops.testing.guarded import HangError, run_jobs
from msops.testing.lists import list_trials, unused_lines
from msops.testing.lone_places import one_alone
from msops.testing.multiples import unlike_multiples
from msops.testing.orders import is_of_elements, ordered_cases, out_of_order
from msops.testing.other_inputs import (
    all_different,
    enlarged,
    grown,
    resized,
    stretched,
    with_many_rows,
    with_other_ranks,
    with_whole_blocks,
)
from msops.testing.repeats import unrepeated
from msops.testing.report import Finding, failed, passed, skipped
from msops.testing.size_one import undefined_lines
from msops.testing.subject import Subject
from msops.testing.trials import (
    NOT_TRIED,
    Trial,
    fault_lines,
    is_accident,
    summary,
    those_that_end,
    tries,
    try_each,
    try_out,
)
from msops.testing.turns import lines_of_turns_in_library
from msops.testing.untouched import untouched_lines

# Elements of an array: more than 16 bits count, and what is too many to look at.
_LARGE, _LARGEST = 100_000, 10_000_000
# More elements along one axis than kernels handle at a time, and few enough to be called often. Of
# longer sums, rounding hides what is missing.
_MANY, _MOST = (1000, 8192), 40_000
# And where all axes are longer than tiles.
_TILED = 10_000
# So many sizes have to be taken before one that is not is an accident.
_TAKEN = 5
_DIFFERENT = ", all different"
# What some calls in a row may take where arrays are that large.
_SHORT_S = 0.2


def check_sizes(subject: Subject, is_safe: bool) -> Finding:
    """Checks the op with each extent 0, with all 1, with odd ones, and with other ranks."""
    check = "sizes"
    if subject.is_handler:
        return skipped(check, NOT_TRIED)
    cases = dict(_resized(subject))
    ranks = dict([*with_other_ranks(subject.flat), *with_many_rows(subject.flat)])
    if not cases and not ranks:
        return skipped(check, "the inputs have no axis")
    # A function that infers a shape of one rank may raise anything for another.
    various = {**ranks, **dict(_all_different(subject))}
    tried = [*tries(subject, cases), *tries(subject, various, may_raise=True)]
    trials = list(try_each(tried, is_safe))
    # A call on much larger arrays may take longer than anybody wants to wait.
    with contextlib.suppress(HangError):
        trials += try_out(subject, dict(_enlarged(subject)), is_safe)
    shapes = dict(with_unlike_shapes(subject.flat))
    unlike = those_that_end(tries(subject, shapes, may_raise=True), is_safe)
    lists = list_trials(subject, is_safe)
    faults = fault_lines([*trials, *unlike, *lists]) or unused_lines(subject, is_safe)
    different = [trial for trial in trials if trial.inputs.endswith(_DIFFERENT)]
    trials = [trial for trial in trials if trial not in different]
    faults = faults or _limits_unmeant(subject, trials)
    if not (faults or subject.options.stateful):
        faults = lines_of_turns_in_library(trials)
    if not faults:
        alike = [trial for trial in unlike if len({a.shape for a in trial.flat}) == 1]
        with contextlib.suppress(HangError):
            fits = functools.partial(_results_fit, subject, most=_LARGE)
            faults = unlike_multiples(subject, fits, is_safe)
            faults = faults or _special_places(subject, trials, [*alike, *different], is_safe)
            faults = faults or untouched_lines(subject, trials, is_safe)
            faults = faults or undefined_lines(subject, trials, is_safe)
            faults = faults or _called_often(subject, trials)
    if faults:
        return failed(
            check,
            "the op is wrong for other sizes than those it was given",
            faults,
            "Take loop bounds from the shapes, handle what is left of whole vectors, and return "
            "another code than 0 for sizes and ranks that the kernel does not take.",
        )
    also = f"; {len(unlike)} choices of shapes that may not fit" if unlike else ""
    also += f"; {len(lists)} lengths of lists" if lists else ""
    return passed(check, summary(trials) + also)


def _special_places(
    subject: Subject, trials: list[Trial], unlike: list[Trial], is_safe: bool
) -> list[str]:
    """Reports where results depend on the place or the number of inputs, but not everywhere."""
    of_all = ordered_cases(subject, [*trials, *unlike], is_safe)
    # Of numbers that repeat, the first few have the same extremes as all. But rows that are alike
    # do not show on what a place depends.
    cases = [case for case in of_all if not case.name.endswith(_DIFFERENT)]
    faults = unrepeated(subject, trials, is_of_elements(cases), is_safe)
    return (
        faults
        or out_of_order(subject, of_all, is_safe)
        or one_alone(subject, cases, is_safe)
        or changed_corners(subject, cases, is_safe)
    )


def _limits_unmeant(subject: Subject, trials: list[Trial]) -> list[str]:
    """Reports sizes at which a function fails, as nobody meant, where all smaller ones do not."""
    resized = [
        trial
        for trial in trials
        if all(
            more.size and more.ndim == array.ndim
            for more, array in zip(trial.flat, subject.flat, strict=True)
        )
    ]
    resized.sort(key=lambda trial: max(array.size for array in trial.flat))
    taken = list(itertools.takewhile(lambda trial: not trial.refusal, resized))
    larger = resized[len(taken) :]
    if len(taken) < _TAKEN or not all(map(is_accident, larger)):
        return []
    return [f"{trial.inputs}: {trial.reason.splitlines()[0]}" for trial in larger]


def _called_often(subject: Subject, trials: list[Trial]) -> list[str]:
    """Reports what many calls on large arrays leave, or do otherwise: some start threads there."""
    taken = [trial for trial in trials if trial.results]
    by_size = sorted(taken, key=lambda trial: max(a.size for a in trial.flat))
    few = [trial for trial in by_size if max(a.size for a in trial.flat) <= _MOST]
    lines = [line for trial in few[-1:] for line in _in_a_row(subject, trial, subject.limit_s)]
    with contextlib.suppress(HangError):  # nobody has to wait for many calls on as many elements
        limit_s = min(subject.limit_s, _SHORT_S)
        for trial in by_size[len(few) :][-1:]:
            lines = lines or _in_a_row(subject, trial, limit_s, counts_memory=False)
    return lines


def _in_a_row(
    subject: Subject, trial: Trial, limit_s: float, counts_memory: bool = True
) -> list[str]:
    """Reports what calls in a row do; memory grows by that of large arrays in any case."""
    if trial.job is None or not trial.results or trial.job.call.aliases:
        return []
    (run,) = run_jobs([dataclasses.replace(trial.job, in_a_row=True, limit_s=limit_s)])
    lines = [*(run.left if counts_memory else ()), *run.error.splitlines()]
    if not subject.options.stateful:
        lines += run.effects
        if run.differing:
            lines.append(f"{run.differing} of {run.calls} calls have other results")
    if run.crash:
        lines.append(crash_line(run.crash))
    return [f"{trial.inputs}, called often: {line}" for line in lines]


def _resized(subject: Subject) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields inputs of other extents; extents that are equal stay so, and 1 stays 1."""
    extents = sorted({n for array in subject.flat for n in array.shape if n != 1})
    changes: dict[str, dict[int, int]] = {
        f"{extent} -> 0": {extent: 0} for extent in extents if extent
    }
    changes |= {
        "all 1": dict.fromkeys(extents, 1),
        "about half": {extent: (extent + 1) // 2 for extent in extents},
        "one more": {extent: extent + 1 for extent in extents},
        "odd": {extent: 2 * extent + 1 for extent in extents},
        "power of two": {extent: 1 << (2 * extent).bit_length() for extent in extents},
        "larger odd": {extent: 8 * extent + 5 for extent in extents},
    }
    if len(extents) > 1:  # fewer rows than columns, and more
        most = extents[-1]
        changes |= {
            f"{extent} -> {2 * most + extent}": {extent: 2 * most + extent} for extent in extents
        }
    for name, change in changes.items() if extents else ():
        yield name, tuple(resized(array, change) for array in subject.flat)
    larger = grown(subject.flat, _TILED, _MOST) if len(extents) > 1 else None
    if larger is not None and _results_fit(subject, larger, _MOST):
        yield "all longer than tiles", larger
    fits = functools.partial(_results_fit, subject, most=_MOST)
    yield from with_whole_blocks(subject.flat, fits)
    for least in _MANY:
        yield from stretched(subject.flat, least, fits)


def _all_different(subject: Subject) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields many numbers of which no two are equal: there tables are full, and trees deep."""
    fits = functools.partial(_results_fit, subject, most=_MOST)
    for name, flat in itertools.islice(stretched(subject.flat, _MANY[-1], fits), 1):
        yield f"{name}{_DIFFERENT}", tuple(map(all_different, flat))


def _enlarged(subject: Subject) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields inputs of which one has more elements than 16 bits count, if all stay in bounds."""
    if subject.is_of_xla or max((array.size for array in subject.flat), default=0) > _LARGE:
        return
    flat = enlarged(subject.flat, _LARGE)
    if flat is not None and _results_fit(subject, flat, _LARGEST):
        extent, larger = (
            max(n for a in arrays for n in a.shape) for arrays in (subject.flat, flat)
        )
        yield f"{extent} -> {larger}", flat


def _results_fit(subject: Subject, flat: tuple[np.ndarray, ...], most: int) -> bool:
    """Returns whether no array of a call has more elements than that."""
    shapes = [array.shape for array in flat]
    with contextlib.suppress(Exception):  # it does not take them, and will say so
        shapes += [struct.shape for struct in subject.outputs(flat).structs]
    return all(math.prod(shape) <= most for shape in shapes)
