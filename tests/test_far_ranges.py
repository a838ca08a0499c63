"""Ranges over data beyond int32, in which loops count: as many iterations as Python makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loop_ir import If, Spec, interpret, read_kernel, statements
from quick_cases import in_turn

from msops import Custom

# Names of the language.
# ruff: noqa: F821


def ascending(a):
    y = output_tensor((2,), "int64")
    for v in range(a[0], a[1]):
        y[0] += int64(v)
        y[1] += 1
    return y


def descending(a):
    y = output_tensor((2,), "int64")
    for v in range(a[1], a[0], -7):
        y[0] += int64(v)
        y[1] += 1
    return y


def strided(a):
    y = output_tensor((2,), "int64")
    for v in range(a[0], a[1], 1000000000):
        y[0] += v
        y[1] += 1
    return y


def with_scalars(a):
    y = output_tensor((2,), "int64")
    for v in range(a[0], a[1]):
        n = int64(v) + 1
        one = 1
        kept = y[0] + n
        y[0] = kept - 1
        y[1] += one
    return y


def specialised(func: Callable[..., Any], *arrays: np.ndarray) -> Any:
    specs = [Spec(array.shape, str(array.dtype)) for array in arrays]
    return read_kernel(func, "akg", "k").specialise(specs, {}, "k")


FUNCTIONS = (ascending, descending, strided, with_scalars)
BOUNDS = [
    pytest.param("int64", [(5, 30), (2552764644, 2552764649), (-3000000020, -3000000000)]),
    pytest.param(
        "int64", [(2147483640, 2147483700), (-2147483700, -2147483640), (9, 5), (5000000000, 0)]
    ),
    pytest.param("int64", [(2**63 - 20, 2**63 - 8), (-(2**63) + 9, -(2**63) + 20)]),
    pytest.param(
        "uint64", [(2552764644, 2552764649), (2**64 - 20, 2**64 - 8), (2**63 - 3, 2**63 + 9)]
    ),
    pytest.param("uint32", [(2552764644, 2552764649), (2147483640, 2147483700), (7, 7)]),
]


@pytest.mark.parametrize(("func", "dtype", "bounds"), in_turn(FUNCTIONS, BOUNDS))
def test_every_iteration_is_made(
    func: Callable[..., Any], dtype: str, bounds: list[tuple[int, int]]
) -> None:
    step = {descending: -7, strided: 10**9}.get(func, 1)
    with jax.enable_x64(True):
        for pair in bounds:
            span = range(*(pair if step > 0 else pair[::-1]), step)
            wanted = [(sum(span) + 2**63) % 2**64 - 2**63, len(span)]
            a = np.array(pair, dtype)
            assert interpret(specialised(func, a), [a])[0].tolist() == wanted
            for form in ("xla", "native"):
                op = Custom(func, func_type="akg", compile_attrs={"lower": form})
                assert np.asarray(op(a)).tolist() == wanted, (form, pair)


def test_unsigned_bounds_without_64_bits_in_jax() -> None:
    def k(a):
        y = output_tensor((1,), "int32")
        for _ in range(a[0], a[1]):
            y[0] += 1
        return y

    for form in ("xla", "native"):
        op = Custom(k, func_type="akg", compile_attrs={"lower": form})
        assert np.asarray(op(np.uint32([4294967200, 4294967295]))).tolist() == [95], form


def test_the_variable_is_the_nearest_int32_where_that_is_needed() -> None:
    def k(a, x):
        y = output_tensor((3,), "int64")
        for v in range(a[0], a[1]):
            if v < x.shape[0]:
                y[0] += x[v]
            if v < a[2]:
                y[1] += 1
            y[2] = int64(min(v, 2147483647))
        return y

    x = np.int64([1, 20, 300])
    with jax.enable_x64(True):
        for pair, wanted in [
            ((1, 6, 3), [320, 2, 5]),
            ((2**32 + 1, 2**32 + 6, 2**32 + 2), [0, 1, 2**31 - 1]),
        ]:
            a = np.int64(pair)
            for form in ("xla", "native"):
                op = Custom(k, func_type="akg", compile_attrs={"lower": form})
                assert np.asarray(op(a, x)).tolist() == wanted, form


def test_a_gradient_counts_as_far() -> None:
    def k(a, x):
        y = output_tensor((1,), x.dtype)
        for _ in range(a[0], a[1]):
            y[0] = y[0] * x[0] + 1.0
        return y

    with jax.enable_x64(True):
        a, x = np.int64([2**40, 2**40 + 4]), np.float64([1.5])
        for form in ("xla", "native"):
            op = Custom(k, func_type="akg", compile_attrs={"lower": form})
            got = jax.grad(lambda x, op=op: jnp.sum(op(a, x)))(x)
            np.testing.assert_allclose(got, 1 + 2 * x + 3 * x * x, err_msg=form)


def test_rows_of_a_sparse_matrix_stay_one_loop() -> None:
    def rows(start, x):
        y = output_tensor((start.shape[0] - 1,), x.dtype)
        for i in range(start.shape[0] - 1):
            for v in range(start[i], start[i + 1]):
                y[i] += x[v]
        return y

    def guarded(start, x):
        y = output_tensor((start.shape[0] - 1,), x.dtype)
        for i in range(start.shape[0] - 1):
            for v in range(start[i], start[i + 1]):
                y[i] += x[v] if v < 5 else 0.0
        return y

    start, x = np.int64([0, 2, 5]), np.float32([1, 2, 3, 4, 5])
    for func, is_one in (rows, True), (guarded, False):
        body = specialised(func, start, x).body
        assert any(isinstance(each, If) for each in statements(body)) is not is_one


def test_a_grid_makes_every_iteration() -> None:
    def k(n):
        y = output_tensor((2,), "int64")
        for i, j in grid((n[0], 2)):
            following = i + j
            y[0] += 1
            y[1] = max(y[1], int64(i) + int64(following - i))
        return y

    with jax.enable_x64(True):
        for extent in -5, 0, 3:
            n = np.int64([extent])
            wanted = [2 * max(extent, 0), max(extent, 0)]
            assert interpret(specialised(k, n), [n])[0].tolist() == wanted
            for form in ("xla", "native"):
                op = Custom(k, func_type="akg", compile_attrs={"lower": form})
                assert np.asarray(op(n)).tolist() == wanted, (form, extent)


def test_a_grid_counts_beyond_int32() -> None:
    def k(n):
        y = output_tensor((1,), "int64")
        for i, j in grid((2, n[0])):
            y[0] += 1 + int64(i) + int64(j > 2147483645) * 0
        return y

    with jax.enable_x64(True):
        op = Custom(k, func_type="akg", compile_attrs={"lower": "native"})
        assert np.asarray(op(np.int64([3000000000]))).tolist() == [9000000000]


def test_an_element_of_each_step_keeps_a_grid_as_it_is() -> None:
    def k(n, x):
        y = output_tensor(x.shape, x.dtype)
        for i, j in grid((n[0], x.shape[1])):
            y[i, j] = x[i, j] + 1.0
        return y

    n, x = np.int64([2]), np.ones((3, 2), "float32")
    body = specialised(k, n, x).body
    assert not any(isinstance(each, If) for each in statements(body))
