"""TBE kernels on a GPU: the kernel files of `tests/`, values and gradients.

Values are compared with numpy's, gradients with those of the CPU, which the tests hold to
difference quotients. `tests/test_gpu_tbe.py` runs the same checks on machines that have no GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from checks_report import Row
from checks_timing import median_us

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from tbe_corpus import CASES, Case

_TOLERANCE = 1e-4


def tbe_checks(device: jax.Device) -> Iterator[tuple[str, Callable[[], Row]]]:
    """Yields the name of each check, and what runs it."""
    for number, case in enumerate(CASES):
        name = f"tbe {case} ({number})"
        yield name, lambda case=case, name=name: run_tbe_check(case, name, device)


def run_tbe_check(case: Case, name: str, device: jax.Device) -> Row:
    """Compares one kernel with numpy and its gradient with the CPU's; times the jitted call."""
    inputs = jax.device_put(case.inputs(), device)
    function = jax.jit(case.op())
    results = jax.tree.leaves(function(*inputs))
    if any(result.devices() != {device} for result in results):
        raise ValueError(f"expected the results on {device}")
    case.check(results, inputs)
    error = _gradient_error(case, device) if case.differentiable else None
    # Not `error > tolerance`: that would let NaN pass.
    if error is not None and not error <= _TOLERANCE:
        return Row(name, error, failure=f"gradient: largest error {error:.2e}")
    return Row(name, error, median_us(function, inputs))


def _gradient_error(case: Case, device: jax.Device) -> float:
    op = case.op()

    def total(inputs: Any) -> Any:
        floats = [r for r in jax.tree.leaves(op(*inputs)) if jnp.issubdtype(r.dtype, jnp.floating)]
        return sum((result.astype(jnp.float32) ** 2).sum() for result in floats)

    here, there = (
        jax.tree.leaves(jax.jit(jax.grad(total))(jax.device_put(case.inputs(), place)))
        for place in (device, jax.devices("cpu")[0])
    )
    errors = []
    for got, wanted in zip(here, there, strict=True):
        wide = np.asarray(wanted, "f8")
        scale = max(1.0, float(np.abs(wide).max(initial=0.0)))
        precision = 100 if wanted.dtype == jnp.float16 else 1
        difference = np.abs(np.asarray(got, "f8") - wide).max(initial=0.0)
        errors.append(float(difference) / scale / precision)
    return max(errors)
