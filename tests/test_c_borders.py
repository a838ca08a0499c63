"""Zeros around what a kernel writes of a large result: by text, and by what C computes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, analyse, c_borders, interpret, parse_kernel, with_borders
from loop_native import build_together, call, shipped
from random_examples import examples
from test_c_carrying import lines_of

import msops

EDGES = """kernel edges(a: float32[8, 9], t: int32[8]) -> (b) {{
  buffer b: float32[8, 9]
  {before}
  serial i in {rows} {{
    serial j in {columns} {{ {store} }}
  }}
  {after}
}}"""
PARTS = {
    "before": "", "rows": "1 .. 7", "columns": "2 .. 8", "after": "",
    "store": "b[i, j] = a[i - 1, j] + a[i, j + 1]",
}  # fmt: skip


def edges(**parts: str) -> Kernel:
    return parse_kernel(EDGES.format(**{**PARTS, **parts}))


@pytest.fixture
def any_size() -> Iterator[None]:
    with mock.patch.object(c_borders, "_LEAST_BYTES", 0):
        yield


@pytest.mark.usefixtures("any_size")
def test_the_stage_is_shown(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    known = analyse(edges())
    monkeypatch.setenv("MSOPS_DEBUG", "ir")
    with_borders(known)
    shown = capfd.readouterr().err
    assert shown.startswith("-- zero borders\nkernel")
    assert "parallel b_0 in 0 .. 1 {" in shown


@pytest.mark.usefixtures("any_size")
def test_the_rows_and_columns_around_are_zeroed() -> None:
    known = with_borders(analyse(edges()))
    lines = lines_of(known.kernel)
    assert lines[2 : lines.index("parallel i in 1 .. 7 {")] == [
        "parallel b_0 in 0 .. 1 {",
        "parallel b_1 in 0 .. 9 {",
        "b[b_0, b_1] = 0.0:float32",
        "}",
        "}",
        "parallel b_0_1 in 7 .. 8 {",
        "parallel b_1_1 in 0 .. 9 {",
        "b[b_0_1, b_1_1] = 0.0:float32",
        "}",
        "}",
        "parallel b_0_2 in 1 .. 7 {",
        "parallel b_1_2 in 0 .. 2 {",
        "b[b_0_2, b_1_2] = 0.0:float32",
        "}",
        "}",
        "parallel b_0_3 in 1 .. 7 {",
        "parallel b_1_3 in 8 .. 9 {",
        "b[b_0_3, b_1_3] = 0.0:float32",
        "}",
        "}",
    ]
    assert known.overwritten == {"b"}


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize(
    "parts",
    [
        {"rows": "0 .. 8", "columns": "0 .. 9"},
        {"store": "if (a[i, j] > 0.0:float32) { b[i, j] = a[i, j] }"},
        {"store": "b[i, j] = a[i, j] + b[i, j]"},
        {"store": "b[i, j] = a[i, j] - b[i, j + 1]"},
        {"store": "b[t[i], j] = a[i, j]"},
        {"store": "b[(2 * i) - 5, j] = a[i, j]"},
        {"before": "serial k in 0 .. 1 { serial l in 0 .. 2 { b[k, l] = a[k, l] } }"},
        {"rows": "7 .. 1"},
        {"rows": "1 .. (t[0])"},
    ],
    ids=["all of it", "under a condition", "a sum", "reads what comes later", "where data choose",
         "every second row", "two parts", "nothing", "rows that data count"],
)  # fmt: skip
def test_others_stay(parts: dict[str, str]) -> None:
    known = analyse(edges(**parts))
    assert with_borders(known) is known


def test_small_results_stay() -> None:
    known = analyse(edges())
    assert with_borders(known) is known


@st.composite
def stencils(draw: st.DrawFn) -> Kernel:
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    dtype = draw(st.sampled_from(["float32", "uint8", "bool", "float64"]))
    spans = []
    for length in shape:
        begin = draw(st.integers(0, length - 1))
        spans.append((begin, draw(st.integers(begin, length))))
    at = ", ".join(f"i{axis}" for axis in range(len(shape)))
    loops = " ".join(f"serial i{n} in {b} .. {e} {{" for n, (b, e) in enumerate(spans))
    again = draw(st.sampled_from(["", "serial k in 0 .. 1 { b[0] = a[0] }"]))
    again = again if len(shape) == 1 else ""
    text = f"""kernel stencil(a: {dtype}{shape}) -> (b) {{
      buffer b: {dtype}{shape}
      {loops} b[{at}] = a[{at}] {"}" * len(shape)}
      {again}
    }}"""
    return parse_kernel(text)


def test_c_leaves_zeros_in_memory_that_held_others(tmp_path: Path) -> None:
    @settings(max_examples=examples(60), deadline=None, database=None)
    @given(stencils())
    def collect(kernel: Kernel) -> None:
        found.append(kernel)

    found: list[Kernel] = []
    collect()
    with mock.patch.object(c_borders, "_LEAST_BYTES", 0):
        sources = [shipped(kernel, number) for number, kernel in enumerate(found)]
    library = build_together(tmp_path, [source for _, source in sources])
    has_borders = 0
    for kernel, (arranged, source) in zip(found, sources, strict=True):
        (b,) = kernel.parameters
        inputs = [np.random.default_rng(0).integers(1, 9, b.shape).astype(b.dtype)]
        (got,) = call(library, arranged, source, inputs)
        np.testing.assert_array_equal(got, interpret(kernel, inputs)[0])
        has_borders += "memset" not in source.text
    assert has_borders > len(found) / 4


def test_a_stencil_leaves_zeros_around_a_large_result() -> None:
    def edges(a):
        b = output_tensor(a.shape, a.dtype)  # noqa: F821
        for i in range(1, a.shape[0] - 1):
            for j in range(2, a.shape[1]):
                b[i, j] = a[i - 1, j] + a[i + 1, j - 2]
        return b

    op = msops.Custom(edges, func_type="akg", compile_attrs={"lower": "native"})
    a = np.random.default_rng(0).standard_normal((700, 600)).astype("float32")
    expected = np.zeros_like(a)
    expected[1:-1, 2:] = a[:-2, 2:] + a[2:, :-2]
    for _ in range(3):
        np.testing.assert_array_equal(op(jnp.asarray(a)), expected)
