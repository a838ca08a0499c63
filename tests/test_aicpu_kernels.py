"""Kernels of realistic size over the AICPU API: against numpy, eager, under jit and under vmap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pytest
from aicpu_cases import CASES, Case


def check(case: Case, got: Sequence[Any], inputs: Sequence[np.ndarray]) -> None:
    """Compares what one call returned with numpy."""
    outputs = case.expected(inputs)
    arrays = [np.asarray(array) for array in got]
    if case.room:
        *arrays, sizes = arrays
        rank = max(array.ndim for array in outputs)
        shapes = [(*array.shape, *[1] * (rank - array.ndim)) for array in outputs]
        np.testing.assert_array_equal(sizes, shapes)
    assert len(arrays) == len(outputs)
    for array, expected, room in zip(
        arrays, outputs, case.room or [a.shape for a in outputs], strict=True
    ):
        assert array.dtype == expected.dtype
        assert array.shape == room
        whole = np.zeros(room, expected.dtype)
        whole[tuple(slice(size) for size in expected.shape)] = expected
        if array.dtype.kind in "biu":
            np.testing.assert_array_equal(array, whole)
        else:
            wide = np.result_type(array.dtype, np.float32)
            scale = np.abs(expected.astype(wide)).max() if expected.size else 1
            np.testing.assert_allclose(
                array.astype(wide),
                whole.astype(wide),
                rtol=case.tolerance,
                atol=float(np.nan_to_num(scale)) * case.tolerance,
            )


def inputs_of(case: Case, seed: int) -> list[np.ndarray]:
    return list(case.inputs(np.random.default_rng(seed)))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_kernel_agrees_with_numpy_eagerly_and_under_jit(case: Case) -> None:
    inputs = inputs_of(case, 0)
    with jax.enable_x64(True):
        op = case.op(inputs)
        check(case, op(*inputs), inputs)
        # Other values through the compiled program.
        run = jax.jit(op)
        run(*inputs)
        inputs = inputs_of(case, 1)
        check(case, run(*inputs), inputs)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_kernel_runs_per_element_under_vmap(case: Case) -> None:
    elements = [inputs_of(case, seed) for seed in (2, 3)]
    with jax.enable_x64(True):
        op = case.op(elements[0])
        stacked = [np.stack(arrays) for arrays in zip(*elements, strict=True)]
        results = jax.jit(jax.vmap(op))(*stacked)
        for index, inputs in enumerate(elements):
            check(case, [np.asarray(result)[index] for result in results], inputs)


def test_there_are_enough_kernels() -> None:
    assert len({case.kernel for case in CASES}) >= 25
