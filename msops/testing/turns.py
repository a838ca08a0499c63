"""Results that depend on which calls came before.

The same calls are made in one order and in the other, each time in a process in which none was made
yet. What a kernel keeps from its first call, or by a key that leaves out an attribute, a size or a
number, then belongs to another call.
"""

from __future__ import annotations

import contextlib
import dataclasses
import marshal
import os
import select
import signal
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import jax
import numpy as np

from msops._calls.host_function import HostFunction
from msops.testing.attribute_values import draws_of
from msops.testing.guarded import POISONS, Run, arrays_of, run_jobs
from msops.testing.other_inputs import is_real, other_elements, resized, rolled
from msops.testing.python_calls import call_here
from msops.testing.spent_time import Stopwatch
from msops.testing.subject import Subject
from msops.testing.tolerances import disagreements
from msops.testing.trials import Trial

# How long the calls of a process may take: a function that waits for a thread waits for ever.
_LIMIT_S, _LOOK_S = 1.5, 0.1
# Other values of each attribute, and elements of the largest array.
_VALUES, _MOST = 3, 20_000


@dataclasses.dataclass(frozen=True)
class _Call:
    """A call of a function, of which all is known that has to be inferred."""

    function: HostFunction
    flat: tuple[np.ndarray, ...]
    structs: tuple[jax.ShapeDtypeStruct, ...]

    def outputs(self) -> tuple[bytes, ...] | None:
        """Makes the call; returns the bytes that come of it, None if it raises."""
        run = call_here(self.function, self.flat, self.structs, POISONS[0])
        return None if run.error else run.outputs


Outputs: TypeAlias = dict[str, "tuple[bytes, ...] | None"]
"""By what was called, the bytes that came of it; None if the function raised."""


def lines_of_turns(subject: Subject) -> list[str]:
    """Reports results of a Python function that depend on the order of calls.

    It must not have been called yet. Each order is one of a copy of this process.
    """
    function = None
    with contextlib.suppress(Exception):  # where nothing is inferred, another check says so
        function = subject.host_function()
    if function is None or subject.options.stateful:
        return []
    cases: dict[str, _Call] = {}
    for name, case in _cases(subject):
        with contextlib.suppress(Exception):  # the op does not take it
            case.check_taken(case.flat)
            function = case.host_function()
            if function is not None:
                cases[name] = _Call(function, case.flat, case.outputs().structs)
    forth = _in_a_copy(cases)
    back = _in_a_copy(dict(reversed(cases.items()))) if forth else {}
    lines = []
    for name in forth.keys() & back.keys():
        structs = cases[name].structs
        runs = [Run(outputs=found) for found in (forth[name], back[name]) if found is not None]
        if len(runs) == 1:
            lines.append(f"{name}: it raises or not, as other calls came before")
        elif runs:
            one, other = (arrays_of(run, structs) for run in runs)
            lines += [f"{name}: {line}" for line in disagreements(one, other)]
    return sorted(lines)


def _cases(subject: Subject) -> Iterator[tuple[str, Subject]]:
    """Yields the op on what may be taken for something else by what a function keeps."""
    flat = subject.flat
    other = tuple(other_elements(array, 2)[1] for array in flat)
    extents = {n for array in flat for n in array.shape if n > 1}
    # Of the size given, the caller may have called it before.
    new = {n: 2 * n + 3 for n in extents}
    elsewhere = tuple(resized(array, new) for array in flat)
    for _, draws in draws_of(subject):
        for draw in [draw for draw in draws if draw.is_near][:_VALUES]:
            yield draw.name, draw.subject.on(other)
            yield f"{draw.name}, another size", draw.subject.on(elsewhere)
    yield "another size", subject.on(elsewhere)
    for step in (-1, 1):
        for extent in sorted(extents):
            changed = tuple(resized(rolled(array), {extent: extent + step}) for array in flat)
            yield f"{extent} -> {extent + step}", subject.on(changed)
    for name, zero in (("0", 0.0), ("-0", -0.0)):
        yield name, subject.on(tuple(np.full_like(a, zero) if is_real(a) else a for a in flat))
    narrow = tuple(array.astype(np.float16) if is_real(array) else array for array in other)
    yield "as float16", subject.on(narrow)
    yield "other numbers", subject.on(other)
    yield "the inputs given", subject


def _in_a_copy(cases: Mapping[str, _Call]) -> Outputs:
    """Returns what comes of calls, one after the other, in a copy of this process.

    Nothing if they do not end: a copy has no other threads, which a function may need.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():  # of forks where there are threads
        warnings.simplefilter("ignore")
        try:
            process = os.fork()
        except OSError:  # no memory for it, or no number
            os.close(reading)
            os.close(writing)
            return {}
    if not process:
        try:
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            with os.fdopen(writing, "wb") as file:
                marshal.dump({name: case.outputs() for name, case in cases.items()}, file)
        finally:
            os._exit(0)
    os.close(writing)
    data = b"".join(_read_in_time(reading, Stopwatch(process)))
    os.close(reading)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    found: Outputs = {}
    with contextlib.suppress(EOFError, ValueError, TypeError):  # it was cut off
        found = marshal.loads(data)
    return found


def _read_in_time(descriptor: int, watch: Stopwatch) -> Iterator[bytes]:
    """Yields what a process writes, until it ends or has used its time."""
    while watch.read_s() < _LIMIT_S:
        if not select.select([descriptor], [], [], _LOOK_S)[0]:
            continue
        part = os.read(descriptor, 1 << 16)
        if not part:
            return
        yield part


def lines_of_turns_in_library(trials: Sequence[Trial]) -> list[str]:
    """Reports results of a kernel in a library that are others where later calls come first."""
    cases = [
        (trial, trial.job)
        for trial in reversed(trials)
        if trial.job and trial.results and max(a.size for a in trial.flat) <= _MOST
    ]
    runs = run_jobs([job for _, job in cases])
    return [
        f"{trial.inputs}, after other sizes: {line}"
        for (trial, job), run in zip(cases, runs, strict=True)
        if not (run.crash or run.error)
        for line in disagreements(trial.results, arrays_of(run, job.outputs))
    ]
