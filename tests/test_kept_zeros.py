"""What keeps or sorts extremes keeps the zeros that Python keeps, in all forms of a kernel.

Of 0 and -0 neither is greater: `if x > m: m = x` keeps the first, with `>=` the last. For `min` and
`max` -0 is less than 0, in networks that sort as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from loop_ir import Spec, as_dtype, interpret
from loop_source import specialise

import msops
from msops import ops
from msops.lang import allocate, int32, max, min, output_tensor

pytestmark = pytest.mark.usefixtures("as_users_compile")


def of_rows(x):
    n, m = x.shape
    y = output_tensor((4, n), x.dtype)
    for i in range(n):
        a = x[i, 0]
        b = x[i, 0]
        c = x[i, 0]
        d = x[i, 0]
        for j in range(m):
            if x[i, j] > a:
                a = x[i, j]
        for j in range(m):
            if x[i, j] >= b:
                b = x[i, j]
        for j in range(m):
            c = x[i, j] if x[i, j] < c else c
        for j in range(m):
            if d >= x[i, j]:
                d = x[i, j]
        y[0, i] = a
        y[1, i] = b
        y[2, i] = c
        y[3, i] = d
    return y


def with_places(x):
    n, m = x.shape
    y = output_tensor((4, n), x.dtype)
    for i in range(n):
        a = x[i, 0]
        b = x[i, 0]
        p = int32(0)
        q = int32(0)
        for j in range(m):
            if x[i, j] > a:
                a = x[i, j]
                p = int32(j)
        for j in range(m):
            if x[i, j] <= x[i, q]:
                q = int32(j)
        y[0, i] = a
        y[1, i] = x.dtype.type(p)
        y[2, i] = x[i, q]
        y[3, i] = b
    return y


def of_columns(x):
    n, m = x.shape
    y = output_tensor((4, m), x.dtype)
    for j in range(m):
        for k in range(4):
            y[k, j] = -1.0 if k < 2 else 1.0
    for i in range(n):
        for j in range(m):
            if x[i, j] > y[0, j]:
                y[0, j] = x[i, j]
            if x[i, j] >= y[1, j]:
                y[1, j] = x[i, j]
            if x[i, j] < y[2, j]:
                y[2, j] = x[i, j]
            if x[i, j] <= y[3, j]:
                y[3, j] = x[i, j]
    return y


def of_both_axes(x):
    n, m = x.shape
    y = output_tensor((3, 1), x.dtype)
    y[0, 0] = -1.0
    y[1, 0] = 1.0
    for i in range(n):
        for j in range(m):
            if x[i, j] > y[0, 0]:
                y[0, 0] = x[i, j]
    for j in range(m):
        for i in range(n):
            if x[i, j] < y[1, 0]:
                y[1, 0] = x[i, j]
    a = x[0, 0]
    for i in range(n - 1, -1, -1):
        for j in range(m):
            if x[i, j] > a:
                a = x[i, j]
    y[2, 0] = a
    return y


def under_conditions(x):
    n, m = x.shape
    y = output_tensor((4, n), x.dtype)
    for i in range(n):
        a = x[i, 0]
        b = x[i, 0]
        c = x[i, 0]
        d = x[i, 0]
        for j in range(m):
            if j % 3 > 0 and x[i, j] > a:
                a = x[i, j]
        for j in range(m):
            if x[(i + 1) % n, j] != 0.0:
                b = x[i, j] if x[i, j] <= b else b
        for j in range(min(i + 2, m)):
            if x[i, j] * -1.0 >= c:
                c = x[i, j] * -1.0
        for j in range(m):
            if x[i, j] > d:
                d = x[i, j]
            if x[0, j] > d:
                d = x[0, j]
        y[0, i] = a
        y[1, i] = b
        y[2, i] = c
        y[3, i] = d
    return y


def of_windows(x):
    n, m = x.shape
    y = output_tensor((2, n - 2, m - 2), x.dtype)
    for i in range(n - 2):
        for j in range(m - 2):
            a = x[i, j]
            b = x[i, j]
            for p in range(3):
                for q in range(3):
                    if x[i + p, j + q] > a:
                        a = x[i + p, j + q]
                    if x[i + q, j + p] <= b:
                        b = x[i + q, j + p]
            y[0, i, j] = a
            y[1, i, j] = b
    return y


def so_far(x):
    n, m = x.shape
    y = output_tensor((2, n, m), x.dtype)
    for i in range(n):
        a = x[i, 0]
        b = x[i, 0]
        for j in range(m):
            if x[i, j] > a:
                a = x[i, j]
            if x[i, j] <= b:
                b = x[i, j]
            y[0, i, j] = a
            y[1, i, j] = b
    return y


def by_data(x):
    n, m = x.shape
    y = output_tensor((3, 4), x.dtype)
    at = allocate((m,), "int32")
    for j in range(m):
        at[j] = int32(max(min(x[0, j], 1.0), -1.0)) + 1
    for k in range(4):
        y[0, k] = -1.0
        y[1, k] = 1.0
        y[2, k] = -1.0
    for i in range(n):
        for j in range(m):
            if x[i, j] > y[0, at[j]]:
                y[0, at[j]] = x[i, j]
    for j in range(m):
        for i in range(n):
            if x[i, j] <= y[1, at[j]]:
                y[1, at[j]] = x[i, j]
    for i in range(n):
        for j in range(m):
            if x[i, j] >= y[2, j // 2 % 4]:
                y[2, j // 2 % 4] = x[i, j]
    return y


def sorted_in_threes(x):
    n, m = x.shape
    y = output_tensor((n, m), x.dtype)
    for i in range(n):
        for j in range(m // 3):
            a = x[i, 3 * j]
            b = x[i, 3 * j + 1]
            c = x[i, 3 * j + 2]
            if a > b:
                a, b = b, a
            if b > c:
                b, c = c, b
            if a > b:
                a, b = b, a
            y[i, 3 * j] = a
            y[i, 3 * j + 1] = b
            y[i, 3 * j + 2] = c
    return y


def in_order(a, b):
    return min(a, b), max(a, b)


def medians(x):
    n, m = x.shape
    y = output_tensor((n, m), x.dtype)
    for i in range(n):
        for j in range(m - 4):
            a = x[i, j]
            b = x[i, j + 1]
            c = x[i, j + 2]
            d = x[i, j + 3]
            e = x[i, j + 4]
            a, b = in_order(a, b)
            d, e = in_order(d, e)
            a, c = in_order(a, c)
            b, c = in_order(b, c)
            a, d = in_order(a, d)
            c, d = in_order(c, d)
            b, e = in_order(b, e)
            b, c = in_order(b, c)
            d, e = in_order(d, e)
            y[i, j] = c
    return y


KERNELS = [of_rows, with_places, of_columns, of_both_axes, under_conditions, of_windows, so_far,
           by_data, sorted_in_threes, medians]  # fmt: skip
VALUES = {
    "zeros": [0.0, -0.0],
    "among negative": [-1.0] * 9 + [0.0, -0.0],
    "among positive": [1.0] * 9 + [0.0, -0.0],
    "with NaN": [0.0, -0.0, np.nan, -1.0, -1.0],
}


def arrays(shape: tuple[int, int], dtype: str) -> list[np.ndarray]:
    """Returns arrays in which zeros of both signs come late, so that a start rarely is one."""
    found = []
    for seed, values in enumerate(VALUES.values()):
        x = np.random.default_rng(seed).choice(np.array(values, as_dtype(dtype).dtype), shape)
        if seed in (1, 2):
            x[:, : shape[1] // 2] = values[0]
        found.append(x)
    return found


def by_python(kernel: Callable[..., Any], x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return ops.kernel(kernel)(x.copy())


def assert_same_bits(got: Any, want: np.ndarray) -> None:
    numbers, expected = np.asarray(got).astype("float64"), want.astype("float64")
    np.testing.assert_array_equal(numbers, expected)
    is_number = ~np.isnan(expected)
    signs = [np.signbit(array)[is_number] for array in (numbers, expected)]
    np.testing.assert_array_equal(*signs)


SLOW = pytest.mark.slow


# Both sides of the sizes from which C searches in lanes, and XLA has another reduction.
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((5, 7), "float32"),
        ((3, 133), "float16"),
        ((2, 4103), "float32"),
        *(pytest.param((5, 7), dtype, marks=SLOW) for dtype in ("float64", "float16", "bfloat16")),
        *(pytest.param((4103, 3), dtype, marks=SLOW) for dtype in ("float32", "float64")),
        pytest.param((3, 133), "float64", marks=SLOW),
        pytest.param((2, 4103), "bfloat16", marks=SLOW),
    ],
)
@pytest.mark.parametrize("kernel", KERNELS)
def test_zeros_are_those_that_python_keeps(
    kernel: Callable[..., Any], shape: tuple[int, int], dtype: str
) -> None:
    if kernel is of_windows and shape[0] < 3:
        shape = (3, shape[1])
    found = arrays(shape, dtype)
    expected = [by_python(kernel, x) for x in found]
    loops = specialise(kernel, Spec(shape, dtype))
    for form in ("xla", "native"):
        op = msops.Custom(kernel, func_type="akg", compile_attrs={"lower": form})
        with jax.enable_x64(True):
            for x, want in zip(found, expected, strict=True):
                assert_same_bits(op(x), want)
    if found[0].size < 100:
        for x, want in zip(found, expected, strict=True):
            assert_same_bits(interpret(loops, [x])[0], want)
