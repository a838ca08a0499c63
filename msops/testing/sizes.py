"""The op on inputs it was not shown: other extents, other dtypes."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import warnings
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np

from msops.testing.attributes import attribute_lines
from msops.testing.bounds import crash_line
from msops.testing.corners import changed_corners
from msops.testing.guarded import HangError, run_jobs
from msops.testing.lone_places import one_alone
from msops.testing.orders import is_of_elements, ordered_cases, out_of_order
from msops.testing.other_inputs import (
    enlarged,
    is_real,
    resized,
    stretched,
    with_many_rows,
    with_other_ranks,
)
from msops.testing.repeats import unrepeated
from msops.testing.report import Finding, failed, passed, skipped
from msops.testing.subject import Subject
from msops.testing.tolerances import far_apart_as_numbers
from msops.testing.trials import Arrays, Trial, fault_lines, results_of, summary, try_out

# Narrower and wider than most: a kernel that takes them for its own leaves its buffers, or leaves
# half of an output as it was.
_OTHER_DTYPES = ("float16", "float64")
# Dtypes in which whole numbers have much the same results, if an op takes them; a Python function
# gets arrays that know their dtype, and may read integers as bits.
_FLOATS, _INTEGERS = ("float32", "float64", "float16"), ("int32", "int64")
# Elements of an array: more than 16 bits count, and what is too many to look at.
_LARGE, _LARGEST = 100_000, 10_000_000
# More elements along one axis than kernels handle at a time, and few enough to be called often. Of
# longer sums, rounding hides what is missing.
_MANY, _MOST = (1000, 8192), 40_000
_NOT_TRIED = "a handler of XLA could end this process"


def check_sizes(subject: Subject, is_safe: bool) -> Finding:
    """Checks the op with each extent 0, with all 1, with odd ones, and with other ranks."""
    check = "sizes"
    if subject.is_handler:
        return skipped(check, _NOT_TRIED)
    cases = dict(_resized(subject))
    ranks = dict([*with_other_ranks(subject.flat), *with_many_rows(subject.flat)])
    if not cases and not ranks:
        return skipped(check, "the inputs have no axis")
    trials = list(try_out(subject, cases, is_safe))
    # A function that infers a shape of one rank may raise anything for another.
    trials += try_out(subject, ranks, is_safe, may_raise=True)
    # A call on much larger arrays may take longer than anybody wants to wait.
    with contextlib.suppress(HangError):
        trials += try_out(subject, dict(_enlarged(subject)), is_safe)
    faults = fault_lines(trials)
    if not faults:
        with contextlib.suppress(HangError):
            faults = _special_places(subject, trials, is_safe) or _called_often(subject, trials)
    if faults:
        return failed(
            check,
            "the op is wrong for other sizes than those it was given",
            faults,
            "Take loop bounds from the shapes, handle what is left of whole vectors, and return "
            "another code than 0 for sizes and ranks that the kernel does not take.",
        )
    return passed(check, summary(trials))


def _special_places(subject: Subject, trials: list[Trial], is_safe: bool) -> list[str]:
    """Reports where results depend on the place or the number of inputs, but not everywhere."""
    cases = ordered_cases(subject, trials, is_safe)
    faults = unrepeated(subject, trials, is_of_elements(cases))
    return (
        faults
        or out_of_order(cases)
        or one_alone(subject, cases, is_safe)
        or changed_corners(subject, cases, is_safe)
    )


def _called_often(subject: Subject, trials: list[Trial]) -> list[str]:
    """Reports what many calls on large arrays leave, or do otherwise: some start threads there."""
    large = [trial for trial in trials if max(a.size for a in trial.flat) <= _MOST]
    trial = max(large, key=lambda trial: max(a.size for a in trial.flat), default=None)
    if trial is None or trial.job is None or not trial.results or trial.job.call.aliases:
        return []
    (run,) = run_jobs([dataclasses.replace(trial.job, in_a_row=True)])
    lines = [*run.left, *run.error.splitlines()]
    if not subject.options.stateful:
        lines += run.effects
        if run.differing:
            lines.append(f"{run.differing} of {run.calls} calls have other results")
    if run.crash:
        lines.append(crash_line(run.crash))
    return [f"{trial.inputs}, called often: {line}" for line in lines]


def check_values(subject: Subject, is_safe: bool) -> Finding:
    """Checks that no value of a number crashes a kernel, or keeps it from ending."""
    check = "values"
    if _is_of_xla(subject):
        return skipped(check, "the kernel runs in programs of XLA alone")
    with warnings.catch_warnings():  # NumPy's, of a Python function
        warnings.simplefilter("ignore")
        trials = list(try_out(subject, dict(_revalued(subject)), is_safe))
        faults = fault_lines(trials)
        unlike, attributes = ([], []) if faults else attribute_lines(subject, is_safe)
    if unlike:
        return failed(
            check,
            "the op is wrong for other values of an attribute",
            unlike,
            "Handle the value, or refuse it: return another code than 0, or raise in out.",
        )
    if faults:
        return failed(
            check,
            "the op is wrong for other values than those it was given",
            faults,
            "Do not turn a number into an index or a count before its range was checked; NaN "
            "compares as false with everything.",
        )
    also = f"; attributes: {', '.join(attributes)}" if attributes else ""
    return passed(check, summary(trials) + also)


def _is_of_xla(subject: Subject) -> bool:
    """Returns whether the op is neither a function in a library nor one of Python."""
    return subject.native() is None and subject.host_function() is None


def _revalued(subject: Subject) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields inputs with the values at which kernels go wrong; integers, but for 0, stay."""
    yield "all 0", tuple(np.zeros_like(array) for array in subject.flat)
    if not any(is_real(array) for array in subject.flat):
        return
    for name in ("NaN", "infinity", "minus infinity", "largest", "subnormal", "negative", "mixed"):
        with np.errstate(all="ignore"):
            yield (
                name,
                tuple(_special(name, array) if is_real(array) else array for array in subject.flat),
            )


def _special(name: str, array: np.ndarray) -> np.ndarray:
    info = jnp.finfo(array.dtype.type)
    values = {
        "NaN": np.nan,
        "infinity": np.inf,
        "minus infinity": -np.inf,
        "largest": float(info.max),
        "subnormal": float(info.smallest_subnormal),
    }
    if name in values:
        return np.full_like(array, values[name])
    if name == "negative":
        return (-np.abs(array) - array.dtype.type(1)).astype(array.dtype)
    # One of them here and there, so that a kernel meets it after usual numbers.
    mixed = np.array(array)
    flat = mixed.reshape(-1)
    for index, value in enumerate([*values.values(), 0.0, -0.0]):
        flat[index :: 2 * len(values) + 4] = value
    return mixed


def check_refusals(subject: Subject, is_safe: bool) -> Finding:
    """Checks that inputs of other dtypes do no harm, and that a refusal arrives as an error."""
    check = "refusals"
    if subject.is_handler:
        return skipped(check, _NOT_TRIED)
    if not any(array.size for array in subject.flat):
        return skipped(check, "a kernel need not run for arrays without elements")
    own, *others = _comparable(subject) or ("",)
    cases = dict(_recast(subject))
    cases |= {
        f"whole numbers as {name}": _whole_numbers(subject, name)
        for name in others
        if name not in _OTHER_DTYPES
    }
    with jax.enable_x64(True):
        trials = list(try_out(subject, cases, is_safe))
        taken = {trial.inputs.split()[-1] for trial in trials if trial.results}
        faults = fault_lines(trials)
        if not faults and taken.intersection(others):
            names = [own, *(name for name in others if name in taken)]
            faults = _unlike_dtypes(subject, names, is_safe)
        refused = [trial for trial in trials if trial.refusal == "return code"]
        # How an error arrives does not depend on the dtype that is refused.
        for trial in refused[:1] if is_safe else ():
            faults += _refusal_faults(subject, trial.inputs, cases[trial.inputs])
    if faults:
        return failed(
            check,
            "the op takes dtypes that its kernel does not handle",
            faults,
            "Compare `dtypes` in the kernel and return another code than 0, or say which rows it "
            "takes by op info (reg_info=CustomRegOp()...dtype_format(...)).",
        )
    return passed(check, summary(trials))


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
    for least in _MANY:
        yield from stretched(subject.flat, least, lambda flat: _results_fit(subject, flat, _MOST))


def _enlarged(subject: Subject) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields inputs of which one has more elements than 16 bits count, if all stay in bounds."""
    if _is_of_xla(subject) or max((array.size for array in subject.flat), default=0) > _LARGE:
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


def _recast(subject: Subject) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields inputs of other dtypes: all of them, and each alone."""
    for name in _OTHER_DTYPES:
        recast = tuple(_cast(array, name) for array in subject.flat)
        if any(array.dtype != own.dtype for array, own in zip(recast, subject.flat, strict=True)):
            yield f"all {name}", recast
    for index, array in enumerate(subject.flat if len(subject.flat) > 1 else ()):
        name = "float16" if array.dtype.itemsize > 2 else "float64"
        before, after = subject.flat[:index], subject.flat[index + 1 :]
        yield f"input {index} {name}", (*before, _cast(array, name), *after)


def _comparable(subject: Subject) -> tuple[str, ...]:
    """Returns the dtypes in which whole numbers should have much the same results; own first.

    A kernel in a library that mistakes one for the other reads wrong numbers, and leaves no buffer.
    """
    own = subject.flat[0].dtype
    known = (*_FLOATS, *(_INTEGERS if subject.native() else ()))
    if _is_of_xla(subject) or own.name not in known:
        return ()
    alike = all(array.dtype == own for array in subject.flat)
    return tuple(dict.fromkeys((own.name, *known))) if alike else ()


def _whole_numbers(subject: Subject, dtype: str, sign: int = 1) -> tuple[np.ndarray, ...]:
    """Returns inputs of few whole numbers, each second with a sign."""
    numbers = [np.rint(abs(array)) % 7 + 3 for array in subject.flat]
    for array in numbers:
        array.reshape(-1)[::2] *= sign
    return tuple(array.astype(dtype) for array in numbers)


def _unlike_dtypes(subject: Subject, names: list[str], is_safe: bool) -> list[str]:
    """Reports where results of equal numbers in other dtypes than the first are far apart."""
    lines = []
    for what, sign in (("whole numbers", 1), ("whole numbers of both signs", -1)):
        cases = [_whole_numbers(subject, name, sign) for name in names]
        own, *others = results_of(subject, cases, is_safe)
        for name, other in zip(names[1:], others, strict=True):
            unlike = _unlike_numbers(own, other) if own and other else []
            lines += [f"{what} as {name}: {line} as {names[0]}" for line in unlike]
    return lines


def _unlike_numbers(own: Arrays, other: Arrays) -> list[str]:
    lines = []
    for index, (left, right) in enumerate(zip(own, other, strict=False)):
        if left.shape != right.shape or np.iscomplexobj(left) or bool in (left.dtype, right.dtype):
            continue
        far = far_apart_as_numbers(left, right)
        if far.any():
            first = tuple(int(i) for i in np.argwhere(far)[0])
            lines.append(
                f"output {index}: {far.sum()} of {far.size} elements differ, the first "
                f"{list(first)}: {right[first]:g} instead of {left[first]:g}"
            )
    return lines


def _cast(array: np.ndarray, name: str) -> np.ndarray:
    real = array.real if np.iscomplexobj(array) else array
    return real.astype(name)


def _refusal_faults(subject: Subject, name: str, flat: tuple[np.ndarray, ...]) -> list[str]:
    """Reports where an error code does not arrive as an error, eagerly and compiled."""
    ways: dict[str, Callable[[], object]] = {
        "eager": lambda: subject.run(flat),
        "jit": lambda: jax.block_until_ready(jax.jit(subject.apply)(*flat)),
    }
    faults = []
    for way, call in ways.items():
        try:
            call()
        except Exception as error:
            if f"'{subject.op.__name__}'" in str(error):
                continue
            faults.append(f"{name}: {way}: the error does not name the op: {error}")
        else:
            faults.append(f"{name}: {way}: the kernel's code is lost")
    return faults
