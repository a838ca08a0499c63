"""The adjoints of random kernels against forward mode, which transposes to them."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from loop_strategies import Case, kernels
from loop_tangents import tangents

from msops._loops.adjoint import adjoint
from msops._loops.interpret import interpret
from msops._loops.intrinsics import is_float
from msops._loops.ir import Kernel
from msops._loops.text import kernel_text
from msops._loops.verify import verify


def check_transpose(kernel: Kernel, inputs: list[np.ndarray], seed: int = 0) -> Kernel:
    """Checks <u, J v> = <J^T u, v> for random u and v; returns the adjoint."""
    generator = np.random.default_rng(seed)
    directions = [generator.standard_normal(b.shape) for b in kernel.parameters]
    cotangents = [generator.standard_normal(b.shape) for b in kernel.outputs if is_float(b.dtype)]
    reverse = adjoint(kernel)
    verify(reverse)
    along = [t for b, t in zip(kernel.outputs, tangents(kernel, inputs, directions), strict=True)
             if is_float(b.dtype)]  # fmt: skip
    gradients = interpret(
        reverse, [*inputs, *cotangents], check_bounds=True, shuffle=random.Random(seed)
    )
    wanted = [d for b, d in zip(kernel.parameters, directions, strict=True) if is_float(b.dtype)]
    forward = [np.sum(u * t) for u, t in zip(cotangents, along, strict=True)]
    backward = [np.sum(g * d) for g, d in zip(gradients, wanted, strict=True)]
    scale = sum(np.sum(np.abs(u * t)) for u, t in zip(cotangents, along, strict=True))
    scale += sum(np.sum(np.abs(g * d)) for g, d in zip(gradients, wanted, strict=True))
    message = kernel_text(kernel) + "\n" + kernel_text(reverse)
    np.testing.assert_allclose(
        sum(backward), sum(forward), 0, 1e-11 * (scale + 1), equal_nan=True, err_msg=message
    )
    return reverse


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(kernels(("float64", "float64", "int32")))
def test_adjoint_transposes_forward_mode(case: Case) -> None:
    assume(any(is_float(buffer.dtype) for buffer in case.kernel.parameters))
    assume(any(is_float(buffer.dtype) for buffer in case.kernel.outputs))
    check_transpose(case.kernel, case.inputs)
