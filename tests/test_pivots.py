"""Loops that pass a pivot: short rows stay whole, others are split; what both compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, interpret, mark_loops, parse_kernel, split_at_pivots
from loop_native import build_together, call, shipped
from random_examples import examples
from test_c_arrangement import arranged_apart
from test_c_carrying import lines_of

PATHS = """kernel paths(q: {dtype}[20, {columns}], n: uint8[20]) -> (p) {{
  buffer p: {dtype}[20, {columns}]
  parallel a in 0 .. 20 {{ parallel b in 0 .. {columns} {{ p[a, b] = q[a, b] }} }}
  serial k in {steps} {{
    serial i in {rows} {{
      serial j in {begin} .. {end} {{ {store} }}
    }}
  }}
}}"""
PARTS = {
    "dtype": "float32", "steps": "1 .. 18", "rows": "0 .. k", "begin": "0", "end": "20",
    "columns": 20,
    "store": "p[i, j] = min(p[i, j], p[i, k] + p[k, j])",
}  # fmt: skip


def paths(**parts: Any) -> Kernel:
    return parse_kernel(PATHS.format(**{**PARTS, **parts}))


def test_a_short_row_chooses_the_old_or_the_new_pivot() -> None:
    lines = lines_of(arranged_apart(split_at_pivots, paths()))
    first = lines.index("held[] = p[i, k]")
    assert lines[first : first + 4] == [
        "held[] = p[i, k]",
        "next[] = min(held[], held[] + p[k, k])",
        "serial j in 0 .. 20 {",
        "p[i, j] = min(p[i, j], ((j <= k) ? held[] : next[]) + p[k, j])",
    ]


@pytest.mark.parametrize(
    "parts",
    [
        {"rows": "0 .. 19", "steps": "0 .. 20"},
        {"end": "257", "columns": 257},
        {"store": "p[i, j] = p[i, j] + (p[i, k] * p[i, 3])"},
        {"store": "p[i, j] = p[i, k] + p[i, 19 - j]"},
        {"store": "p[j, j] = p[j, j] + p[k, k]", "rows": "0 .. 1"},
        {"store": "p[i, j] = p[i, k] q[i, j] = p[i, j]"},
    ],
    ids=["the row may be that of the pivot", "a long row", "a third element",
         "elements of others", "a diagonal", "two stores"],
)  # fmt: skip
def test_others_are_split(parts: dict[str, str]) -> None:
    lines = lines_of(arranged_apart(split_at_pivots, paths(**parts)))
    assert "serial j in 0 .. k {" in lines
    assert "held[] = p[i, k]" not in lines


def test_all_parts_of_long_rows_are_parallel() -> None:
    after = mark_loops(split_at_pivots(paths(end="257", columns=257)))
    kinds = [line.partition(" in ")[0] for line in lines_of(after) if " in " in line]
    assert [kind for kind in kinds if not kind.startswith("parallel")] == ["serial k"]
    assert len(kinds) == 6


@pytest.mark.parametrize(
    "parts",
    [
        {"begin": "(k + 1)"},
        {"end": "k"},
        {"store": "p[i, j] = p[i, j] + q[i, j]"},
        {"store": "p[i, 19 - j] = p[i, 19 - j] + p[i, 19 - k]"},
    ],
    ids=["it begins after the pivot", "it ends before", "no pivot", "backwards"],
)
def test_others_stay(parts: dict[str, str]) -> None:
    kernel = paths(**parts)
    assert split_at_pivots(kernel) is kernel


STORES = (
    PARTS["store"],
    "p[i, j] = p[i, j] - (p[i, k] * p[k, j])",
    "p[i, j] = (p[i, k] < 0.0:{dtype}) ? p[k, j] : (p[i, j] + 1.0:{dtype})",
    "p[i, j] = p[i, k] + ({dtype}(j) * q[i, k])",
    "p[i, j] = p[i, j] + (p[i, k] * p[i, 3])",
)


@settings(max_examples=examples(40), deadline=None)
@given(
    dtype=st.sampled_from(["float32", "float64", "int32"]),
    store=st.sampled_from(STORES),
    rows=st.sampled_from(["0 .. k", "(k + 1) .. 20", "0 .. 20", "2 .. 19"]),
    begin=st.sampled_from(["0", "1", "(k - 1)", "k", "(k + 1)"]),
    end=st.sampled_from(["20", "18", "(k + 2)", "(k + 1)", "k"]),
)
def test_loops_with_pivots_mean_the_same(dtype: str, store: str, **parts: str) -> None:
    text = store.format(dtype=dtype)
    if dtype == "int32":
        text = text.replace(".0:int32", "")
    kernel = paths(dtype=dtype, store=text, steps="2 .. 18", **parts)
    after = arranged_apart(split_at_pivots, kernel)
    q = np.random.default_rng(0).integers(-9, 9, (20, 20)).astype(dtype)
    inputs = [q, np.ones(20, np.uint8)]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(interpret(after, inputs), interpret(kernel, inputs))


def test_c_computes_what_the_interpreter_does(tmp_path: Path) -> None:
    text = """kernel shortest(p: float32[N, N]) -> (p) {
      serial k in 0 .. N {
        serial i in 0 .. N {
          serial j in 0 .. N { p[i, j] = min(p[i, j], p[i, k] + p[k, j]) }
        }
      }
    }"""
    cases = []
    for n in (5, 16, 33):
        inputs = np.random.default_rng(n).integers(-3, 99, (n, n)).astype("float32")
        inputs[1, 2] = np.nan
        inputs[n - 1, n - 1] = -1
        cases.append((parse_kernel(text.replace("N", str(n))), [inputs]))
    sources = [shipped(kernel, number) for number, (kernel, _) in enumerate(cases)]
    library = build_together(tmp_path, [source for _, source in sources], ("-O3",))
    for (kernel, inputs), (after, source) in zip(cases, sources, strict=True):
        (got,) = call(library, after, source, inputs)
        np.testing.assert_array_equal(got, interpret(kernel, inputs)[0])
