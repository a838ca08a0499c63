"""Sums with a sum for each lane of a few vectors: by text, and by what their C computes."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import (
    PASSES_TO_C,
    Kernel,
    interpret,
    kernel_text,
    mark_vectors,
    parse_kernel,
    run_passes,
    sum_in_lanes,
)
from loop_native import build_together, call, printed
from quick_cases import one_in
from random_examples import examples
from test_c_arrangement import arranged_apart, body_of

from msops._base import processor

pytestmark = pytest.mark.usefixtures("avx")

# Rows of sums, in variables.
ROWS = """kernel rows(a: {dtype}[7, {columns}], b: {dtype}[{columns}], n: {counts}[7]) -> (c, d) {{
  buffer c: {dtype}[7, 2]
  buffer d: {dtype}[7, {columns}]
  parallel i in 0 .. 7 {{
    local sum: {dtype}[] {{ local more: {dtype}[] {{
      sum[] = a[i, 0]
      reduction j in {begin} .. {end} {{
        {update}
      }}
      c[i, 0] = sum[]
      c[i, 1] = more[]
    }} }}
  }}
}}"""
PARTS = {
    "dtype": "float32", "counts": "int32", "columns": "80", "begin": "0", "end": "64",
    "update": "sum[] = sum[] + (a[i, j] * b[j])",
}  # fmt: skip


def rows(**parts: Any) -> Kernel:
    return parse_kernel(ROWS.format(**{**PARTS, **parts}))


@pytest.fixture(params=one_in(3, [16, 32, 64], first=1))
def vector_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The bytes of a vector of three kinds of processors."""
    monkeypatch.setattr(processor, "vector_bytes", lambda: request.param)
    return int(request.param)


def lanes_of(kernel: Kernel) -> str:
    """Returns the text of what replaces the reduction."""
    body = body_of(arranged_apart(sum_in_lanes, kernel))
    inside = body.split("sum[] = a[i, 0]\n")[1].split("      c[i, 0]")[0]
    return textwrap.dedent(inside)


def test_a_sum_has_several_vectors_and_then_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "vector_bytes", lambda: 32)
    assert lanes_of(rows(end="23")) == textwrap.dedent("""\
        local part_2: float32[4] {
          local part_1: float32[8] {
            local part: float32[8] {
              parallel lane in 0 .. 8 {
                part[lane] = part[lane] + (a[i, lane] * b[lane])
              }
              parallel lane_1 in 0 .. 8 {
                part_1[lane_1] = part_1[lane_1] + (a[i, lane_1 + 8] * b[lane_1 + 8])
              }
              parallel lane_3 in 0 .. 8 {
                part[lane_3] = part[lane_3] + part_1[lane_3]
              }
              parallel lane_4 in 0 .. 4 {
                part_2[lane_4] = part[lane_4] + part[lane_4 + 4]
              }
              parallel lane_5 in 0 .. 4 {
                part_2[lane_5] = part_2[lane_5] + (a[i, lane_5 + 16] * b[lane_5 + 16])
              }
              sum[] = sum[] + ((part_2[0] + part_2[2]) + (part_2[1] + part_2[3]))
              serial j in 20 .. 23 {
                sum[] = sum[] + (a[i, j] * b[j])
              }
            }
          }
        }
        """)


def test_other_terms_are_computed_for_all_lanes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "vector_bytes", lambda: 16)
    assert lanes_of(rows(end="8", update="sum[] = sum[] - abs(a[i, j])")) == textwrap.dedent("""\
        local part_1: float32[4] {
          local part: float32[4] {
            local term: float32[4] {
              parallel lane in 0 .. 4 {
                term[lane] = abs(a[i, lane])
              }
              parallel lane_1 in 0 .. 4 {
                part[lane_1] = part[lane_1] - term[lane_1]
              }
            }
            local term_1: float32[4] {
              parallel lane_2 in 0 .. 4 {
                term_1[lane_2] = abs(a[i, lane_2 + 4])
              }
              parallel lane_3 in 0 .. 4 {
                part_1[lane_3] = part_1[lane_3] - term_1[lane_3]
              }
            }
            parallel lane_6 in 0 .. 4 {
              part[lane_6] = part[lane_6] + part_1[lane_6]
            }
            sum[] = sum[] + ((part[0] + part[2]) + (part[1] + part[3]))
          }
        }
        """)


def test_two_terms_in_a_row_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "vector_bytes", lambda: 16)
    text = lanes_of(rows(end="16", update="sum[] = sum[] + a[i, j] sum[] = sum[] - abs(b[j])"))
    assert "= a[i, lane] - abs(b[lane])" in text
    assert text.count("part[lane_1] = part[lane_1] + term[lane_1]") == 1


@pytest.mark.parametrize(
    "parts",
    [
        {"end": "7"},
        {"dtype": "int32"},
        {"update": "sum[] = max(sum[], a[i, j])"},
        {"update": "sum[] = sum[] * a[i, j]"},
        {"update": "sum[] = sum[] + a[i, j] d[i, j] = b[j] sum[] = sum[] + b[j]"},
        {"update": "if ((b[j] < a[i, 0])) { sum[] = sum[] + a[i, j] }"},
    ],
    ids=["few terms", "integers", "an extreme", "a product", "terms apart", "a condition"],
)
def test_other_reductions_stay(parts: dict[str, str]) -> None:
    kernel = rows(**parts)
    assert sum_in_lanes(kernel) is kernel


@pytest.mark.parametrize(("end", "stays"), [("16", True), ("17", False)])
@pytest.mark.parametrize("at", ["int32(b[j])", "min(j, 12)"])
def test_few_elements_that_are_picked_stay(end: str, stays: bool, at: str) -> None:
    kernel = rows(end=end, update=f"sum[] = sum[] + a[i, {at}]")
    assert (sum_in_lanes(kernel) is kernel) == stays
    assert ("@vector(lanes)" in kernel_text(mark_vectors(kernel))) != stays


def test_few_elements_of_a_row_that_is_picked_do_not_stay() -> None:
    kernel = rows(end="16", update="sum[] = sum[] + a[int32(b[0]), j]")
    assert sum_in_lanes(kernel) is not kernel


def long_update(differences: int) -> str:
    """Returns an update with two operations for each difference, and one more."""
    term = "b[j]"
    for _ in range(differences):
        term = f"(({term} - a[i, j]) * b[j])"
    return f"sum[] = sum[] + {term}"


def test_long_terms_stay() -> None:
    assert sum_in_lanes(kernel := rows(update=long_update(4))) is kernel
    assert sum_in_lanes(kernel := rows(update=long_update(3))) is not kernel


def test_sums_of_two_dtypes_stay() -> None:
    kernel = parse_kernel("""kernel two(a: float32[80], b: float64[80]) -> (c) {
      buffer c: float64[2]
      local s: float32[] { local t: float64[] {
        reduction j in 0 .. 80 { s[] = s[] + a[j] t[] = t[] + b[j] }
        c[0] = float64(s[])
        c[1] = t[]
      } }
    }""")
    assert sum_in_lanes(kernel) is kernel


def test_short_rows_have_short_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "vector_bytes", lambda: 64)
    assert "local part: float32[8]" in lanes_of(rows(end="15"))


TRIANGLE = """kernel triangle(a: float32[48, 48]) -> (c) {{
  buffer c: float32[48, 48]
  serial k in 0 .. {rows} {{
    parallel i in {begin} .. {end} {{
      local sum: float32[] {{
        reduction j in {begin} .. i {{ sum[] = sum[] + (a[i, j] * a[k, j]) }}
        c[k, i] = sum[]
      }}
    }}
  }}
}}"""


def test_rows_from_a_diagonal_are_as_long_as_their_bounds_say() -> None:
    # In both, i and what it starts from are about the same in the mean, if taken on their own.
    long = parse_kernel(TRIANGLE.format(rows=47, begin="(k + 1)", end=48))
    assert "local part: float32[" in body_of(arranged_apart(sum_in_lanes, long))
    short = parse_kernel(TRIANGLE.format(rows=12, begin="(k * 4)", end="((k * 4) + 4)"))
    assert sum_in_lanes(short) is short
    band = parse_kernel(TRIANGLE.format(rows=47, begin="max(k - 8, 0)", end="k"))
    assert sum_in_lanes(band) is band


UPDATES = (
    "sum[] = sum[] + (a[i, j] * b[j])",
    "sum[] = sum[] - (a[i, j] * b[j])",
    "sum[] = (sum[] + a[i, j]) - b[j]",
    "sum[] = sum[] + {dtype}(j)",
    "sum[] = sum[] + abs(a[i, j])",
    "sum[] = sum[] + a[int32(n[i]) % 7, j]",
    "sum[] = sum[] + b[min(j + int32(n[i]), 79)]",
    "sum[] = sum[] + ((a[i, j] < b[j]) ? a[i, j] : b[j])",
    "sum[] = sum[] + a[i, j] more[] = more[] - b[j]",
    "d[i, j] = a[i, j] sum[] = sum[] + (a[i, j] * b[j])",
    "sum[] = sum[] + (a[i, j] * b[j]) sum[] = sum[] - b[j]",
    "local t: {dtype}[] {{ t[] = a[i, j] sum[] = sum[] - t[] sum[] = b[j] + sum[] }}",
    "local t: {dtype}[] {{ t[] = a[i, j] - b[j] sum[] = sum[] + (t[] * t[]) d[i, j] = t[] }}",
    "local t: {dtype}[] {{ t[] = floor(b[j]) sum[] = sum[] + t[] more[] = more[] + a[i, j] }}",
)
BOUNDS = [
    ("0", "64"),
    ("3", "80"),
    ("1", "9"),
    ("0", "int32(n[i])"),
    ("i", "(70 - i)"),
    ("(int32(n[i]) // 2)", "80"),
]


@settings(max_examples=examples(60), deadline=None)
@given(
    begin=st.integers(0, 12),
    end=st.one_of(
        # More elements than are added one by one if they are picked.
        st.integers(30, 80).map(str),
        st.sampled_from(["(i + 50)", "min(int32(n[i]), 80)", "(60 - i)"]),
    ),
    counts=st.just("uint8"),
    update=st.sampled_from(UPDATES),
    dtype=st.sampled_from(["float32", "float64"]),
    vector=st.sampled_from([16, 32, 64]),
)
def test_sums_in_lanes_mean_the_same(vector: int, update: str, dtype: str, **parts: Any) -> None:
    kernel = rows(update=update.format(dtype=dtype), dtype=dtype, **parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processor, "vector_bytes", lambda: vector)
        assert arranged_apart(sum_in_lanes, kernel) is not kernel


def test_a_row_may_end_before_it_begins() -> None:
    kernel = rows(begin="(int32(n[i]) // 4)", end="61", counts="uint8")
    # 255 is among the numbers.
    assert arranged_apart(sum_in_lanes, kernel) is not kernel


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_c_adds_up_what_the_interpreter_does(tmp_path: Path, dtype: str, vector_bytes: int) -> None:
    kernels = [
        rows(update=update.format(dtype=dtype), dtype=dtype, begin=begin, end=end, counts="uint8")
        # A compiler is asked for the last one.
        for update in (*UPDATES, long_update(4))
        for begin, end in BOUNDS
    ]
    arranged = [run_passes(kernel, PASSES_TO_C) for kernel in kernels]
    sources = [printed(kernel, number) for number, kernel in enumerate(arranged)]
    library = build_together(tmp_path, sources)
    rng = np.random.default_rng(0)
    inputs = [
        rng.integers(-2, 3, (7, 80)).astype(dtype),
        rng.integers(-2, 3, 80).astype(dtype),
        np.array([0, 5, 16, 33, 64, 80, 200], np.uint8),
    ]
    for kernel, after, source in zip(kernels, arranged, sources, strict=True):
        for got, want in zip(
            call(library, after, source, inputs), interpret(kernel, inputs), strict=True
        ):
            np.testing.assert_array_equal(got, want, err_msg=kernel_text(kernel))
