"""NaN in the extremes of loop kernels: at every size, in every form, in batches and gradients."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from extreme_kernels import (
    at_data,
    best_and_where,
    columns,
    diagonals,
    kept_at_data,
    overlapping,
    rows,
    running,
    side_by_side,
    softmax,
    whole,
)  # fmt: skip
from quick_cases import one_in
from test_extremes import DTYPES, PLACES, same, with_nan

import msops

pytestmark = pytest.mark.usefixtures("as_users_compile")


@pytest.fixture(autouse=True)
def x64() -> Any:
    """Float64, without touching JAX's global flag."""
    with jax.enable_x64(True):
        yield


SHAPES = ((4, 10), (70, 80), (4, 5000))
"""XLA takes another way from 4,096 elements on."""


def _replaced(x: np.ndarray) -> list[np.ndarray]:
    """Returns the best and its index in plain Python, where NaN is greater than nothing."""
    best, at = np.empty(len(x)), np.zeros(len(x))
    for i, row in enumerate(x):
        best[i] = row[0]
        for j, one in enumerate(row):
            if one > best[i]:
                best[i], at[i] = one, j
    return [best, at]


def _softmax(x: np.ndarray) -> list[np.ndarray]:
    shifted = np.exp(x - x.max(axis=1, keepdims=True))
    return [shifted / shifted.sum(axis=1, keepdims=True)]


KERNELS: dict[str, tuple[Callable[..., Any], Callable[[np.ndarray], list[np.ndarray]]]] = {
    "whole": (whole, lambda x: [x.max(keepdims=True)[0]]),
    "rows": (rows, lambda x: [x.min(axis=1)]),
    "columns": (columns, lambda x: [x.max(axis=0)]),
    "running": (running, lambda x: [np.maximum.accumulate(x, axis=1)]),
    "side by side": (
        side_by_side,
        lambda x: [x.reshape(len(x) // 2, 2, -1, 2).max(axis=(1, 3))],
    ),
    "overlapping": (
        overlapping,
        lambda x: [np.lib.stride_tricks.sliding_window_view(x, 3, axis=1).min(axis=2)],
    ),
    "best and where": (best_and_where, _replaced),
    "softmax": (softmax, _softmax),
}


@pytest.mark.parametrize(
    ("name", "form", "dtype", "shape"),
    one_in(13, product(KERNELS, ["xla", "native"], DTYPES, SHAPES)),
)
def test_loop_kernels_keep_nan(name: str, form: str, dtype: str, shape: tuple[int, int]) -> None:
    function, expected = KERNELS[name]
    op = msops.Custom(function, func_type="akg", compile_attrs={"lower": form})
    for place in PLACES:
        x = with_nan(shape, dtype, place)
        results = jax.tree.leaves(jax.jit(op)(x))
        batch = jax.tree.leaves(jax.vmap(op)(np.stack([x, x])))
        slopes = jax.grad(lambda x: jnp.sum(jax.tree.leaves(op(x))[0].astype(np.float32)))(x)
        assert slopes.shape == x.shape
        for got, twice, right in zip(results, batch, expected(np.float64(x)), strict=True):
            close = 0.02 if x.dtype.itemsize == 2 else 1e-5
            for one in (got, *twice):
                np.testing.assert_allclose(np.float64(one), right, rtol=close, atol=close)


NAN = float("nan")


def of_constants(x):  # type: ignore[no-untyped-def]
    y = output_tensor((10,), x.dtype)  # type: ignore[name-defined]  # noqa: F821
    y[0] = max(2.0, NAN)
    y[1] = max(NAN, 2.0)
    y[2] = min(2.0, NAN)
    y[3] = min(NAN, 2.0)
    y[4] = max(float32(1.0) + 2.0, NAN)  # type: ignore[name-defined]  # noqa: F821
    y[5] = min(float32(1.0) // 2.0, NAN)  # type: ignore[name-defined]  # noqa: F821
    y[6] = max(x[0], NAN)
    y[7] = min(NAN, x[0])
    y[8] = max(max(1.0, NAN), x[0])
    y[9] = min(x[0], max(1.0, NAN) + 1.0)
    return y


@pytest.mark.parametrize("form", ["xla", "native"])
def test_constants_that_are_nan(form: str) -> None:
    op = msops.Custom(of_constants, func_type="akg", compile_attrs={"lower": form})
    np.testing.assert_array_equal(op(np.ones(1, np.float32)), [np.nan] * 10)


@pytest.mark.parametrize(("name", "shape"), list(product(["whole", "rows"], SHAPES[:2])))
def test_the_forms_give_a_nan_the_same_slope(name: str, shape: tuple[int, int]) -> None:
    x = with_nan(shape, "float32", 0.4)
    slopes = [
        jax.grad(
            lambda x, form=form: jnp.sum(
                msops.Custom(KERNELS[name][0], func_type="akg", compile_attrs={"lower": form})(x)
            )
        )(x)
        for form in ("xla", "native")
    ]
    same(*slopes)
    assert not np.isnan(slopes[0]).any()


@pytest.mark.parametrize(
    ("name", "shape"), one_in(3, product([*KERNELS], [(2, 4), (4, 10), (70, 80)]))
)
def test_the_forms_share_the_slope_of_equal_elements_alike(
    name: str, shape: tuple[int, int]
) -> None:
    x = np.random.default_rng(3).integers(0, 3, shape).astype(np.float64)
    by_xla, by_c = (slopes(KERNELS[name][0], form, x) for form in ("xla", "native"))
    np.testing.assert_allclose(by_xla, by_c, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", [at_data, kept_at_data, diagonals])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_the_forms_share_the_slope_of_extremes_that_meet_by_index(
    kernel: Callable[..., Any], dtype: str
) -> None:
    x = np.random.default_rng(3).integers(0, 3, (9, 4)).astype(dtype)
    np.testing.assert_array_equal(*(slopes(kernel, form, x) for form in ("xla", "native")))


@pytest.mark.parametrize("form", ["xla", "native"])
@pytest.mark.parametrize(
    ("kernel", "size", "shares"),
    [
        # What it starts from is one of them, at every length.
        *((whole, n, [2 / (n + 1), *[1 / (n + 1)] * (n - 1)]) for n in (2, 3, 4, 7, 8, 9, 40)),
        (best_and_where, 9, [1, *[0] * 8]),  # the first one was kept
    ],
)
def test_what_share_of_the_slope_equal_elements_get(
    kernel: Callable[..., Any], form: str, size: int, shares: list[float]
) -> None:
    np.testing.assert_allclose(slopes(kernel, form, np.ones((1, size))), [shares], rtol=1e-12)


@pytest.mark.parametrize("form", ["xla", "native"])
@pytest.mark.parametrize("size", [2, 7, 8, 9])
def test_extremes_kept_in_turns_halve_the_slope(form: str, size: int) -> None:
    expected = np.outer([1 / 8, 1 / 8, 1 / 4, 1 / 2], np.arange(1, size + 1))
    np.testing.assert_array_equal(slopes(columns, form, np.ones((4, size))), expected)


def slopes(kernel: Callable[..., Any], form: str, x: np.ndarray) -> np.ndarray:
    """Returns the gradient of a kernel's first result, its elements weighted."""
    op = msops.Custom(kernel, func_type="akg", compile_attrs={"lower": form})

    def weighted(x: Any) -> Any:
        first = jax.tree.leaves(op(x))[0]
        return jnp.sum(first * (1 + jnp.arange(first.size).reshape(first.shape)))

    return np.asarray(jax.jit(jax.grad(weighted))(x))
