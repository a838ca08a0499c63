"""The two forms of a loop kernel, XLA's operations and C, against each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import jax
import numpy as np

from msops._backends.loops.kernels import LoopKernel, case_of, compile_case
from msops._primitive.programs import share_programs
from msops.errors import BuildError, MsopsError
from msops.testing.bounds import crash_line
from msops.testing.guarded import Job, run_jobs
from msops.testing.other_inputs import enlarged, is_real, resized
from msops.testing.report import Finding, failed, passed, skipped
from msops.testing.subject import Subject
from msops.testing.tolerances import disagreements

# XLA computes some reductions otherwise from so many elements on.
_SPLIT = 4096
_LARGEST = 1_000_000
# An estimate. Nothing can stop operations of XLA's that take longer than anybody wants to wait.
_LONGEST_S = 2.0


def check_forms(subject: Subject) -> Finding:
    """Checks that both forms have the same results, at two sizes, with NaN and infinities too."""
    check = "forms agree"
    kernel = subject.kernel
    if not isinstance(kernel, LoopKernel):
        return skipped(check, "the kernel is no loops")
    tried, lines = [], []
    for name, flat in _sizes(subject.flat):
        for what, inputs in (("", flat), (", NaN and infinities", _special(flat))):
            try:
                results = _results(subject, kernel, inputs)
            except BuildError as error:
                return skipped(check, f"no C compiler: {str(error).splitlines()[0]}")
            except MsopsError:  # the loops do not take the size
                continue
            if results is None:
                continue
            tried += [] if what else [name]
            lines += [f"{name}{what}: {line}" for line in results]
    if not tried:
        return skipped(check, "the loops take too long")
    if lines:
        return failed(
            check,
            "the kernel's results depend on whether it becomes XLA operations or C",
            lines,
            "Look for an element that is read before it is written, or written by several "
            "iterations of a loop; otherwise report it to msops. compile_attrs={'lower': 'xla'} or "
            "'native' chooses a form.",
        )
    return passed(check, f"XLA operations and C, with NaN and infinities: {', '.join(tried)}")


def _sizes(flat: tuple[np.ndarray, ...]) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields arrays of fewer elements than XLA splits, and of more, where the shapes allow."""
    small = flat
    while _most(small) >= _SPLIT and max(n for array in small for n in array.shape) > 1:
        extent = max(n for array in small for n in array.shape)
        small = tuple(resized(array, {extent: (extent + 1) // 2}) for array in small)
    yield f"{_most(small)} elements", small
    large = flat if _most(flat) > _SPLIT else enlarged(flat, _SPLIT)
    if large is not None and _SPLIT < _most(large) <= _LARGEST:
        yield f"{_most(large)} elements", large


def _most(flat: Sequence[np.ndarray]) -> int:
    return max(array.size for array in flat)


def _special(flat: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Returns arrays with an infinity in the middle and a NaN at the end of those of floats."""
    arrays = []
    for array in flat:
        changed = array.copy()
        if is_real(array) and array.size:
            changed.reshape(-1)[array.size // 2] = -np.inf
            changed.reshape(-1)[-1] = np.nan
        arrays.append(changed)
    return tuple(arrays)


def _results(
    subject: Subject, kernel: LoopKernel, flat: tuple[np.ndarray, ...]
) -> list[str] | None:
    """Reports where results of the forms differ; None if that would take too long.

    The C runs first, in a process of its own: it can be stopped if it does not end.
    """
    native = dataclasses.replace(kernel, lower="native")
    stages = compile_case(kernel, case_of(subject.request(flat))).stages
    if stages.estimates.xla > _LONGEST_S:
        return None
    job = subject.job(flat, native)
    assert isinstance(job, Job)
    (run,) = run_jobs([job])
    if run.crash or run.error:
        return [f"C: {crash_line(run.crash) if run.crash else run.error.splitlines()[0]}"]
    of_c = [
        np.frombuffer(data, struct.dtype).reshape(struct.shape)
        for data, struct in zip(run.outputs, job.outputs, strict=True)
    ]
    definition = dataclasses.replace(
        subject.definition, kernel=dataclasses.replace(kernel, lower="xla")
    )
    program: Callable[..., Sequence[jax.Array]] = share_programs(definition).bound(subject.call)
    of_xla = [np.asarray(result) for result in program([jax.numpy.array(array) for array in flat])]
    return [f"C instead of XLA: {line}" for line in disagreements(of_xla, of_c)]
