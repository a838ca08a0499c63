"""The op on other numbers than those it was given, and with other attributes."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np

from msops.testing.attributes import attribute_lines
from msops.testing.bad_inputs import with_bad_integers
from msops.testing.exponentials import lines_at_exponentials
from msops.testing.lone_zeros import lines_at_zeros, with_leading_zeros
from msops.testing.low_bits import overflow_lines, rounded_lines
from msops.testing.narrow_rows import lines_of_rows
from msops.testing.other_inputs import is_real
from msops.testing.report import Finding, failed, passed, skipped
from msops.testing.subject import Subject
from msops.testing.trials import Trial, fault_lines, summary, those_that_end, tries, try_out

# Between usual numbers and the largest: what has become an index then misses a table, but still
# lies in the address space. Those of a dtype that does not have them are infinite there.
_SIZES = (1e7, -1e4, 1e2, -1e9, 3e1, 1e12, -1e15, 1e20)

_WRONG = "the op is wrong for other values than those it was given"
_OF_ZEROS = "Divide by no number before it is known not to be 0."
_OF_EXPONENTIALS = (
    "Subtract the largest number before exp: exp(x - max(x)); or write what has the same limit "
    "without it, as log1p(exp(-abs(x))) + max(x, 0)."
)
_OF_ROWS = "Convert to a wider dtype before the arithmetic, and back after it."

# A number of an attribute that a float of 16 bits has, too.
_LANDMARK = 60_000


def check_values(subject: Subject, is_safe: bool) -> Finding:
    """Checks that no value of a number crashes a kernel, or keeps it from ending."""
    check = "values"
    if subject.is_of_xla:
        cases = dict(with_leading_zeros(subject))
        if lines := lines_at_zeros(subject, list(try_out(subject, cases, is_safe)), is_safe):
            return failed(check, _WRONG, lines, _OF_ZEROS)
        if lines := lines_at_exponentials(subject, is_safe):
            return failed(check, _WRONG, lines, _OF_EXPONENTIALS)
        if lines := lines_of_rows(subject, is_safe):
            return failed(check, _WRONG, lines, _OF_ROWS)
        return skipped(check, "the kernel runs in programs of XLA alone")
    with warnings.catch_warnings():  # NumPy's, of a Python function
        warnings.simplefilter("ignore")
        trials = [
            # What a kernel does only where it meets a NaN, such as to write it to a file.
            dataclasses.replace(trial, may_leave=trial.may_leave or trial.inputs == "mixed")
            for trial in try_out(subject, dict(_revalued(subject)), is_safe)
        ]
        faults = fault_lines(trials)
        faults = faults or lines_at_zeros(subject, trials, is_safe)
        faults = faults or rounded_lines(subject, is_safe) or overflow_lines(subject, is_safe)
        narrow = [] if faults else lines_of_rows(subject, is_safe)
        lost = [] if faults or narrow else lines_at_exponentials(subject, is_safe)
        no_indices = [] if faults or narrow or lost else _on_bad_integers(subject, is_safe)
        faults += fault_lines(no_indices)
        unlike, attributes = (
            ([], []) if faults or narrow or lost else attribute_lines(subject, is_safe)
        )
    if unlike:
        return failed(
            check,
            "the op is wrong for other values of an attribute",
            unlike,
            "Handle the value, or refuse it: return another code than 0, or raise in out.",
        )
    if narrow:
        return failed(check, _WRONG, narrow, _OF_ROWS)
    if lost:
        return failed(check, _WRONG, lost, _OF_EXPONENTIALS)
    if faults:
        return failed(
            check,
            _WRONG,
            faults,
            "Do not turn a number into an index or a count before its range was checked; NaN "
            "compares as false with everything.",
        )
    also = f"; attributes: {', '.join(attributes)}" if attributes else ""
    also += f"; {len(no_indices)} choices of integers that may be no index" if no_indices else ""
    return passed(check, summary(trials) + also)


def _on_bad_integers(subject: Subject, is_safe: bool) -> list[Trial]:
    """Tries integers that may be no index; what does not end on them may count with them."""
    shapes = [struct.shape for struct in subject.outputs().structs]
    other = subject.impatient()
    cases = dict(with_bad_integers(subject.flat, shapes))
    return those_that_end(tries(other, cases, may_raise=True), is_safe)


def _revalued(subject: Subject) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields inputs with the values at which kernels go wrong; of integers 0 and -1."""
    yield "all 0", tuple(np.zeros_like(array) for array in subject.flat)
    signed = [i for i, array in enumerate(subject.flat) if _is_signed(array)]
    if signed:
        yield "integers of -1", _replaced(subject.flat, dict.fromkeys(signed, -1))
    if signed and subject.native():  # in a process of its own: a count may be the magnitude
        least = int(np.iinfo(subject.flat[signed[0]].dtype).min)
        others = dict.fromkeys(signed[1:], -1)
        yield "smallest integers, and -1", _replaced(subject.flat, {signed[0]: least, **others})
    if not any(is_real(array) for array in subject.flat):
        return
    names = ("NaN", "infinity", "minus infinity", "largest", "subnormal", "negative", "mixed")
    for name in (*names, "of many sizes"):
        with np.errstate(all="ignore"):
            yield (
                name,
                tuple(_special(name, array) if is_real(array) else array for array in subject.flat),
            )
    numbers = list(_landmarks(subject))
    yield (
        "numbers of attributes, and 1",
        tuple(
            np.resize(numbers, a.shape).astype(a.dtype) if is_real(a) else a for a in subject.flat
        ),
    )
    yield from with_leading_zeros(subject)


def _landmarks(subject: Subject) -> Iterator[float]:
    """Yields numbers at which an interval of a kernel may end."""
    for value in subject.call.given:
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, (int, float)) and abs(number) <= _LANDMARK:
                yield float(number)
    yield from (1.0, -1.0, 0.0)


def _replaced(flat: tuple[np.ndarray, ...], numbers: dict[int, int]) -> tuple[np.ndarray, ...]:
    """Returns arrays of which some hold one number each."""
    return tuple(np.full_like(a, numbers[i]) if i in numbers else a for i, a in enumerate(flat))


def _is_signed(array: np.ndarray) -> bool:
    return bool(np.issubdtype(array.dtype, np.signedinteger))


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
    if name == "of many sizes":
        return np.resize(_SIZES, array.shape).astype(array.dtype)
    # One of them here and there, so that a kernel meets it after usual numbers.
    mixed = np.array(array)
    flat = mixed.reshape(-1)
    for index, value in enumerate([*values.values(), 0.0, -0.0]):
        flat[index :: 2 * len(values) + 4] = value
    return mixed
