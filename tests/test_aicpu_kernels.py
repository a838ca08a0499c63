"""Kernels of realistic size over the AICPU API: against numpy, eager, under jit and under vmap."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pytest
from aicpu_cases import CASES, EACH_SOURCE, OF_LINEAR_ALGEBRA, Case
from quick_cases import one_in

from msops import errors


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


# At every run each kernel once, but for those that compile the longest; its further cases are other
# dtypes, shapes and attributes.
FIRST = {case.kernel: case for case in reversed(CASES)}.values()
QUICK = [case for case in FIRST if case.kernel not in OF_LINEAR_ALGEBRA]
OTHERS = [pytest.param(case, marks=pytest.mark.slow) for case in CASES if case not in QUICK]


@pytest.mark.parametrize("case", [*QUICK, *OTHERS], ids=str)
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


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_kernel_of_a_source_of_its_own_agrees_with_numpy_when_optimised(case: Case) -> None:
    inputs = inputs_of(case, 0)
    with jax.enable_x64(True):
        check(case, case.op(inputs, EACH_SOURCE, None)(*inputs), inputs)


@pytest.mark.parametrize("case", [*one_in(6, QUICK), *OTHERS], ids=str)
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


# What kernels refuse, in their own words.

X = np.ones((3, 4), np.float32)
BAD_CALLS: dict[str, tuple[str, list[Any], dict[str, Any], str]] = {
    "dtype": (
        "Abs",
        [X.astype(np.uint16)],
        {},
        r"[Abs] data type of x is not supported, got [DT_U",
    ),
    "real numbers": ("Conj", [X], {}, "[Conj] needs complex numbers, got [DT_FLOAT]."),
    "two dtypes": ("Polar", [X, X.astype(np.float16)], {}, "needs inputs of one dtype, but has"),
    "two shapes": ("Polar", [X, X[:2]], {}, "[Polar] check shapes failed."),
    "no broadcasting": ("Add", [X, X[:2]], {}, "[Add] broadcast failed."),
    "number of axes": (
        "Trace",
        [np.ones((2, 2, 2), np.int64)],
        {},
        "dim of matrix input must be 2",
    ),
    "axis": (
        "CumSum",
        [np.ones((2, 2))],
        {"axis": 2, "exclusive": False, "reverse": False},
        "axis",
    ),
    "attribute": ("TopK", [X], {"k": 5}, "[TopK] k must lie in [1, 4], got 5."),
    "missing attribute": ("TopK", [X], {}, "[TopK] check failed."),
    "unsorted": ("Bucketize", [X], {"boundaries": (1.0, 0.5)}, "expected sorted boundaries"),
    "index": (
        "GatherNd",
        [X, np.full((1, 1), 3, np.int32)],
        {},
        "index 3 of row 0 is out of range",
    ),
    "sparse index": (
        "SparseToDense",
        [np.array([[0, 7]], np.int32), X[0, :1]],
        {},
        "indices[0, 1] is 7, which is out of the bounds [0, 4).",
    ),
    "sparse ranks": (
        "SparseToDense",
        [np.zeros((1, 3), np.int32), X[0, :1]],
        {},
        "create sparse tensor failed",
    ),
    "not definite": ("Cholesky", [-np.eye(3)], {}, "the input is not positive definite"),
    "not invertible": ("MatrixSolve", [np.zeros((3, 3), np.float32), X], {}, "is not invertible"),
    "rank for Eigen": (
        "BatchMatMul",
        [X, X],
        {},
        "expected a tensor of rank 3, got one of the shape",
    ),
    "list": ("AddN", [X, X[:2]], {}, "[AddN] input 1 has 8 entries, input 0 has 12."),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if kernel in OF_LINEAR_ALGEBRA else name
        for name, (kernel, *_) in BAD_CALLS.items()
    ],
)
def test_bad_call_gives_the_kernels_own_message(name: str) -> None:
    kernel, inputs, attributes, text = BAD_CALLS[name]
    outputs = 2 if kernel == "TopK" else 1
    case = Case(kernel, lambda rng: inputs, lambda *_: (X,) * outputs, attributes)
    with (
        jax.enable_x64(True),
        pytest.raises(errors.KernelError, match=f"(?s)on CPU: Compute .*{re.escape(text)}"),
    ):
        case.op(inputs)(*inputs)


# Random numbers.


def draw(kernel: str, weights: Any, like: np.ndarray, seed: int, **options: Any) -> np.ndarray:
    attributes = {"seed": seed, "seed2": 1}
    case = Case(kernel, lambda rng: [weights], lambda _: like, attributes)
    return np.asarray(case.op([weights], **options)(weights)[0])


def test_random_kernels_repeat_by_seed() -> None:
    for kernel, like in (
        ("StandardNormal", np.zeros(101, np.float32)),
        ("Randperm", np.zeros(101, np.int32)),
        ("Multinomial", np.zeros((3, 50), np.int32)),
    ):
        first, again, other = (draw(kernel, X, like, seed) for seed in (5, 5, 6))
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()


def test_random_kernels_have_their_distributions() -> None:
    normal = draw("StandardNormal", X, np.zeros(100_000, np.float32), 1)
    # Moments of the normal distribution, within five standard errors.
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((normal.astype(float) ** power).mean() - moment) < 5 * (variance / 1e5) ** 0.5
    order = draw("Randperm", X, np.zeros(5000, np.int32), 1)
    np.testing.assert_array_equal(np.sort(order), np.arange(5000))
    assert abs(np.corrcoef(order, np.arange(5000))[0, 1]) < 5 / 5000**0.5
    weights = np.array([[1, 2, 0, 1], [0, 0, 3, 0]], np.float32)
    drawn = draw("Multinomial", weights, np.zeros((2, 40_000), np.int32), 1)
    counts = np.stack([np.bincount(row, minlength=4) for row in drawn])
    np.testing.assert_allclose(counts[0] / 40_000, [0.25, 0.5, 0, 0.25], atol=5 * 0.5 / 200)
    np.testing.assert_array_equal(counts[1], [0, 0, 40_000, 0])
