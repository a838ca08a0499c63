"""The op on other dtypes: refused, or handled as the given one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax
import numpy as np

from msops.testing.report import Finding, failed, passed, skipped
from msops.testing.subject import Subject
from msops.testing.tolerances import far_apart_as_numbers
from msops.testing.trials import NOT_TRIED, Arrays, fault_lines, results_of, summary, try_out

# Narrower and wider than most: a kernel that takes them for its own leaves its buffers, or leaves
# half of an output as it was.
_OTHER_DTYPES = ("float16", "float64")
# Dtypes in which whole numbers have much the same results, if an op takes them; a Python function
# gets arrays that know their dtype, and may read integers as bits, and add up in eight bits.
_FLOATS, _OF_KERNELS = ("float32", "float64", "float16"), ("bfloat16", "int32", "int64")


def check_refusals(subject: Subject, is_safe: bool) -> Finding:
    """Checks that inputs of other dtypes do no harm, and that a refusal arrives as an error."""
    check = "refusals"
    if subject.is_handler:
        return skipped(check, NOT_TRIED)
    if not any(array.size for array in subject.flat):
        return skipped(check, "a kernel need not run for arrays without elements")
    own, *others = _comparable(subject) or ("",)
    cases = dict(_recast(subject))
    cases |= {
        f"whole numbers as {name}": _whole_numbers(subject, name)
        for name in others
        if name not in _OTHER_DTYPES
    }
    if subject.host_function() is not None:  # what comes of them is its own affair
        cases["integers"] = _whole_numbers(subject, "int32")
    with jax.enable_x64(True):
        trials = list(try_out(subject, cases, is_safe))
        taken = {trial.inputs.split()[-1] for trial in trials if trial.results}
        faults = fault_lines(trials)
        if not faults and taken.intersection(others):
            names = [own, *(name for name in others if name in taken)]
            faults = _unlike_dtypes(subject, names, is_safe)
        if not faults and own in _FLOATS and "float64" in {own, *taken}:
            faults = _short_results(subject, is_safe)
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


def _cast(array: np.ndarray, name: str) -> np.ndarray:
    real = array.real if np.iscomplexobj(array) else array
    return real.astype(name)


def _comparable(subject: Subject) -> tuple[str, ...]:
    """Returns the dtypes in which whole numbers should have much the same results; own first.

    A kernel in a library that mistakes one for the other reads wrong numbers, and leaves no buffer.
    """
    own = subject.flat[0].dtype
    known = (*_FLOATS, *(_OF_KERNELS if subject.native() else ()))
    if subject.is_of_xla or own.name not in known:
        return ()
    alike = all(array.dtype == own for array in subject.flat)
    return tuple(dict.fromkeys((own.name, *known))) if alike else ()


def _whole_numbers(subject: Subject, dtype: str, sign: int = 1) -> tuple[np.ndarray, ...]:
    """Returns inputs of few whole numbers, each second with a sign."""
    # NumPy makes numbers of arrays without axes.
    numbers = [np.asarray(np.rint(abs(array)) % 7 + 3) for array in subject.flat]
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


def _short_results(subject: Subject, is_safe: bool) -> list[str]:
    """Reports outputs of float64 whose numbers are all of float32, where those of inputs are not.

    Numbers of few digits, as whole ones are, may be meant, and one number in all places.
    """
    inputs = tuple(array.astype("float64") * (1 + 2.0**-40) for array in subject.flat)
    (results,) = results_of(subject, [inputs], is_safe)
    lines = []
    for index, result in enumerate(results or ()):
        if result.dtype != np.float64:
            continue
        numbers = result[np.isfinite(result)]
        with np.errstate(over="ignore"):
            short = numbers.astype("float32")
            long = np.unique(numbers[numbers != short.astype("float16")])
        if np.array_equal(short, numbers) and len(long) >= min(2, result.size):
            lines.append(
                f"all float64: output {index}: all of {numbers.size} elements have the digits of "
                "float32"
            )
    return lines


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
