"""Conditions that data decide, without branches: by text, and by what they compute."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import (
    Kernel,
    add_choices,
    evaluate_whole_conditions,
    interpret,
    parse_kernel,
)
from loop_native import build_together, call, shipped
from random_examples import examples
from test_c_arrangement import arranged
from test_c_carrying import MORE, distances, lines_of


def test_both_parts_of_a_condition_are_evaluated() -> None:
    lines = lines_of(arranged(evaluate_whole_conditions, distances()))
    assert "if ((a[i] == b[j - 1]) & (a[i - 1] == b[j])) {" in lines
    for more, line in (
        (MORE.replace("(a[i] == b[j - 1])", "(i > j)"), "if ((i > j) & (a[i - 1] == b[j])) {"),
        (MORE.replace("&&", "||"), "if ((a[i] == b[j - 1]) | (a[i - 1] == b[j])) {"),
    ):
        assert line in lines_of(arranged(evaluate_whole_conditions, distances(more=more)))


@pytest.mark.parametrize(
    "more",
    [
        MORE.replace("j - 2]", "b[j]]"),
        MORE.replace("b[j - 1]", "b[a[j - 1]]"),
        MORE.replace("(a[i - 1] == b[j])", "(cost[] > 0)"),
        MORE.replace("a[i - 1] == b[j]", "t[j // 2, i] == b[j]"),
        MORE.replace("b[j])", "b[j + 1])"),
        MORE.replace("== b[j])", "== (((b[j] // 3) + (b[j] // 5)) // (b[j] // 7)))"),
    ],
    ids=["an element", "a pick", "variables", "columns", "outside", "divisions"],
)
def test_conditions_that_keep_their_branch(more: str) -> None:
    kernel = distances(more=more)
    assert evaluate_whole_conditions(kernel) is kernel


NEAR = """kernel near(x: {dtype}[7, 30], w: {dtype}[30], at: int32[30]) -> (s) {{
  buffer s: {dtype}[7]
  parallel i in 0 .. 7 {{
    local sum: {dtype}[] {{
      {kind} b in 0 .. 30 {{
        local q: {dtype}[] {{
          q[] = x[i, b] - {half}
          if ({condition}) {{ {update} }}
        }}
      }}
      s[i] = sum[]
    }}
  }}
}}"""
PARTS = {
    "dtype": "float64", "kind": "reduction", "half": "1.0:float64",
    "condition": "q[] > 0.0:float64", "update": "sum[] = sum[] + (q[] * w[b])",
}  # fmt: skip


def near(**parts: str) -> Kernel:
    return parse_kernel(NEAR.format(**{**PARTS, **parts}))


@pytest.mark.parametrize("op", ["+", "-"])
def test_a_cheap_term_is_a_choice(op: str) -> None:
    kernel = near(update=f"sum[] = sum[] {op} (q[] * w[b])")
    lines = lines_of(arranged(add_choices, kernel))
    assert f"sum[] = sum[] {op} ((q[] > 0.0:float64) ? (q[] * w[b]) : 0.0:float64)" in lines


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_cheap_terms_of_several_sums_are_choices(dtype: str) -> None:
    number = ("{}" if dtype == "int32" else "{}.0:float64").format
    condition = f"(q[] > {number(0)}) && (w[b] > {number(1)})"
    update = f"sum[] = sum[] + (q[] * w[b]) count[] = count[] - {number(1)}"
    parts = {"dtype": dtype, "half": number(1), "condition": condition, "update": update}
    text = NEAR.replace(
        "local sum: {dtype}[] {{", "local sum: {dtype}[] {{ local count: {dtype}[] {{"
    )
    text = text.replace("s[i] = sum[]", "s[i] = sum[] * count[] }}")
    lines = lines_of(arranged(add_choices, parse_kernel(text.format(**{**PARTS, **parts}))))
    assert f"sum[] = sum[] + (({condition}) ? (q[] * w[b]) : {number(0)})" in lines
    assert f"count[] = count[] - (({condition}) ? {number(1)} : {number(0)})" in lines


DIVISIONS = "((q[] / w[b]) / ((q[] + 3.0:float64) / (w[b] + 5.0:float64)))"


@pytest.mark.parametrize(
    "parts",
    [
        {"kind": "serial"},
        {"condition": "b > 9"},
        {"update": "sum[] = sum[] * (q[] * w[b])"},
        {"update": "q[] = q[] + w[b]"},
        {"update": f"sum[] = sum[] + {DIVISIONS}"},
        {"update": "sum[] = sum[] + w[at[b]]"},
        {"update": "sum[] = sum[] + w[b + 1]"},
        {"update": "s[i] = s[i] + q[]"},
        {"update": "sum[] = sum[] + q[] w[b] = 0.0:float64"},
        {"update": "sum[] = sum[] + q[] s[i] = s[i] + w[b]"},
        {"condition": "sum[] > q[]", "update": "sum[] = sum[] + q[] sum[] = sum[] + w[b]"},
        {"update": "sum[] = sum[] + q[]  sum[] = sum[] + w[at[b]]"},
        {"dtype": "int32", "half": "1", "condition": "q[] > 0"},
    ],
    ids=[
        "in order", "positions", "a product", "its own", "long", "a pick", "outside", "an element",
        "two", "another element", "it is read", "another pick", "integers",
    ],
)  # fmt: skip
def test_terms_that_keep_their_branch(parts: dict[str, str]) -> None:
    kernel = near(**parts)
    assert add_choices(kernel) is kernel


FLAGS = """kernel flags(h: int32[{n}, 3], table: {dtype}[12]) -> (found) {{
  buffer found: {dtype}[{n}]
  parallel i in 0 .. {n} {{
    local ok: {dtype}[] {{
      ok[] = {start}
      {kind} k in 0 .. 3 {{ if ({condition}) {{ {store} }} {otherwise} }}
      found[i] = ok[]
    }}
  }}
}}"""
FLAG_PARTS = {
    "n": "9", "dtype": "int32", "start": "1", "kind": "serial", "store": "ok[] = 0",
    "condition": "table[h[i, k] + 2] == 1", "otherwise": "",
}  # fmt: skip


def flags(**parts: str) -> Kernel:
    return parse_kernel(FLAGS.format(**{**FLAG_PARTS, **parts}))


@settings(max_examples=examples(10))
@given(st.integers(0, 2**32 - 1))
def test_what_is_not_chosen_may_be_no_number(seed: int) -> None:
    kernel = near()
    rng = np.random.default_rng(seed)
    x, w = (
        rng.choice([0.0, 1.0, 3.0, np.nan, np.inf, -np.inf], (7, 30)),
        rng.choice([1.0, np.inf], 30),
    )
    inputs = [x, w, np.zeros(30, np.int32)]
    for got, want in zip(
        interpret(add_choices(kernel), inputs), interpret(kernel, inputs), strict=True
    ):
        np.testing.assert_array_equal(got, want)


def test_c_without_branches_computes_what_the_interpreter_does(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    cases = [
        (distances(), [rng.integers(0, 3, 9, np.int32), rng.integers(0, 3, 12, np.int32)]),
        (near(), [rng.integers(-3, 4, (7, 30)) * 1.0, rng.integers(1, 4, 30) * 1.0,
                  np.zeros(30, np.int32)]),
        (flags(), [rng.integers(-2, 10, (9, 3), np.int32), rng.integers(0, 2, 12, np.int32)]),
    ]  # fmt: skip
    sources = [shipped(kernel, number) for number, (kernel, _) in enumerate(cases)]
    library = build_together(tmp_path, [source for _, source in sources])
    for (kernel, inputs), (arranged_kernel, source) in zip(cases, sources, strict=True):
        got_all = call(library, arranged_kernel, source, inputs)
        for got, want in zip(got_all, interpret(kernel, inputs), strict=True):
            np.testing.assert_array_equal(got, want)
    assert " & " in sources[0][1].text


OTHERS = """kernel others(y: {dtype}[30, 2], p: {dtype}[30]) -> (g) {{
  buffer g: {dtype}[30]
  parallel i in 0 .. 30 {{
    local sum: {dtype}[] {{
      local more: {dtype}[] {{
        reduction j in 0 .. 30 {{
          if ({condition}) {{
            local d: {dtype}[] {{
              d[] = {value}
              sum[] = sum[] + {term}
              {update}
            }}
          }} {otherwise}
        }}
        g[i] = sum[] - more[]
      }}
    }}
  }}
}}"""
OTHER_PARTS = {
    "dtype": "float64", "condition": "i != j", "value": "y[i, 0] - y[j, 0]", "otherwise": "",
    "term": "(p[j] / (d[] * d[]))", "update": "more[] = more[] - d[]",
}  # fmt: skip


def others(**parts: str) -> Kernel:
    return parse_kernel(OTHERS.format(**{**OTHER_PARTS, **parts}))


def test_a_body_that_one_iteration_leaves_out_is_computed_in_any_case() -> None:
    lines = lines_of(add_choices(others()))
    assert not any("if (" in line for line in lines)
    assert "d[] = y[i, 0] - y[j, 0]" in lines
    assert "sum[] = sum[] + ((i != j) ? (p[j] / (d[] * d[])) : 0.0:float64)" in lines
    assert "more[] = more[] - ((i != j) ? d[] : 0.0:float64)" in lines


@pytest.mark.parametrize(
    "parts",
    [
        {"condition": "i < j"},
        {"condition": "i != 7"},
        {"condition": "(i + j) != (j + 3)"},
        {"value": "y[j, 0] - p[(30 - i) + ((j - 1) - j)]"},
        {"update": "more[] = max(more[], d[])"},
        {"update": "g[i] = g[i] + d[]"},
        {"update": "if (d[] > more[]) { more[] = d[] }"},
        {"update": "if (d[] > more[]) { d[] = more[] }"},
        {"update": "if (d[] > more[]) { more[] = more[] + d[] sum[] = sum[] + d[] }"},
        {"condition": "int32(more[]) != j"},
        {"update": "if (d[] > p[j]) { more[] = more[] + d[] sum[] = max(sum[], d[]) }"},
        {"update": "if (d[] > p[j]) { more[] = more[] + d[] } else { more[] = more[] + p[j] }"},
        {"otherwise": "else { more[] = more[] + p[j] }"},
    ],
    ids=[
        "half of the iterations", "not of the loop", "always one", "may not exist", "an extreme",
        "an array", "a condition inside", "on a variable",
        "a condition that sums change", "a condition of all that sums change",
        "a sum and an extreme", "two sides inside", "two sides",
    ],
)  # fmt: skip
def test_bodies_that_keep_their_branch(parts: dict[str, str]) -> None:
    kernel = others(**parts)
    assert add_choices(kernel) is kernel


def test_a_condition_inside_of_it_leaves_out_more() -> None:
    kernel = others(update="if (d[] > p[j]) { more[] = more[] + d[] }")
    assert (
        "more[] = more[] + (((i != j) & (d[] > p[j])) ? d[] : 0.0:float64)"
        in lines_of(add_choices(kernel))
    )  # fmt: skip


UPDATES = ["more[] = more[] - d[]", "if (d[] > p[j]) { more[] = more[] + d[] }"]


@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from(["float32", "float64", "int32"]),
    update=st.sampled_from(UPDATES),
)
@settings(max_examples=examples(20), deadline=None)
def test_the_iteration_that_is_left_out_adds_nothing(seed: int, dtype: str, update: str) -> None:
    term = "(p[j] * d[])" if dtype == "int32" else "(p[j] / (d[] * d[]))"
    kernel, rng = others(dtype=dtype, update=update, term=term), np.random.default_rng(seed)
    inputs = [rng.permutation(60).reshape(30, 2).astype(dtype), rng.uniform(size=30).astype(dtype)]
    (want,) = interpret(kernel, inputs)
    assert np.isfinite(want).all()
    np.testing.assert_array_equal(interpret(add_choices(kernel), inputs)[0], want)


def test_c_that_computes_it_in_any_case_is_right(tmp_path: Path) -> None:
    kernel, source = shipped(others(), 0)
    library = build_together(tmp_path, [source], ("-O3",))
    rng = np.random.default_rng(0)
    y, p = rng.permutation(60).reshape(30, 2).astype("float64"), rng.uniform(size=30)
    d = y[:, None, 0] - y[None, :, 0]
    np.fill_diagonal(d, np.inf)
    want = (p / (d * d)).sum(1) + np.where(np.isinf(d), 0, d).sum(1)
    np.testing.assert_allclose(call(library, kernel, source, [y, p])[0], want, rtol=1e-13)
