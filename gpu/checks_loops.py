"""Loop kernels on a GPU: each of the corpus in `tests/`, as XLA operations and as CUDA C.

Three kinds of rows: values against numpy; gradients against those of the CPU, which the tests hold
to finite differences; times beside `jax.numpy`. `tests/test_gpu_loops.py` runs the same checks on
machines that have no GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from checks_report import Row
from checks_timing import median_us

from msops import Custom
from msops.ops import CustomRegOp

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from loop_corpus import BY_NAME, CORPUS, Case

# Beyond a warp in every dimension, and no multiple of it.
_SIZE = 70
_TIMED_CALLS = 20
_ATTRIBUTE_TYPES = {int: "int", float: "float"}

LOWERINGS = ("xla", "native")

# Cases to time, at a size, with what one would write in their place.
BESIDE: dict[str, tuple[int, Callable[..., Any]]] = {
    "add": (4096, jnp.add),
    "transpose": (4096, jnp.transpose),
    "softmax_row": (4096, lambda x: jax.nn.softmax(x, axis=1)),
    "row_sum": (4096, lambda a: a.sum(1)),
    "column_sum": (4096, lambda a: a.sum(0)),
    "full_sum": (4096, lambda a: a.sum(keepdims=True).reshape(1)),
    "outer_product": (4096, jnp.outer),
    "matmul": (1024, lambda a, b: jnp.matmul(a, b, precision="highest")),
    "gather_rows": (100_000, lambda table, index: table[index]),
    "cumulative_sum": (100_000, jnp.cumsum),
    "cholesky": (512, jnp.linalg.cholesky),
    "forward_substitution": (
        512,
        lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True),
    ),
}


def loop_checks(device: jax.Device) -> Iterator[tuple[str, Callable[[], Row]]]:
    """Yields the name of each check, and what runs it."""
    for case in CORPUS:
        for lowering in LOWERINGS:
            name = f"{case.name}, {lowering}"
            yield name, lambda case=case, lowering=lowering: run_loop_check(case, lowering, device)
            if has_gradient(case):
                yield (
                    f"{name}, gradient",
                    lambda case=case, lowering=lowering: run_gradient_check(case, lowering, device),
                )
    for name in BESIDE:
        yield f"{name}, beside jnp", lambda name=name: run_speed_check(name, device)


def run_loop_check(case: Case, lowering: str, device: jax.Device) -> Row:
    """Compares one kernel with numpy, and times the jitted call."""
    inputs = case.inputs(np.random.default_rng(0), _SIZE)
    with jax.enable_x64(True):
        arrays = [jax.device_put(array, device) for array in inputs]
        function = jax.jit(loop_op(case, len(inputs), lowering))
        results = _as_tuple(function(*arrays))
        if any(result.devices() != {device} for result in results):
            raise ValueError(f"expected the results on {device}")
        case.check(inputs, results)
        call_us = median_us(function, arrays, _TIMED_CALLS)
        name = f"{case.name}, {lowering}{_if_chosen(case, arrays, lowering)}"
    return Row(name, call_us=call_us)


def has_gradient(case: Case) -> bool:
    """Returns whether a case is a function of floats that rounding does not decide."""
    return case.tolerance > 0 and not case.tags & {"float16", "bfloat16"}


def run_gradient_check(case: Case, lowering: str, device: jax.Device) -> Row:
    """Compares the gradient of one kernel with that of its operations on the CPU."""
    name = f"{case.name}, {lowering}, gradient"
    inputs = case.inputs(np.random.default_rng(0), _SIZE)
    with jax.enable_x64(True):
        expected = _gradients(case, inputs, "xla", jax.devices("cpu")[0])
        got = _gradients(case, inputs, lowering, device)
    errors = [_relative_error(*pair) for pair in zip(got, expected, strict=True)]
    error = float(np.max(errors))
    # Values are subtracted from each other once more than forwards.
    if not error <= 10 * case.tolerance:
        return Row(name, error, failure=f"largest error {error:.2e}")
    return Row(name, error)


def run_speed_check(name: str, device: jax.Device) -> Row:
    """Times a kernel and what one would write in its place, both compared with numpy."""
    case = BY_NAME[name]
    size, by_hand = BESIDE[name]
    inputs = case.inputs(np.random.default_rng(0), size)
    arrays = [jax.device_put(array, device) for array in inputs]
    times_us = []
    for function in map(jax.jit, (loop_op(case, len(inputs), None), by_hand)):
        case.check(inputs, _as_tuple(function(*arrays)))
        times_us.append(median_us(function, arrays, _TIMED_CALLS))
    row_name = f"{name}, {_chosen(case, arrays)}, beside jnp"
    return Row(row_name, call_us=times_us[0], beside_us=times_us[1])


def _if_chosen(case: Case, arrays: Sequence[jax.Array], lowering: str) -> str:
    """Returns what a row says if msops would choose the form by itself."""
    return ", chosen" if lowering == _chosen(case, arrays) else ""


def _chosen(case: Case, arrays: Sequence[jax.Array]) -> str:
    """Returns the form that msops chooses."""
    op = _custom(case, len(arrays), None)
    explained = op.explain(*arrays, *case.attributes.values()).splitlines()[0]
    forms = {": XLA operations": "xla", ": native code": "native"}
    (chosen,) = (form for words, form in forms.items() if words in explained)
    return chosen


def _gradients(
    case: Case, inputs: Sequence[np.ndarray], lowering: str, device: jax.Device
) -> list[np.ndarray]:
    """Returns the gradients of a random projection of a case's results."""
    function = loop_op(case, len(inputs), lowering)
    floats = tuple(i for i, array in enumerate(inputs) if array.dtype.kind == "f")
    weights = [
        np.random.default_rng(1).normal(size=result.shape).astype(result.dtype)
        for result in case.expected(inputs)
    ]

    def projection(*arrays: Any) -> Any:
        results = _as_tuple(function(*arrays))
        return sum((result * weight).sum() for result, weight in zip(results, weights, strict=True))

    arrays = [jax.device_put(array, device) for array in inputs]
    return list(map(np.asarray, jax.jit(jax.grad(projection, floats))(*arrays)))


def _relative_error(got: np.ndarray, expected: np.ndarray) -> float:
    largest = float(np.abs(expected).max(initial=1.0))
    return float(np.abs(got - expected).max(initial=0.0)) / largest


def _as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def loop_op(case: Case, inputs: int, lowering: str | None) -> Callable[..., Any]:
    """Returns a case as a function of its arrays; `lowering` is None where msops is to choose."""
    op = _custom(case, inputs, lowering)
    return lambda *arrays: op(*arrays, *case.attributes.values())


def _custom(case: Case, inputs: int, lowering: str | None) -> Custom:
    """Returns the operator of a case."""
    forced = {"lower": lowering} if lowering else None
    if not case.attributes:
        return Custom(case.func, func_type="akg", compile_attrs=forced)
    info = CustomRegOp(case.name)
    names = case.func.__code__.co_varnames
    for position in range(inputs):
        info = info.input(position, names[position])
    info = info.output(0, "out")
    for name, value in case.attributes.items():
        info = info.attr(name, "required", _ATTRIBUTE_TYPES[type(value)])
    for target in ("CPU", "GPU"):
        info = info.target(target)
    return Custom(case.func, func_type="akg", compile_attrs=forced, reg_info=info.get_op_info())
