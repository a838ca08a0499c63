"""Loops that were split at a pivot, as one loop: by text, and by what they compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, interpret, parse_kernel, rejoin_at_pivots
from loop_native import build_together, call, shipped
from random_examples import examples
from test_c_arrangement import arranged_apart
from test_c_carrying import lines_of

PATHS = """kernel paths(q: {dtype}[20, 20], n: uint8[20]) -> (p) {{
  buffer p: {dtype}[20, 20]
  parallel a in 0 .. 20 {{ parallel b in 0 .. 20 {{ p[a, b] = q[a, b] }} }}
  serial k in {steps} {{
    parallel i in {rows} {{
      {kind} j in {begin} .. {pivot} {{ {before} }}
      {at}
      {kind} l in {next} .. {end} {{ {after} }}
    }}
  }}
}}"""
PARTS = {
    "dtype": "float32", "steps": "1 .. 18", "rows": "0 .. k", "kind": "parallel", "begin": "0",
    "pivot": "k", "next": "(k + 1)", "end": "20",
    "store": "p[i, J] = min(p[i, J], p[i, PIVOT] + p[k, J])",
}  # fmt: skip


def paths(**parts: Any) -> Kernel:
    parts = {**PARTS, **parts}
    pivot = parts["pivot"]
    store = parts.pop("store").replace("PIVOT", pivot)
    stores = {"before": "j", "at": pivot, "after": "l"}
    texts = {name: store.replace("J", var) for name, var in stores.items()}
    return parse_kernel(PATHS.format(**{**texts, **parts}))


def test_the_parts_of_a_row_are_one_loop() -> None:
    lines = lines_of(arranged_apart(rejoin_at_pivots, paths()))
    first = lines.index("held[] = p[i, k]")
    assert lines[first : first + 4] == [
        "held[] = p[i, k]",
        "next[] = min(held[], held[] + p[k, k])",
        "parallel j in 0 .. 20 {",
        "p[i, j] = min(p[i, j], ((j <= k) ? held[] : next[]) + p[k, j])",
    ]
    assert not any(" l in " in line for line in lines)


@pytest.mark.parametrize(
    "parts",
    [
        {"kind": "serial"},
        {"rows": "0 .. (k + 1)"},
        {"next": "(k + 2)"},
        {"next": "k"},
        {"pivot": "7", "next": "8"},
        {"pivot": "min(int32(n[i]), 18)", "next": "(min(int32(n[i]), 18) + 1)"},
        {"begin": "k", "pivot": "(k - 1)", "next": "k"},
        {"end": "k"},
        {"end": "257"},
        {"store": "p[i, J] = p[i, J] + q[i, J]"},
        {"store": "p[i, J] = p[i, J] + (p[i, PIVOT] * p[i, 3])"},
        {"store": "p[i, J] = p[i, PIVOT] + p[i, 19 - J]"},
        {"store": "p[i, 19 - J] = p[i, 19 - J] + p[i, 19 - PIVOT]"},
        {"store": "p[J, J] = p[J, J] + p[PIVOT, PIVOT]", "rows": "0 .. 1"},
        {"before": "p[i, j] = p[i, k] + 1.0:float32"},
        {"after": "p[i, l] = p[i, k] + 1.0:float32"},
        {"at": "p[i, k] = p[i, k] + 1.0:float32"},
    ],
    ids=["in an order", "the row may be that of the pivot", "one is left out", "one runs twice",
         "a number", "data", "it may begin after the pivot", "it may end before", "a long row",
         "no pivot", "a third element", "elements of others", "backwards", "a diagonal",
         "before is another", "after is another", "the pivot is another"],
)  # fmt: skip
def test_others_stay(parts: dict[str, str]) -> None:
    kernel = paths(**parts)
    assert rejoin_at_pivots(kernel) is kernel


STORES = (
    PARTS["store"],
    "p[i, J] = p[i, J] - (p[i, PIVOT] * p[k, J])",
    "p[i, J] = (p[i, PIVOT] < 0.0:{dtype}) ? p[k, J] : (p[i, J] + 1.0:{dtype})",
    "p[i, J] = p[i, PIVOT] + ({dtype}(J) * q[i, PIVOT])",
)


@settings(max_examples=examples(40), deadline=None)
@given(
    dtype=st.sampled_from(["float32", "float64", "int32"]),
    store=st.sampled_from(STORES),
    rows=st.sampled_from(["0 .. k", "(k + 1) .. 20"]),
    begin=st.sampled_from(["0", "1", "(k - 1)"]),
    pivot=st.sampled_from(["k", "(k - 1)"]),
    end=st.sampled_from(["20", "18", "(k + 2)"]),
)
def test_whole_rows_mean_the_same(dtype: str, store: str, pivot: str, **parts: str) -> None:
    text = store.format(dtype=dtype)
    if dtype == "int32":
        text = text.replace(".0:int32", "")
    kernel = paths(
        dtype=dtype, store=text, pivot=pivot, next=f"({pivot} + 1)", steps="2 .. 18", **parts
    )
    after = arranged_apart(rejoin_at_pivots, kernel)
    assert after is not kernel
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
