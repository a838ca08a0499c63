"""The op called in one way against the same called in another."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from msops._base.kernel_errors import own_error
from msops._face.context import get_context, set_context
from msops.errors import InferenceError, MsopsError
from msops.testing.guarded import show
from msops.testing.lent_threads import lines_on_lent_threads
from msops.testing.other_inputs import rolled
from msops.testing.report import Finding, failed, passed, skipped
from msops.testing.subject import Subject
from msops.testing.tolerances import disagreements, unequal

_THREADS = 2
_CALLS_PER_THREAD = 8


def check_shapes(subject: Subject) -> Finding:
    """Checks that inference, the library's own answer and the results agree."""
    check = "shapes and dtypes"
    try:
        outputs = subject.outputs()
        is_native = subject.native() is not None
    except MsopsError as error:
        return failed(check, "nothing is inferred", str(error).splitlines(), _INFER_REMEDY)
    inferred = ", ".join(map(show, outputs.structs)) or "no output"
    lines = subject.contradictions()
    if not is_native and isinstance(subject.trial, InferenceError):
        lines = str(subject.trial).splitlines()
    elif not is_native and not isinstance(subject.trial, Exception):
        got = ", ".join(map(show, subject.trial)) or "no output"
        lines = [] if got == inferred else [f"the call returns {got}"]
    if lines:
        return failed(check, f"inferred is {inferred}", lines, _INFER_REMEDY)
    return passed(check, inferred)


_INFER_REMEDY = "Fix out_shape and out_dtype, or the kernel: one of them is wrong."


def check_inputs(subject: Subject) -> Finding:
    """Checks that a call in this process leaves its inputs as they were."""
    check = "inputs unchanged"
    if isinstance(subject.trial, Exception):
        return skipped(check, "the call fails")
    arrays = [jnp.array(array) for array in subject.flat]
    jax.block_until_ready(subject.apply(*arrays))
    if unequal(subject.flat, [np.asarray(array) for array in arrays]):
        return failed(check, "the call writes to its inputs", [], "Compute on copies of them.")
    return passed(check, "bytes compared")


def check_eager_and_jit(subject: Subject) -> Finding:
    """Checks that calls give the same bytes: eager, compiled, and on two threads."""
    check = "eager and jit"
    if subject.options.stateful:
        return skipped(check, "the op is stateful")
    expected = subject.run()
    compiled = jax.jit(subject.apply)
    arrays = [jnp.array(array) for array in subject.flat]

    def run_compiled() -> list[np.ndarray]:
        return [np.asarray(result) for result in compiled(*arrays)]

    ways = {"eager, again": subject.run, "jit": run_compiled, "jit, again": run_compiled}
    lines = [
        f"{way}: {line}" for way, run in ways.items() for line in _differences(expected, run())
    ]
    with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
        # Unlike inputs: of equal ones, threads that share memory would compute the same.
        cases = [(subject.flat, expected), *_with_unlike_inputs(subject)] * _CALLS_PER_THREAD

        def work(flat: tuple[np.ndarray, ...]) -> list[np.ndarray]:
            with subject.face():
                return subject.run(flat)

        flats, wanted = zip(*cases, strict=True)
        for result, own in zip(pool.map(work, flats), wanted, strict=True):
            lines += [f"two threads: {line}" for line in _differences(own, result)]
    lines = lines or _lines_of_python(subject) or lines_on_lent_threads(subject)
    if lines:
        return failed(
            check,
            "calls with the same inputs differ",
            list(dict.fromkeys(lines)),
            "Make the op with stateful=True if that is meant; else keep nothing between calls.",
        )
    return passed(check, "same bytes, on two threads too")


def _lines_of_python(subject: Subject) -> list[str]:
    """Reports what a Python function does on threads at once: without JAX they meet more often."""
    if subject.host_function() is None:
        return []
    run = subject.call_on_threads()
    unlike = [f"two threads: {run.differing} of {run.calls} calls differ"] if run.differing else []
    return [*unlike, *(f"two threads: {line}" for line in run.error.splitlines()[:1])]


def _with_unlike_inputs(
    subject: Subject,
) -> list[tuple[tuple[np.ndarray, ...], list[np.ndarray]]]:
    """Returns other inputs, and results; none if the op refuses them."""
    return [] if subject.unlike is None else [(subject.unlike, subject.run(subject.unlike))]


def _differences(expected: list[np.ndarray], got: list[np.ndarray]) -> list[str]:
    if not unequal(expected, got):
        return []
    return disagreements(expected, got) or ["differs by rounding"]


def check_sharding(subject: Subject) -> Finding:
    """Checks divided inputs against the same on one device.

    They are divided along each dimension that the op's rule lets be divided, one at a time; without
    a rule along the first. Each time they come in two orders: parts of sorted values may be right
    where the whole is not divisible.
    """
    check = "sharding"
    count = len(jax.devices())
    if count < 2:
        return skipped(
            check, "one device; XLA_FLAGS=--xla_force_host_platform_device_count=4 gives the CPU 4"
        )
    if subject.options.stateful:
        return skipped(check, "the op is stateful")
    choices = [choice for choice in _divisions(subject, count) if choice.devices > 1]
    if not choices:
        what = "first axis of an input" if subject.dimensions() is None else "dimension of its rule"
        return skipped(check, f"no {what} divides among {count} devices")
    orders = [("", subject.flat, subject.run())]
    other = tuple(map(rolled, subject.flat))
    with contextlib.suppress(MsopsError):  # a kernel may refuse the order
        orders.append((", values in another order", other, subject.run(other)))
    lines: list[str] = []
    for choice, (order, flat, expected) in itertools.product(choices, orders):
        if any(line.startswith(f"{choice}: ") for line in lines):
            continue
        try:
            got = _run_divided(subject, choice, flat)
        except (MsopsError, jax.errors.JaxRuntimeError) as error:
            if subject.dimensions() is None and isinstance(error, MsopsError):
                return skipped(check, f"refused: {str(error).splitlines()[0]}")
            lines += [f"{choice}{order}: {line}" for line in str(error).splitlines()]
        else:
            lines += [f"{choice}{order}: {line}" for line in disagreements(expected, got)]
    if lines:
        return failed(
            check,
            "results of divided inputs differ from those on one device",
            lines,
            "Fix the op's sharding rule: a dimension it names in every output must be independent "
            "in the kernel.",
        )
    return passed(check, f"as on one device, with {', '.join(map(str, choices))}")


@dataclasses.dataclass(frozen=True)
class _Division:
    """A choice of how to divide inputs: the axis of each, over some devices."""

    name: str
    axes: tuple[int | None, ...]
    devices: int

    def __str__(self) -> str:
        return f"{self.name} over {self.devices}"


def _divisions(subject: Subject, count: int) -> list[_Division]:
    dimensions = subject.dimensions()
    if dimensions is None:
        most = [_most_devices(x.shape[0], count) if x.ndim else 1 for x in subject.flat]
        devices = max(most)
        axes = tuple(0 if x.ndim and _divides(devices, x.shape[0]) else None for x in subject.flat)
        return [_Division("the first axis", axes, devices)]
    return [
        _Division(
            name,
            tuple(names.index(name) if name in names else None for names in dimensions.inputs),
            _most_devices(size, count),
        )
        for name, size in dimensions.sizes
        if name in dimensions.independent
    ]


def _most_devices(size: int, count: int) -> int:
    return max(n for n in range(1, count + 1) if n == 1 or _divides(n, size))


def _divides(devices: int, size: int) -> bool:
    return size > 0 and size % devices == 0


def _run_divided(
    subject: Subject, choice: _Division, flat: Sequence[np.ndarray]
) -> list[np.ndarray]:
    devices = jax.devices()[: choice.devices]
    mesh = jax.make_mesh((choice.devices,), ("d",), (AxisType.Auto,), devices=devices)
    arrays = [
        jax.device_put(x, NamedSharding(mesh, _spec(axis)))
        for x, axis in zip(flat, choice.axes, strict=True)
    ]
    policy = get_context("implicit_gather")
    set_context(implicit_gather="allow")
    try:
        # A program of its own: the op's must not be compiled without its report.
        results = jax.jit(lambda *flat: subject.apply(*flat))(*arrays)
    except jax.errors.JaxRuntimeError as error:
        raise own_error(error) or error from None
    finally:
        set_context(implicit_gather=policy)
    return [np.asarray(result) for result in results]


def _spec(axis: int | None) -> PartitionSpec:
    return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, "d")
