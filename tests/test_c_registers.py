"""Vectors that stay in registers: by text, and by what their C computes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from loop_ir import FLAGS, GCC_FLAGS, Kernel, interpret, mark_vectors, parse_kernel
from loop_native import build_together, call, prepared, printed

from msops._base import processor

pytestmark = pytest.mark.usefixtures("avx")

# A row of a tile: an array of one vector, and loops over its lanes.
TILE = """kernel tile(a: {dtype}[9], b: {dtype}[9, {columns}]) -> (c) {{
  buffer c: {dtype}[{columns}]
  local tile: {dtype}[{lanes}] {{
    serial k in 0 .. 9 {{
      parallel lane in 0 .. {lanes} {{ tile[lane] = {value} }}
    }}
    parallel lane_1 in 0 .. {lanes} {{ {keep} }}
  }}
}}"""
PARTS = {
    "dtype": "float32",
    "lanes": "8",
    "columns": "20",
    "value": "tile[lane] + (a[k] * b[k, lane + 3])",
    "keep": "c[lane_1 + 5] = tile[lane_1]",
}


def tile(**parts: str) -> Kernel:
    return mark_vectors(parse_kernel(TILE.format(**{**PARTS, **parts})))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("registers")


VALUES = (
    "tile[lane] + (a[k] * b[k, lane + 3])",
    "tile[lane] - ((b[k, lane] / a[k]) - -(b[k, lane + 12]))",
    "(2.5:{dtype} * b[k, lane]) - -(tile[lane])",
    # Beyond the end of b, where the nearest element counts.
    "tile[lane] + b[k, (lane + k) + 8]",
)


@pytest.fixture(params=[16, 32, 64])
def vector_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The bytes of a vector, of any processor: the compiler splits what is too wide for its own."""
    monkeypatch.setattr(processor, "vector_bytes", lambda: request.param)
    return int(request.param)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_vectors_hold_what_the_loops_compute(folder: Path, dtype: str, vector_bytes: int) -> None:
    lanes = vector_bytes // np.dtype(dtype).itemsize
    kernels = [
        tile(
            dtype=dtype,
            lanes=str(lanes),
            columns=str(lanes + 12),
            value=value.format(dtype=dtype),
        )
        for value in VALUES
    ]
    sources = [printed(kernel, number) for number, kernel in enumerate(kernels)]
    texts = [source.text for source in sources]
    assert not any("for (int64_t lane" in text for text in texts)
    assert all(f"vector_size({vector_bytes})" in text for text in texts)
    library = build_together(folder, sources)
    rng = np.random.default_rng(0)
    # Sums of products are exact, as a product and a sum may be rounded at once.
    inputs = [
        rng.choice([-2, -0.5, 1, 4], 9).astype(dtype),
        rng.integers(-50, 50, (9, lanes + 12)).astype(dtype),
    ]
    inputs[1][2, 4:7] = np.inf, -0.0, np.nan
    for kernel, source in zip(kernels, sources, strict=True):
        (expected,) = interpret(kernel, inputs)
        (got,) = call(library, kernel, source, inputs)
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))


@pytest.mark.parametrize("sign", ["+", "-"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_are_added_in_one_rounding(
    folder: Path, dtype: str, sign: str, vector_bytes: int
) -> None:
    lanes = vector_bytes // np.dtype(dtype).itemsize
    value = f"tile[lane] {sign} (((b[k, lane] * a[k]) + b[k, lane + 2]) - (b[k, 0] * a[k]))"
    # Of several sums side by side; alone, one would wait longer for a fused operation.
    value += " c[lane] = a[k]"
    parts = {"lanes": str(lanes), "columns": str(lanes + 12), "dtype": dtype, "value": value}
    kernel = tile(**parts)
    source = printed(kernel, 0)
    a, b = np.zeros(9, dtype), np.zeros((9, lanes + 12), dtype)
    eps = np.finfo(dtype).eps
    # (1 + eps) (1 - eps) - 1 is -eps ** 2; with a product that is rounded it is 0.
    a[:2], b[0, 1], b[1, 1] = (1, 1 + eps), -1, 1 - eps
    (got,) = call(build_together(folder, [source]), kernel, source, [a, b])
    has_fused = "fma" in Path("/proc/cpuinfo").read_text().split()
    expected = np.square(eps) if has_fused else 0
    assert got[5 + 1] == (-expected if sign == "+" else expected)


PRODUCT = """kernel product(a: {dtype}[{m}, {k}], b: {dtype}[{b}]) -> (c) {{
  buffer c: {dtype}[{m}, {n}]
  serial i in 0 .. {m} {{ serial k in 0 .. {k} {{ serial j in 0 .. {n} {{
    c[i, j] = c[i, j] + (a[i, k] * b[{at}])
  }} }} }}
}}"""


def product(dtype: str, m: int, k: int, n: int, *, is_transposed: bool = False) -> str:
    """Returns the text of a kernel of a matrix of m rows by one of n columns."""
    b, at = (f"{n}, {k}", "j, k") if is_transposed else (f"{k}, {n}", "k, j")
    return PRODUCT.format(dtype=dtype, m=m, k=k, n=n, b=b, at=at)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_all_sizes_are_those_of_numpy(
    folder: Path, dtype: str, vector_bytes: int
) -> None:
    sizes = [(12, 8, 16), (13, 9, 17), (14, 20, 31), (17, 8, 40), (18, 33, 23), (64, 30, 64)]
    sizes += [(13, 16, 5), (14, 17, 7), (24, 20, 8), (12, 30, 13)]
    texts = [product(dtype, m, k, n) for m, k, n in sizes]
    kernels = [prepared(parse_kernel(text)) for text in texts]
    sources = [printed(kernel, number) for number, kernel in enumerate(kernels)]
    itemsize = np.dtype(dtype).itemsize
    for (_, _, n), source in zip(sizes, sources, strict=True):
        # The widest vectors that a row fills.
        assert f"vector_size({min(vector_bytes, 1 << int(np.log2(n * itemsize)))})" in source.text
    library = build_together(folder, sources)
    rng = np.random.default_rng(1)
    for (m, k, n), kernel, source in zip(sizes, kernels, sources, strict=True):
        a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
        (got,) = call(library, kernel, source, [a, b])
        np.testing.assert_allclose(got, a @ b, rtol=0, atol=100 * np.finfo(dtype).eps)


def test_products_with_a_transposed_factor_are_those_of_numpy(
    folder: Path, vector_bytes: int
) -> None:
    sizes = [(32, 8, 16), (33, 9, 17), (38, 20, 31), (64, 33, 75), (41, 200, 40)]
    kernels = [
        prepared(parse_kernel(product("float32", m, k, n, is_transposed=True))) for m, k, n in sizes
    ]
    sources = [printed(kernel, number) for number, kernel in enumerate(kernels)]
    assert all("panels" in source.text for source in sources)
    library = build_together(folder, sources)
    rng = np.random.default_rng(1)
    for (m, k, n), kernel, source in zip(sizes, kernels, sources, strict=True):
        a, b = (rng.normal(size=size).astype(np.float32) for size in ((m, k), (n, k)))
        (got,) = call(library, kernel, source, [a, b])
        np.testing.assert_allclose(got, a @ b.T, rtol=0, atol=300 * np.finfo(np.float32).eps)


def test_the_tiles_of_a_product_are_in_registers() -> None:
    source = printed(prepared(parse_kernel(product("float32", m=24, k=16, n=32))))
    assert source.text.count("float tile") >= 12
    command = ["g++", "-O3", "-mavx2", "-mfma", *FLAGS[1:], *GCC_FLAGS, "-S", "-o-", "-xc++", "-"]
    done = subprocess.run(command, input=source.text, capture_output=True, text=True, check=True)
    # From the first product to the last one of a step nothing is on the stack.
    step = done.stdout.partition("vfmadd")[2].partition("\tj")[0]
    assert step.count("vfmadd") >= 10
    assert "(%rsp)" not in step
