"""The op with other values of its attributes: what is no fault of a value that makes no sense.

Which values a kernel takes is not known. So a crash, or an access outside of an array, says nothing
of a number where larger arrays are none: there may be too few elements for it. But where a kernel
returns 0, its results have to be written, to be the same again, and to be those of `jax.vmap`. Both
truth values make sense, and a number or a text that makes none has to be refused. And a whole
number between others that the kernel takes makes sense, too.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Sequence

import numpy as np

from msops.testing.attribute_values import Draw, draws_of
from msops.testing.batches import batch_lines
from msops.testing.guarded import HangError
from msops.testing.lone_places import one_alone
from msops.testing.orders import ordered_cases
from msops.testing.other_inputs import resized
from msops.testing.subject import Subject
from msops.testing.tolerances import unequal
from msops.testing.trials import (
    Arrays,
    Trial,
    TryOut,
    is_accident,
    left_in_a_row,
    results_of,
    those_that_end,
    try_each,
)

# Calls that a Python function is asked for the same result.
_AGAIN = 8
# A table without that key is a refusal.
_LOOKED_UP = re.compile(r"raised (?:KeyError|AttributeError)\b")
# Many numbers divide this one, for kernels that work in groups.
_DIVISIBLE = 12


def attribute_lines(subject: Subject, is_safe: bool) -> tuple[list[str], list[str]]:
    """Reports what is wrong with other values of one attribute, and names those that were tried."""
    lines: list[str] = []
    tried: list[str] = []
    for given, draws in draws_of(subject.impatient()):
        trials = _trials(draws, is_safe)
        taken = [d.value for d in draws if d.name in trials and _is_clean(trials[d.name])]
        whole = [value for value in (given, *taken) if isinstance(value, int)]
        for draw in draws:
            if draw.name not in trials:
                continue
            trial = trials[draw.name]
            is_inside = draw.is_whole and min(whole) < draw.value < max(whole)
            found: list[str] = []
            with contextlib.suppress(HangError):
                if not (trial.refusal or trial.leaves_buffers) and draw.is_near:
                    tried.append(draw.name)
                    found = _wrong_results(draw, trial, is_safe)
                elif trial.refusal:
                    found = _accident(draw, trial, is_safe) if is_inside else []
                elif is_inside or draw.has_sense or _leaves_all(draw, is_safe):
                    found = list(trial.faults)
                # Where an output lies has no say in it, whatever a value means.
                found = found or list(trial.in_place)
            lines += [f"{draw.name}: {line}" for line in found]
    return lines, tried


def _trials(draws: Sequence[Draw], is_safe: bool) -> dict[str, Trial]:
    """Returns what comes of the inputs given with each value, by its name, if it ends."""
    cases = [TryOut(draw.name, draw.subject, draw.subject.flat) for draw in draws]
    # What may not end is tried alone.
    steps = [
        case for case, draw in zip(cases, draws, strict=True) if draw.is_near or draw.value > 0
    ]
    batches = [steps, *([case] for case in cases if case not in steps)]
    return {trial.inputs: trial for batch in batches for trial in those_that_end(batch, is_safe)}


def _is_clean(trial: Trial) -> bool:
    return not (trial.refusal or trial.faults)


def _wrong_results(draw: Draw, trial: Trial, is_safe: bool) -> list[str]:
    """Reports what is wrong where the kernel takes a value, at the size given and at others."""
    other = draw.subject
    trials = [
        dataclasses.replace(trial, inputs="the inputs given"),
        *try_each([TryOut(name, other, flat) for name, flat in _sizes(other)], is_safe),
    ]
    found = [f"{t.inputs}: {line}" for t in trials for line in t.faults]
    if not found and not draw.is_whole:  # a whole number may name the place
        found = one_alone(other, ordered_cases(other, trials, is_safe), is_safe)
    if not found and is_safe and not other.options.stateful:
        found = _inconsistencies(other)
    return found or ([] if trial.subject is None else left_in_a_row(trial))


def _accident(draw: Draw, trial: Trial, is_safe: bool) -> list[str]:
    """Reports an exception that nobody raised on purpose, at any size."""
    if not is_accident(trial) or _LOOKED_UP.search(trial.reason):
        return []
    if not all(trial.refusal for trial in _at_multiples(draw, is_safe)):
        return []
    return [f"{trial.reason.splitlines()[0]} Values on both sides are taken."]


def _leaves_all(draw: Draw, is_safe: bool) -> bool:
    """Returns whether a kernel leaves its arrays, or crashes, however large these are."""
    trials = _at_multiples(draw, is_safe)
    return bool(trials) and all(trial.leaves_buffers for trial in trials)


def _at_multiples(draw: Draw, is_safe: bool) -> list[Trial]:
    """Tries a value on arrays that are many times as large; as often as a whole number says."""
    other = draw.subject
    extents = {n for array in other.flat for n in array.shape if n > 1}
    factors = {_DIVISIBLE, abs(draw.value) or 1 if draw.is_whole else _DIVISIBLE}
    multiples = [{n: factor * n for n in extents} for factor in factors]
    cases = [
        TryOut(str(index), other, tuple(resized(array, change) for array in other.flat))
        for index, change in enumerate(multiples)
    ]
    return list(try_each(cases, is_safe))


def _sizes(subject: Subject) -> Iterator[tuple[str, Arrays]]:
    extents = {n for array in subject.flat for n in array.shape if n > 1}
    for name, factor, more in (("one more", 1, 1), ("odd", 2, 1), ("larger odd", 8, 5)):
        change = {n: factor * n + more for n in extents}
        if change:
            yield name, tuple(resized(array, change) for array in subject.flat)


def _inconsistencies(subject: Subject) -> list[str]:
    """Reports where results differ from call to call, or from those of a batch."""
    first, *again = results_of(subject, [subject.flat] * _AGAIN, True)
    if first is None:
        return []
    if any(other is None or unequal(first, other) for other in again):
        return ["calls with the same inputs differ"]
    every = tuple(range(len(subject.flat)))
    if not all(np.isfinite(result).all() for result in first if result.dtype.kind in "fc"):
        return []
    return batch_lines(subject, every, every)
