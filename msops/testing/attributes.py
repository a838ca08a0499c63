"""The op with other values of its attributes: what is no fault of a value that makes no sense.

Which values a kernel takes is not known. So a crash, or an access outside of an array, says nothing
here: the value may be an axis that is not there. But where a kernel returns 0, its results have to
be written, to be the same again, and to be those of `jax.vmap`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from msops.testing.batches import batch_lines
from msops.testing.guarded import HangError
from msops.testing.lone_places import one_alone
from msops.testing.orders import ordered_cases
from msops.testing.other_inputs import resized
from msops.testing.subject import Subject
from msops.testing.tolerances import unequal
from msops.testing.trials import Arrays, results_of, try_out

# Of an axis most values make no sense: a kernel in a library may then write nothing.
_NAMES_OF_AXES = ("axis", "axes", "dim", "perm")
# Calls that a Python function is asked for the same result.
_AGAIN = 8


def attribute_lines(subject: Subject, is_safe: bool) -> tuple[list[str], list[str]]:
    """Reports what is wrong with other values of one attribute, and names those that were tried."""
    lines: list[str] = []
    tried: list[str] = []
    for name, is_whole, other in _others(subject):
        with contextlib.suppress(HangError):
            trials = list(try_out(other, dict(_sizes(other)), is_safe))
            if any(trial.refusal or trial.leaves_buffers for trial in trials[:1]):
                continue
            tried.append(name)
            found = [f"{t.inputs}: {line}" for t in trials for line in t.faults]
            if not found and not is_whole:  # a whole number may name the place
                found = one_alone(other, ordered_cases(other, trials, is_safe), is_safe)
            if not found and is_safe and not subject.options.stateful:
                found = _inconsistencies(other)
            lines += [f"{name}: {line}" for line in found]
    return lines, tried


def _others(subject: Subject) -> Iterator[tuple[str, bool, Subject]]:
    """Yields the op with other values of an attribute, in words, and whether it is whole."""
    given = subject.call.given
    in_library = subject.native() is not None
    for index, (name, value) in enumerate(zip(subject.call.names, given, strict=False)):
        is_axis = any(word in name.lower() for word in _NAMES_OF_AXES)
        if not (in_library and is_axis):
            for other in _values(value):
                changed = (*given[:index], other, *given[index + 1 :])
                is_whole = isinstance(value, int) and not isinstance(value, bool)
                yield f"{name}={other!r}", is_whole, subject.on(subject.flat, changed)


def _values(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, 2 * value + 3]
    if isinstance(value, float):
        return [2 * value + 1, value / 2, -value - 1]
    return []


def _sizes(subject: Subject) -> Iterator[tuple[str, Arrays]]:
    flat = subject.flat
    yield "the inputs given", flat
    extents = {n for array in flat for n in array.shape if n > 1}
    for name, factor, more in (("one more", 1, 1), ("odd", 2, 1), ("larger odd", 8, 5)):
        change = {n: factor * n + more for n in extents}
        if change:
            yield name, tuple(resized(array, change) for array in flat)


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
