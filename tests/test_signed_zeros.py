"""Zeros have the sign that they have by the rules, in all forms of a kernel and as Python."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import numpy as np
import pytest
from loop_ir import as_dtype, interpret, parse_kernel

import msops
from msops import ops
from msops.lang import (
    abs,
    ceil,
    floor,
    int8,
    int16,
    int32,
    int64,
    max,
    min,
    output_tensor,
    power,
    round,
    sign,
    tanh,
    trunc,
    uint8,
    uint32,
)

pytestmark = pytest.mark.usefixtures("as_users_compile")

SIZES = (1, 5, 16, 37)


def run(kernel: Any, form: str, *arrays: np.ndarray) -> np.ndarray:
    """Returns what a kernel computes in a form, "xla" or "native"."""
    op = msops.Custom(kernel, func_type="akg", compile_attrs={"lower": form})
    with jax.enable_x64(True):
        return np.asarray(op(*arrays))


def by_int32(x):
    y = output_tensor((8, x.shape[1]), x.dtype)
    for i in range(x.shape[1]):
        y[0, i] = x.dtype.type(int32(x[0, i]))
        y[1, i] = x.dtype.type(int32(x[0, i])) * 3.0
        k = int32(x[0, i])
        y[2, i] = x.dtype.type(k)
        y[3, i] = 2.0 * x.dtype.type(int32(0.5 * x[0, i]))
        y[4, i] = x.dtype.type(int32(x[0, i])) if x[0, i] < 3.0 else 0.5
        y[5, i] = x.dtype.type(int32(min(max(x[0, i], -100.0), 100.0)))
        y[6, i] = min(x.dtype.type(int32(x[0, i])), 7.0)
        y[7, i] = x.dtype.type(int64(x[0, i]))
    return y


def by_others(x):
    y = output_tensor((6, x.shape[1]), x.dtype)
    for i in range(x.shape[1]):
        y[0, i] = x.dtype.type(int8(x[0, i]))
        y[1, i] = x.dtype.type(int16(x[0, i])) * 3.0
        y[2, i] = x.dtype.type(int32(int8(x[0, i])))
        y[3, i] = x.dtype.type(uint8(x[0, i]))
        y[4, i] = x.dtype.type(uint32(x[0, i]))
        y[5, i] = x.dtype.type(int32(int64(x[0, i])))
    return y


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", [by_int32, by_others])
def test_floats_that_were_integers_are_no_minus_zero(kernel: Any, dtype: str) -> None:
    for size in SIZES:
        x = np.resize(np.array([-0.25, -0.0, 2.5, -0.75, -1.5, 0.25, -0.5], dtype), (1, size))
        got = run(kernel, "native", x)
        zeros = got == 0
        assert zeros.any()
        assert not np.signbit(got[zeros]).any(), size
        np.testing.assert_array_equal(got[0], np.trunc(x[0]))


def of_pairs(a, b):
    y = output_tensor((9, a.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        y[0, i] = a[i] % b[i]
        y[1, i] = a[i] // b[i]
        y[2, i] = a[i] + b[i]
        y[3, i] = a[i] - b[i]
        y[4, i] = a[i] * b[i]
        y[5, i] = a[i] / b[i]
        y[6, i] = power(a[i], b[i])
        y[7, i] = power(a[i], 0.5)
        y[8, i] = a[i] ** (b[i] * 2.0)
    return y


def of_numbers(a):
    y = output_tensor((19, a.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        y[0, i] = a[i] + 0.0
        y[1, i] = 0.0 + a[i]
        y[2, i] = 0.0 - a[i]
        y[3, i] = -a[i]
        y[4, i] = abs(a[i])
        y[5, i] = sign(a[i])
        y[6, i] = floor(a[i])
        y[7, i] = ceil(a[i])
        y[8, i] = trunc(a[i])
        y[9, i] = round(a[i])
        y[10, i] = a[i] % 3.0
        y[11, i] = a[i] // 3.0
        y[12, i] = max(a[i], 0.0)
        y[13, i] = max(0.0, a[i])
        y[14, i] = min(a[i], 0.0)
        y[15, i] = min(0.0, a[i])
        y[16, i] = 0.0 // a[i]
        y[17, i] = -0.0 // a[i]
        y[18, i] = -0.0 % a[i]
    return y


def of_what_is_no_minus_zero(a):
    y = output_tensor((9, a.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        y[0, i] = 0.0 - abs(a[i])
        y[1, i] = -abs(a[i]) + 0.0
        y[2, i] = 0.0 + -abs(a[i])
        y[3, i] = 0.0 - a.dtype.type(i)
        y[4, i] = -a.dtype.type(i) + 0.0
        y[5, i] = 0.0 - a.dtype.type(int8(i - 3))
        y[6, i] = 0.0 - a[i] * a[i]
        y[7, i] = 0.0 + -1.0 * a.dtype.type(i)
        y[8, i] = (0.0 - abs(a[i])) * 2.0
    return y


def added(a):
    y = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        y[i] += a[i]
    return y


def added_to_a_copy(a):
    y = output_tensor(a.shape, a.dtype)
    s = y[0]
    if a[0] == 0.0:
        s += -min(s, 0.0)
    y[0] = s
    return y


def extremes(a, b):
    y = output_tensor((2, a.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        y[0, i] = min(a[i], b[i])
        y[1, i] = max(a[i], b[i])
    return y


NUMBERS = [0.0, -0.0, 3.0, -3.0, -0.25, 0.25, 7.5, -6.0, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("kernel", "form"),
    [
        *itertools.product(
            (of_pairs, of_numbers, of_what_is_no_minus_zero, added, added_to_a_copy, extremes),
            ("xla", "native"),
        ),
    ],
)
def test_forms_and_python_agree_in_signs(kernel: Any, form: str, dtype: str) -> None:
    pairs = np.array(list(itertools.product(NUMBERS, NUMBERS)), dtype).T
    inputs = (
        [*map(np.copy, pairs)] if kernel in (of_pairs, extremes) else [np.array(NUMBERS, dtype)]
    )
    with np.errstate(all="ignore"):
        want = ops.kernel(kernel)(*inputs)
    got = run(kernel, form, *inputs)
    np.testing.assert_allclose(got, want, 1e-6)
    are_numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[are_numbers], np.signbit(want)[are_numbers])


def of_rows(x):
    n, m = x.shape
    y = output_tensor((4, n), x.dtype)
    for i in range(n):
        y[0, i] = x[i, 0]
        for j in range(1, m):
            y[0, i] = max(y[0, i], x[i, j])
        y[1, i] = x[i, 0]
        for j in range(1, m):
            y[1, i] = min(x[i, j], y[1, i])
        low = x[i, 0]
        high = x[i, 0]
        for j in range(1, m):
            low = min(low, x[i, j])
            high = max(x[i, j], high)
        y[2, i] = low
        y[3, i] = high
    return y


def of_columns(x):
    n, m = x.shape
    y = output_tensor((2, m), x.dtype)
    for j in range(m):
        y[0, j] = x[0, j]
        y[1, j] = x[0, j]
    for i in range(1, n):
        for j in range(m):
            y[0, j] = max(y[0, j], x[i, j])
            y[1, j] = min(y[1, j], x[i, j])
    return y


def so_far(x):
    n, m = x.shape
    y = output_tensor((2, n, m), x.dtype)
    for i in range(n):
        low = x[i, 0]
        high = x[i, 0]
        for j in range(m):
            low = min(low, x[i, j])
            high = max(high, x[i, j])
            y[0, i, j] = low
            y[1, i, j] = high
    return y


def of_windows(x):
    n, m = x.shape
    y = output_tensor((2, n - 2, m - 2), x.dtype)
    for i in range(n - 2):
        for j in range(m - 2):
            high = x[i, j]
            low = x[i, j]
            for p in range(3):
                for q in range(3):
                    high = max(high, x[i + p, j + q])
                    low = min(low, x[i + p, j + q])
            y[0, i, j] = high
            y[1, i, j] = low
    return y


ALMOST_ZEROS = {
    "most 0": [0.0] * 30 + [-0.0],
    "most -0": [-0.0] * 30 + [0.0],
    "all -0": [-0.0],
    "among negative": [-1.0] * 9 + [0.0, -0.0],
    "among positive": [1.0] * 9 + [0.0, -0.0],
    "with NaN": [0.0] * 30 + [-0.0, np.nan, -np.nan],
}


@pytest.mark.parametrize("form", ["xla", "native"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("kernel", [of_rows, of_columns, so_far, of_windows])
def test_extremes_of_many_zeros(kernel: Any, dtype: str, form: str) -> None:
    rng = np.random.default_rng(0)
    for shape in ((5, 7), (3, 100)):
        for values in ALMOST_ZEROS.values():
            x = rng.choice(np.array(values, dtype), shape)
            got, want = run(kernel, form, x), ops.kernel(kernel)(x)
            np.testing.assert_array_equal(got, want)
            are_numbers = ~np.isnan(want)
            np.testing.assert_array_equal(
                np.signbit(got)[are_numbers], np.signbit(want)[are_numbers]
            )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_interpreter_has_the_zeros_of_python(dtype: str) -> None:
    a, b = (np.array(column, dtype) for column in zip(*[(0.0, -0.0), (-0.0, 0.0)], strict=True))
    kernel = parse_kernel(f"""kernel zeros(a: {dtype}[2], b: {dtype}[2]) -> (low, high, s) {{
      buffer low: {dtype}[2]
      buffer high: {dtype}[2]
      buffer s: {dtype}[2]
      parallel i in 0 .. 2 {{
        low[i] = min(a[i], b[i])
        high[i] = max(a[i], b[i])
        s[i] = sign(a[i])
      }}
    }}""")
    low, high, signs = interpret(kernel, [a, b])
    assert np.signbit(low).all()
    assert not np.signbit(high).any()
    assert not np.signbit(signs).any()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_the_sign_of_minus_zero_is_zero_in_python(dtype: str) -> None:
    found = sign(as_dtype(dtype).dtype.type(-0.0))
    assert found.dtype == as_dtype(dtype).dtype
    assert found == 0
    assert not np.signbit(found)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_a_root_by_power_is_a_power_in_python(dtype: str) -> None:
    number = as_dtype(dtype).dtype.type
    wide = np.dtype("float32" if dtype == "bfloat16" else dtype)
    for half, kept in ((0.5, wide), (number(0.5), as_dtype(dtype).dtype)):
        found = [power(number(x), half) for x in (-0.0, -np.inf, 4.0)]
        assert [f"{float(root)}" for root in found] == ["0.0", "inf", "2.0"]
        assert {root.dtype for root in found} == {kept}


def hyperbolic(a):
    y = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        y[i] = tanh(a[i])
    return y


def test_tanh_is_1_from_the_same_number_on() -> None:
    a = np.concatenate([np.linspace(7.9, 9.5, 20001), [np.inf]]).astype("float32")
    a = np.concatenate([a, -a, [np.float32(np.nan)]])
    raised, native = (run(hyperbolic, form, a) for form in ("xla", "native"))
    np.testing.assert_array_equal(np.abs(raised) == 1, np.abs(native) == 1)
    np.testing.assert_array_equal(np.isnan(native), np.isnan(a))


def sums(x, w):
    n = x.shape[0]
    y = output_tensor((6, n, n), x.dtype)
    for p in range(6):
        for i in range(n):
            for j in range(n):
                y[p, i, j] = 0.0
    for i in range(n):
        for j in range(n):
            y[0, 0, i] -= x[i, j]
            y[1, 0, i] += x[i, j]
            y[2, 0, i] -= x[i, j] * w[j, i]
            y[3, 0, i] += -x[j, i]
            y[4, 0, i] += x[i, j] * -2.0
            for k in range(n):
                y[5, i, j] -= x[i, k] * w[k, j]
    return y


def windows(x, w):
    y = output_tensor((2, 3), x.dtype)
    for i in range(3):
        y[0, i] = 0.0
        y[1, i] = 0.0
    for i in range(3):
        for j in range(3):
            y[0, i] -= x[0, i + j]
            y[1, i] -= x[0, i + j] * w[0, j]
    return y


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize(("kernel", "size"), [(sums, 5), (windows, 5)])
def test_a_sum_that_starts_from_zero_is_not_minus_zero(kernel: Any, size: int, zero: float) -> None:
    x = np.full((size, size), zero, np.float32)
    w = np.full((size, size), -1, np.float32)
    for form in ("xla", "native"):
        assert not np.signbit(run(kernel, form, x, w)).any(), form


def signs_of(a):
    y = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        y[i] = sign(a[i])
    return y


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_sign_of_minus_zero_is_zero(dtype: str) -> None:
    """numpy's is not of bfloat16, and that of jax.numpy is of no float."""
    a = np.array([-0.0, 0.0, -2.0, 3.0, np.nan], as_dtype(dtype).dtype)
    found = [run(signs_of, form, a) for form in ("xla", "native")]
    for got in [ops.kernel(signs_of)(a), *found]:
        numbers = np.asarray(got).astype("float64")
        np.testing.assert_array_equal(numbers, [0.0, 0.0, -1.0, 1.0, np.nan])
        assert not np.signbit(numbers[:2]).any()
