"""Indices of elements that data pick are computed in vectors, ahead of the stores."""

from __future__ import annotations

import dataclasses
import textwrap

import numpy as np
import pytest
from loop_ir import Const, For, Kernel, compute_picks_ahead, parse_kernel
from test_c_arrangement import arranged, body_of

from msops import Custom

BINS = """kernel bins(x: float32[700], n: int32[700]) -> (b, c) {{
  buffer b: int32[12]
  buffer c: float32[700]
  {kind} k in {span} {{
    local at: int32[] {{
      local other: int32[] {{
        at[] = {value}
        {between}
        {store}
      }}
    }}
  }}
}}"""
ROWS = """kernel rows(x: float32[40]) -> (b) {
  buffer b: int32[40, 12]
  serial i in 0 .. 3 {
    parallel k in 0 .. 40 {
      local at: int32[] {
        at[] = int32(x[k] * 2.0:float32) + 2
        if (at[] < 9) { b[k, at[]] = b[k, at[]] + 1 }
      }
    }
  }
}"""
PARTS = {
    "kind": "reduction", "span": "0 .. 40", "value": "(int32(x[k] * 2.0:float32) + 2)",
    "between": "", "store": "b[at[]] = b[at[]] + 1",
}  # fmt: skip


def bins(**parts: str) -> Kernel:
    return parse_kernel(BINS.format(**{**PARTS, **parts}))


def text_of(**parts: str) -> str:
    return body_of(arranged(compute_picks_ahead, bins(**parts)))


def test_indices_have_a_loop_of_their_own() -> None:
    assert text_of() == textwrap.dedent("""\
        buffer b: int32[12]
        buffer c: float32[700]
        local at: int32[40] {
          parallel k_1 in 0 .. 40 {
            at[k_1] = int32(x[k_1] * 2.0:float32) + 2
          }
          reduction k in 0 .. 40 {
            b[at[k]] = b[at[k]] + 1
          }
        }""")


def test_a_long_loop_goes_block_by_block() -> None:
    text = text_of(span="3 .. 700")
    assert "reduction k_block in 0 .. 3 {" in text
    assert "local at: int32[256] {" in text


def test_a_value_that_only_the_indices_need_is_a_variable() -> None:
    text = text_of(
        value="n[k] % 3", between="other[] = (at[] + int32(x[k])) + 1",
        store="b[other[]] = b[other[]] + 1",
    )  # fmt: skip
    assert "local at: int32[] {" in text
    assert "local other: int32[40] {" in text


def test_what_follows_a_store_stays_with_it() -> None:
    text = text_of(store="b[at[]] = b[at[]] + 1 other[] = b[0] b[other[] % 8] = b[other[] % 8] + 1")
    assert text.index("reduction k") < text.index("other[] = b[0]")


def test_rows_of_their_own_get_indices_ahead_of_what_is_added() -> None:
    text = body_of(arranged(compute_picks_ahead, parse_kernel(ROWS)))
    first, second = text.split("parallel k in 0 .. 40")
    assert "at[k_1] = int32(x[k_1] * 2.0:float32) + 2" in first
    assert "b[k, at[k]] = b[k, at[k]] + 1" in second


def test_elements_may_be_a_few_apart() -> None:
    text = text_of(value="(int32(x[3 * k] + x[(3 * k) + 1]) + 2)")
    assert text.startswith("buffer b: int32[12]\nbuffer c: float32[700]\nlocal at: int32[40]")


def test_a_loop_may_be_a_block_of_iterations() -> None:
    text = bins(span="(p * 20) .. ((p * 20) + 20)")
    outer = For("p", Const(0, "int32"), Const(2, "int32"), text.body, "serial")
    blocks = dataclasses.replace(text, body=(outer,))
    assert "local at: int32[20]" in body_of(arranged(compute_picks_ahead, blocks))


GUARDED = """kernel bins(x: float32[700], n: int32[700]) -> (b, c) {{
  buffer b: int32[12]
  buffer c: float32[700]
  reduction k in 0 .. 40 {{
    if ({condition}) {{
      local at: int32[] {{
        at[] = {value}
        {store}
      }}
    }} {otherwise}
  }}
}}"""
GUARDED_PARTS = {**PARTS, "condition": "x[k] > 1.0:float32", "otherwise": ""}


def guarded(**parts: str) -> Kernel:
    return parse_kernel(GUARDED.format(**{**GUARDED_PARTS, **parts}))


def test_indices_under_a_condition_are_computed_in_any_case() -> None:
    text = body_of(arranged(compute_picks_ahead, guarded()))
    assert text == textwrap.dedent("""\
        buffer b: int32[12]
        buffer c: float32[700]
        local at: int32[40] {
          local holds: int32[40] {
            parallel k_1 in 0 .. 40 {
              holds[k_1] = (x[k_1] > 1.0:float32) ? 1 : 0
              at[k_1] = int32(x[k_1] * 2.0:float32) + 2
            }
            reduction k in 0 .. 40 {
              if (holds[k] > 0) {
                b[at[k]] = b[at[k]] + 1
              }
            }
          }
        }""")


@pytest.mark.parametrize(
    "parts",
    [
        {"value": "int32(x[k + 690])", "condition": "k < 10"},
        {"condition": "b[k % 12] < 3"},
        {"value": "(int32(exp(exp(x[k]))) + 2)"},
        {"condition": "x[6 * k] > 1.0:float32"},
        {"value": "(int32(int64(n[k])) + 1)"},
        {"otherwise": "else { b[0] = b[0] + 1 }"},
    ],
    ids=["may not exist", "of what is stored", "long", "far apart", "integers", "two sides"],
)
def test_indices_that_stay_under_their_condition(parts: dict[str, str]) -> None:
    kernel = guarded(**parts)
    assert compute_picks_ahead(kernel) is kernel


@pytest.mark.parametrize(
    "parts",
    [
        {"value": "int32(x[6 * k])"},
        {"kind": "parallel", "store": "c[at[] % 8] = x[k]"},
        {"span": "0 .. 15"},
        {"span": "0 .. n[0]"},
        {"value": "(int32(int64(n[k])) + 1)"},
        {"value": "int32(x[n[k] % 8])"},
        {"value": "int32(c[k])", "store": "c[at[] % 8] = c[at[] % 8] + 1.0:float32"},
        {"store": "b[k % 8] = b[k % 8] + at[]"},
        {"store": "b[at[]] = b[at[]] + 1 at[] = 0 b[at[]] = b[at[]] + 1"},
        {"store": "serial l in 0 .. 2 { b[at[]] = b[at[]] + 1 }"},
        {"between": "if (n[k] > 0) { at[] = 0 }"},
    ],
    ids=[
        "far apart", "in any order", "short", "of any length", "integers", "gathered",
        "of what is stored", "no index", "a variable that changes", "a loop inside", "a condition",
    ],
)  # fmt: skip
def test_other_loops_stay(parts: dict[str, str]) -> None:
    kernel = bins(**parts)
    assert compute_picks_ahead(kernel) is kernel


def votes(x, y):
    acc = output_tensor((12, 9), "int32")  # noqa: F821
    for e in range(x.shape[0]):
        for a in range(y.shape[0]):
            i = int32(floor(x[e] + 3.0 * y[a]))  # noqa: F821
            j = int32(floor(2.0 * x[e] - y[a]))  # noqa: F821
            if i >= 0 and i < 12 and j >= 0 and j < 9:
                acc[i, j] += 1
    return acc


@pytest.mark.parametrize("angles", [20, 600])
def test_votes_are_those_of_numpy(angles: int) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(2, 3, size=n).astype("float32") for n in (30, angles))
    x[3] = np.nan
    y[5] = 1e30
    i = np.floor(x[:, None] + np.float32(3) * y)
    j = np.floor(np.float32(2) * x[:, None] - y)
    want = np.zeros((12, 9), "int32")
    # NaN becomes 0 where it becomes an integer.
    i, j = (np.where(np.isnan(part), 0, part) for part in (i, j))
    valid = (i >= 0) & (i < 12) & (j >= 0) & (j < 9)
    np.add.at(want, (i[valid].astype(int), j[valid].astype(int)), 1)
    got = Custom(votes, func_type="akg", compile_attrs={"lower": "native"})(x, y)
    np.testing.assert_array_equal(got, want)
