"""Quotients and remainders of positive divisors in native code, beside numpy's."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from loop_ir import For, accesses_in, are_apart, interpret, nested_ranges, parse_kernel, statements
from loop_native import build_together, call, shipped

from msops import Custom


def native(kernel: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    op = Custom(kernel, func_type="akg", compile_attrs={"lower": "native"})
    with jax.enable_x64(True):
        return np.asarray(jax.jit(lambda *given: op(*given))(*arrays))


def by_seven(a):
    out = output_tensor((2, a.shape[0]), a.dtype)  # noqa: F821
    for i in range(a.shape[0]):
        out[0, i] = a[i] // 7
        out[1, i] = a[i] % 7
    return out


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint32"])
def test_divisors_that_are_known(dtype: str) -> None:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    near = [v for v in range(-30, 31) if low <= v <= high]
    a = np.array([low, low + 1, low + 7, *near, high - 7, high], dtype)
    np.testing.assert_array_equal(native(by_seven, a), [a // 7, a % 7])


def by_each(a):
    out = output_tensor((2, 3, a.shape[0]), a.dtype)  # noqa: F821
    for divisor in range(3):
        for i in range(a.shape[0]):
            out[0, divisor, i] = (i - 5) // divisor
            out[1, divisor, i] = (i - 5) % divisor
    return out


def test_a_divisor_that_may_be_zero_gives_zero() -> None:
    i = np.arange(-5, 6)
    want = [[0 * i, i, i // 2], [0 * i, 0 * i, i % 2]]
    np.testing.assert_array_equal(native(by_each, np.zeros(11, "int32")), want)


QUOTIENTS = """kernel quotients(a: {dtype}[{n}], b: {dtype}[{n}]) -> (y) {{
  buffer y: {dtype}[24, {n}]
  parallel i in 0 .. {n} {{
    {stores}
  }}
}}"""


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_the_least_dividend_and_what_it_is_negated(tmp_path: Path, dtype: str) -> None:
    """gcc 12 takes (-a) / b for -(a / b) where it knows that b is positive."""
    ops = ("{a} // {b}", "{a} % {b}", "truncdiv({a}, {b})", "truncmod({a}, {b})")
    signs = ("a[i]", "-(a[i])")
    divisors = (f"max(b[i], 2:{dtype})", "b[i]", "b[i]")
    texts = [op.format(a=a, b=b) for b in divisors for op in ops for a in signs]
    rows = [f"y[{row}, i] = {text}" for row, text in enumerate(texts)]
    # gcc knows more of the last divisors than we do.
    stores = "\n".join((*rows[:16], f"if (b[i] > 1:{dtype}) {{", *rows[16:], "}"))
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    pairs = np.array(list(itertools.product(
        [low, low + 1, -7, -1, 0, 1, 7, high], [low, -3, -1, 0, 1, 2, 3, 7, high]
    )), dtype)  # fmt: skip
    kernel = parse_kernel(QUOTIENTS.format(dtype=dtype, n=len(pairs), stores=stores))
    ready, source = shipped(kernel, 0)
    library = build_together(tmp_path, [source])
    inputs = [np.ascontiguousarray(column) for column in pairs.T]
    (got,), (want,) = call(library, ready, source, inputs), interpret(kernel, inputs)
    for row, text in enumerate(texts):
        np.testing.assert_array_equal(got[row], want[row], err_msg=text)


PAIRS = """kernel pairs(a: int32[{n}], b: int32[{n}], c: int32[1]) -> (y) {{
  buffer y: int32[4, {n}]
  parallel i in 0 .. {n} {{
    y[0, i] = a[i] // b[i]
    y[1, i] = a[i] % b[i]
    y[2, i] = int32(i) // c[0]
    y[3, i] = a[i] % c[0]
  }}
}}"""


def test_vectors_divide_by_data(tmp_path: Path) -> None:
    """Floats of 64 bits divide what integers of 32 bits do, also near whole quotients."""
    special = [-(2**31), -(2**31) + 1, -65536, -7, -2, -1, 0, 1, 2, 7, 46341, 2**31 - 1]
    rng = np.random.default_rng(5)
    divisors = rng.integers(-(2**31), 2**31, 20_000) >> rng.integers(0, 31, 20_000)
    whole = divisors * (rng.integers(-(2**31), 2**31, 20_000) // np.where(divisors, divisors, 1))
    beside = np.clip(whole + rng.integers(-1, 2, 20_000), -(2**31), 2**31 - 1)
    pairs = [*itertools.product(special, special), *zip(beside, divisors, strict=True)]
    a, b = np.array(pairs).T.astype("int32")
    kernel = parse_kernel(PAIRS.format(n=len(pairs)))
    ready, source = shipped(kernel, 0)
    assert re.search(r"ms_mod_i32_\d+\(", source.text)
    library = build_together(tmp_path, [source])
    for divisor in (*special, 3, 1000):
        inputs = [np.ascontiguousarray(a), np.ascontiguousarray(b), np.array([divisor], "int32")]
        (got,), (want,) = call(library, ready, source, inputs), interpret(kernel, inputs)
        np.testing.assert_array_equal(got, want)


def around(x):
    n = x.shape[0]
    out = output_tensor((3, n, n), x.dtype)  # noqa: F821
    for i in range(n):
        for j in range(n):
            out[0, i, j] = x[(i - j) % n]
            out[1, i, j] = x[(i - j - 1) % n]
            out[2, i, j] = x[(i - j + 1) % n]
    return out


# From -n to n - 1 a remainder needs no division. The others are one past either end.
@pytest.mark.parametrize("n", [2, 3, 7, 8])
def test_distances_around_a_ring(n: int) -> None:
    x = np.arange(n, dtype="float32")
    i, j = np.ogrid[:n, :n]
    want = np.array([x[(i - j + by) % n] for by in (0, -1, 1)])
    np.testing.assert_array_equal(native(around, x), want)


def rings(spin, steps):
    n, m = spin.shape
    for t in range(steps.shape[0]):
        for colour in range(2):
            for i in range(n):
                for j in range(m):
                    if (i + j) % 2 == colour:
                        spin[i, j] = (
                            spin[(i + 1) % n, j]
                            + spin[(i + n - 1) % n, j]
                            - spin[i, (j + 1) % m] * steps[t]
                        )
    return spin


@pytest.mark.parametrize(("n", "m"), [(4, 6), (6, 40), (12, 64)])
def test_neighbours_around_a_ring_are_other_elements(n: int, m: int) -> None:
    spin = np.random.default_rng(0).integers(-5, 5, (n, m)).astype("int32")
    steps = np.array([1, 2, -1], "int32")
    want = spin.copy()
    i, j = np.indices(spin.shape)
    for step in steps:
        for colour in range(2):
            new = np.roll(want, -1, 0) + np.roll(want, 1, 0) - np.roll(want, -1, 1) * step
            want = np.where((i + j) % 2 == colour, new, want)
    np.testing.assert_array_equal(native(rings, spin, steps), want)


RING = """kernel ring(x: float32[12]) -> (x) {{
  parallel i in 0 .. 8 {{
    parallel j in 0 .. 9 {{
      x[{one}] = x[{other}]
    }}
  }}
}}"""


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ("(i + 1) % 8", "i", True),
        ("(i + 7) % 8", "i", True),
        ("i", "(i + 7) % 8", True),
        ("(i + 8) % 8", "i", False),
        ("(i + 5) % 8", "(i + 2) % 8", True),
        ("(i + 9) % 8", "(i + 1) % 8", False),
        ("(i + 1) % 8", "(i + 2) % 9", False),
        # j is not always a remainder by 8.
        ("(j + 1) % 8", "j", False),
        ("(i + j) % 8", "i", False),
        ("((i + j) + 1) % 8", "i", False),
    ],
)
def test_elements_of_a_ring_that_differ(one: str, other: str, apart: bool) -> None:
    kernel = parse_kernel(RING.format(one=one, other=other))
    loops = [stmt for stmt in statements(kernel.body) if isinstance(stmt, For)]
    ranges = nested_ranges(tuple(loops), {})
    load, store = accesses_in(kernel.body)
    assert are_apart(load.indices, store.indices, ranges) is apart
    if apart:
        i, j = np.ogrid[:8, :9]
        values = [eval(text, {"i": i, "j": j}) + 0 * (i + j) for text in (one, other)]
        assert not np.any(values[0] == values[1])
