"""The op on inputs it was not shown: other extents, other dtypes."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from msops.errors import MsopsError
from msops.testing.bounds import AccessBounds, find_bounds
from msops.testing.guarded import HangError, Job, Run, run_jobs
from msops.testing.memory import difference_lines, unique, unwritten_lines
from msops.testing.memory_runs import POISONS
from msops.testing.other_inputs import resized, wrapped
from msops.testing.report import Finding, failed, passed, skipped
from msops.testing.subject import Subject
from msops.testing.tolerances import disagreements, far_apart_as_numbers

# Narrower and wider than most: a kernel that takes them for its own leaves its buffers, or leaves
# half of an output as it was.
_OTHER_DTYPES = ("float16", "float64")
# Dtypes of as many bytes with unlike bits.
_OF_ONE_SIZE = {"float32": "int32", "int32": "float32", "float64": "int64", "int64": "float64"}
# Elements of an array: more than 16 bits count, and what is too many to look at.
_LARGE, _LARGEST = 100_000, 10_000_000
# At how many sizes results have to repeat themselves before it is taken for a rule.
_ALIKE = 2


@dataclasses.dataclass(frozen=True)
class Trial:
    """The outcome of one set of inputs.

    Attributes:
      inputs: what was tried, in words.
      flat: what was tried.
      refusal: "inference", "return code" or "error" if the op would not take them; empty if it did.
      faults: what went wrong, a line each.
      results: what came of it; nothing if something went wrong.
    """

    inputs: str
    flat: tuple[np.ndarray, ...]
    refusal: str
    faults: tuple[str, ...]
    results: tuple[np.ndarray, ...] = ()


def check_sizes(subject: Subject, is_safe: bool) -> Finding:
    """Checks the op with each extent 0, with all 1, and with odd ones."""
    check = "sizes"
    cases = dict(_resized(subject))
    if not cases:
        return skipped(check, "the inputs have no extent but 1")
    trials = list(_try_out(subject, cases, is_safe))
    # A call on much larger arrays may take longer than anybody wants to wait.
    with contextlib.suppress(HangError):
        trials += _try_out(subject, dict(_enlarged(subject)), is_safe)
    faults = _fault_lines(trials)
    if not faults:
        faults = _unrepeated(subject, trials)
    if faults:
        return failed(
            check,
            "the op is wrong for other sizes than those it was given",
            faults,
            "Take loop bounds from the shapes, handle what is left of whole vectors, and return "
            "another code than 0 for sizes that the kernel does not take.",
        )
    return passed(check, _summary(trials))


def _unrepeated(subject: Subject, trials: Sequence[Trial]) -> list[str]:
    """Reports where large results do not repeat themselves, as small ones do.

    Larger inputs repeat the given ones. Where results repeat with them at two small sizes, the op
    works on each element alone, so that they have to at a large one.
    """
    shapes = [struct.shape for struct in subject.outputs().structs]
    larger = [
        trial
        for trial in trials
        if trial.results and _repeats(subject.flat, trial.flat) and trial.results[0].size
    ]
    if subject.options.stateful or len(larger) < _ALIKE or not all(map(math.prod, shapes)):
        return []
    first = larger[0].results
    blocks = [result[tuple(map(slice, shape))] for result, shape in zip(first, shapes, strict=True)]
    if [block.shape for block in blocks] != shapes:
        return []
    lines = []
    for index, trial in enumerate(larger):
        if [result.ndim for result in trial.results] != list(map(len, shapes)):
            return []
        expected = [
            wrapped(block, result.shape)
            for block, result in zip(blocks, trial.results, strict=True)
        ]
        unlike = disagreements(expected, trial.results)
        if unlike and index < _ALIKE:
            return []
        lines += [f"{trial.inputs}: {line}; at smaller sizes results repeat" for line in unlike]
    return lines


def _repeats(own: Sequence[np.ndarray], larger: Sequence[np.ndarray]) -> bool:
    """Returns whether arrays hold all of others, and then repeat them along each axis."""
    return all(
        array.size
        and all(n >= few for n, few in zip(more.shape, array.shape, strict=True))
        and np.array_equal(wrapped(array, more.shape), more, equal_nan=_is_real(array))
        for array, more in zip(own, larger, strict=True)
    )


def check_values(subject: Subject, is_safe: bool) -> Finding:
    """Checks that no value of a number crashes a kernel, or keeps it from ending."""
    check = "values"
    if _is_of_xla(subject):
        return skipped(check, "the kernel is operations of XLA's")
    with warnings.catch_warnings():  # NumPy's, of a Python function
        warnings.simplefilter("ignore")
        trials = list(_try_out(subject, dict(_revalued(subject)), is_safe))
    faults = _fault_lines(trials)
    if faults:
        return failed(
            check,
            "the op is wrong for other values than those it was given",
            faults,
            "Do not turn a number into an index or a count before its range was checked; NaN "
            "compares as false with everything.",
        )
    return passed(check, _summary(trials))


def _is_of_xla(subject: Subject) -> bool:
    """Returns whether the op is neither a function in a library nor one of Python."""
    return subject.native() is None and subject.host_function() is None


def _revalued(subject: Subject) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields inputs with the values at which kernels go wrong; integers, but for 0, stay."""
    yield "all 0", tuple(np.zeros_like(array) for array in subject.flat)
    if not any(_is_real(array) for array in subject.flat):
        return
    for name in ("NaN", "infinity", "minus infinity", "largest", "subnormal", "negative", "mixed"):
        with np.errstate(all="ignore"):
            yield (
                name,
                tuple(
                    _special(name, array) if _is_real(array) else array for array in subject.flat
                ),
            )


def _is_real(array: np.ndarray) -> bool:
    return bool(jnp.issubdtype(array.dtype, jnp.floating))


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
    if not any(array.size for array in subject.flat):
        return skipped(check, "a kernel need not run for arrays without elements")
    whole = dict(_whole_numbers(subject))
    cases = dict(_recast(subject)) | whole
    with jax.enable_x64(True):
        trials = list(_try_out(subject, cases, is_safe))
        pair = [trial for trial in trials if trial.inputs in whole]
        # The first of the pair has the dtype that the op was given.
        trials = [trial for trial in trials if trial.inputs != next(iter(whole), "")]
        faults = _fault_lines(trials)
        if len(pair) > 1 and not faults and not pair[0].faults:
            faults += _unlike_numbers(*pair)
        for trial in trials if is_safe else ():
            if trial.refusal == "return code":
                faults += _refusal_faults(subject, trial.inputs, cases[trial.inputs])
    if faults:
        return failed(
            check,
            "the op takes dtypes that its kernel does not handle",
            faults,
            "Compare `dtypes` in the kernel and return another code than 0, or say which rows it "
            "takes by op info (reg_info=CustomRegOp()...dtype_format(...)).",
        )
    return passed(check, _summary(trials))


def _fault_lines(trials: Sequence[Trial]) -> list[str]:
    """Reports what went wrong, and on which inputs."""
    return [f"{trial.inputs}: {line}" for trial in trials for line in trial.faults]


def _summary(trials: Sequence[Trial]) -> str:
    """Returns which inputs were taken, and which refused by whom."""
    groups: dict[str, list[str]] = {}
    for trial in trials:
        what = f"refused by {trial.refusal}" if trial.refusal else "taken"
        groups.setdefault(what, []).append(trial.inputs)
    return "; ".join(f"{what}: {', '.join(inputs)}" for what, inputs in groups.items())


def _resized(subject: Subject) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields inputs of other extents; extents that are equal stay so, and 1 stays 1."""
    extents = sorted({n for array in subject.flat for n in array.shape if n != 1})
    changes: dict[str, dict[int, int]] = {
        f"{extent} -> 0": {extent: 0} for extent in extents if extent
    }
    changes |= {
        "all 1": dict.fromkeys(extents, 1),
        "odd": {extent: 2 * extent + 1 for extent in extents},
        "larger odd": {extent: 8 * extent + 5 for extent in extents},
    }
    for name, change in changes.items() if extents else ():
        yield name, tuple(resized(array, change) for array in subject.flat)


def _enlarged(subject: Subject) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields inputs of which one has more elements than 16 bits count, if all stay in bounds."""
    extent = max((n for array in subject.flat for n in array.shape), default=1)
    size = max((array.size for array in subject.flat), default=0)
    if extent < 2 or not size or size > _LARGE or _is_of_xla(subject):
        return
    factor = 2
    while True:
        larger = factor * extent + 1
        shapes = ([larger if n == extent else n for n in a.shape] for a in subject.flat)
        sizes = [math.prod(shape) for shape in shapes]
        if max(sizes) > _LARGE:
            break
        factor *= 2
    if max(sizes) < _LARGEST:
        yield f"{extent} -> {larger}", tuple(resized(a, {extent: larger}) for a in subject.flat)


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


def _whole_numbers(subject: Subject) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields inputs of few whole numbers, in their own dtype and in an unlike one of that size.

    A kernel in a library that mistakes one for the other reads wrong numbers, and leaves no buffer.
    Others get arrays that know their dtype: where they read bits, they mean to.
    """
    if subject.native() is None:
        return
    own = subject.flat[0].dtype
    other = np.dtype(_OF_ONE_SIZE.get(own.name, own))
    if other == own or not all(array.dtype == own for array in subject.flat):
        return
    for dtype in (own, other):
        yield (
            f"whole numbers as {dtype.name}",
            tuple((np.rint(abs(array)) % 7 + 3).astype(dtype) for array in subject.flat),
        )


def _unlike_numbers(own: Trial, other: Trial) -> list[str]:
    """Reports where results of equal numbers in two dtypes are far apart.

    Integers are cut off, so that only what is more than that counts.
    """
    lines = []
    for index, (left, right) in enumerate(zip(own.results, other.results, strict=False)):
        if left.shape != right.shape or np.iscomplexobj(left) or bool in (left.dtype, right.dtype):
            continue
        usual, got = left.astype(np.float64), right.astype(np.float64)
        far = far_apart_as_numbers(usual, got, got if right.dtype.kind == "f" else usual)
        if far.any():
            first = tuple(int(i) for i in np.argwhere(far)[0])
            lines.append(
                f"{other.inputs}: output {index}: {far.sum()} of {far.size} elements are not those "
                f"of {own.inputs}, the first {list(first)}: {got[first]:g} instead of "
                f"{usual[first]:g}"
            )
    return lines


def _cast(array: np.ndarray, name: str) -> np.ndarray:
    real = array.real if np.iscomplexobj(array) else array
    return real.astype(name)


def _try_out(
    subject: Subject, cases: Mapping[str, tuple[np.ndarray, ...]], is_safe: bool
) -> Iterator[Trial]:
    """Tries cases: on guarded memory where the kernel is in a library, else here."""
    jobs: dict[str, Job] = {}
    others: list[Trial] = []
    lowered = set()
    for name, flat in cases.items():
        structs = tuple((array.shape, array.dtype) for array in flat)
        try:
            if structs not in lowered:
                jax.jit(subject.apply).lower(*flat)
            lowered.add(structs)
            job = subject.job(flat)
        except Exception as error:
            others.append(_refused_early(name, flat, error))
            continue
        if job is not None:
            jobs[name] = dataclasses.replace(job, poison=POISONS[0])
        elif is_safe:
            others.append(_try_here(subject, name, flat))
    backs = list(jobs.values())
    fronts = [dataclasses.replace(job, placement="front", poison=POISONS[1]) for job in backs]
    runs = run_jobs([*backs, *fronts])
    backs_of, fronts_of = runs[: len(backs)], runs[len(backs) :]
    bounds = find_bounds(backs, backs_of, fronts_of)
    trial_of = functools.partial(_trial_of, subject.options.stateful)
    yield from map(trial_of, jobs, backs, backs_of, fronts_of, bounds)
    yield from others


def _refused_early(name: str, flat: tuple[np.ndarray, ...], error: Exception) -> Trial:
    if isinstance(error, MsopsError):
        return Trial(name, flat, type(error).__name__, ())
    return Trial(name, flat, "", (f"{type(error).__name__}: {str(error).splitlines()[0]}",))


def _try_here(subject: Subject, name: str, flat: tuple[np.ndarray, ...]) -> Trial:
    try:
        return Trial(name, flat, "", (), tuple(subject.run_in_time(flat)))
    except HangError:
        raise
    except Exception as error:
        return _refused_early(name, flat, error)


def _trial_of(
    is_stateful: bool, name: str, job: Job, back: Run, front: Run, bounds: AccessBounds
) -> Trial:
    faults = [*bounds.lines, *(back.changed or front.changed)]
    results: tuple[np.ndarray, ...] = ()
    if not (back.crash or front.crash or back.error):
        aliased = [output for _, output in job.call.aliases]
        faults += unwritten_lines(job.outputs, back, front, aliased)
        if not is_stateful:
            faults += difference_lines(job.outputs, back, front)
        results = tuple(
            np.frombuffer(data, struct.dtype).reshape(struct.shape)
            for data, struct in zip(back.outputs, job.outputs, strict=True)
        )
    refusal = "return code" if back.error else ""
    return Trial(name, job.inputs, refusal, tuple(unique(faults)), results)


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
            if f"'{subject.op.name}'" in str(error):
                continue
            faults.append(f"{name}: {way}: the error does not name the op: {error}")
        else:
            faults.append(f"{name}: {way}: the kernel's code is lost")
    return faults
