"""The two forms of a loop kernel, XLA's operations and C, against each other; gradients, too."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import jax
import numpy as np

from msops._backends.loops.kernels import LoopKernel, case_of, compile_case
from msops.errors import BuildError, MsopsError
from msops.testing.form_runs import (
    LONGEST_S,
    NativeError,
    as_operations,
    compare_gradients,
    run_native,
)
from msops.testing.guarded import Job
from msops.testing.other_inputs import enlarged, is_real, resized
from msops.testing.report import Finding, failed, passed, skipped
from msops.testing.subject import Subject
from msops.testing.tolerances import disagreements

# XLA computes some reductions otherwise from so many elements on.
_SPLIT = 4096
_LARGEST = 1_000_000


def check_forms(subject: Subject) -> Finding:
    """Checks that both forms have the same results and gradients, at two sizes.

    Results with NaN and infinities, too, and gradients of equal elements, which share a slope.
    """
    check = "forms agree"
    kernel = subject.kernel
    if not isinstance(kernel, LoopKernel):
        return skipped(check, "the kernel is no loops")
    tried, lines = [], []
    for name, flat in _sizes(subject.flat):
        for what, compare, inputs in (
            ("", _results, flat),
            (", NaN and infinities", _results, _special(flat)),
            (", gradients", compare_gradients, flat),
            (", gradients of equal elements", compare_gradients, _repeated(flat)),
        ):
            try:
                results = compare(subject, kernel, inputs)
            except NativeError as error:
                results = [str(error)]
            except BuildError as error:
                return skipped(check, f"no C++ compiler: {str(error).splitlines()[0]}")
            except MsopsError:  # the loops do not take the size, or have no gradient
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
            "results or gradients depend on whether the kernel becomes XLA operations or C",
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


def _repeated(flat: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Returns arrays of floats whose second half is the first one again."""
    return tuple(
        np.resize(x.reshape(-1)[: (x.size + 1) // 2], x.shape) if is_real(x) and x.size else x
        for x in flat
    )


def _results(
    subject: Subject, kernel: LoopKernel, flat: tuple[np.ndarray, ...]
) -> list[str] | None:
    """Reports where results of the forms differ; None if that would take too long.

    The C runs first, in a process of its own: it can be stopped if it does not end.
    """
    native = dataclasses.replace(kernel, lower="native")
    stages = compile_case(kernel, case_of(subject.request(flat))).stages
    if stages.estimates.xla > LONGEST_S:
        return None
    job = subject.job(flat, native)
    assert isinstance(job, Job)
    of_c = run_native(job)
    of_xla = map(np.asarray, as_operations(subject, kernel)(*map(jax.numpy.array, flat)))
    return [f"C instead of XLA: {line}" for line in disagreements([*of_xla], of_c)]
