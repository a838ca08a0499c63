"""Sums that each iteration of a loop adds a term to: by text, and by what they compute."""

from __future__ import annotations

import random
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, defer_sums, interpret, tile_products
from random_examples import examples
from test_c_arrangement import arranged_apart, body_of, marked

# Each row adds to the rows above it, and is changed by itself.
SCATTERED = """kernel gather(a: {dtype}[24, 24], b: {dtype}[24, 24], c: {dtype}[24, 24]) -> (c) {{
  serial i in {rows} {{
    serial k in {terms} {{
      serial j in 0 .. 24 {{
        {target} = {target} {sign} (b[i, j] * a[i, k])
      }}
    }}
    {after}
  }}
}}"""
OWN_ROW = "serial j_1 in 0 .. 24 { c[i, j_1] = c[i, j_1] * 2.0:float64 }"

# What else such a loop may do.
MIXED = """kernel mixed(a: float64[7, 7], b: float64[7, 7], c: float64[13, 7]) -> (a, b, c) {{
  serial t in 0 .. 2 {{
    serial i in {rows} {{
      {before}
      local s: float64[7] {{
        s[i] = {start}
        serial k in {terms} {{
          {beside}
          serial j in {columns} {{
            {target} = {target} + ({left} * {right})
          }}
          s[k] = s[k] + b[k, i]
        }}
        serial j_1 in 0 .. 7 {{
          {after} + s[j_1]
        }}
      }}
    }}
  }}
}}"""

PRODUCTS_OF = "msops._loops.to_c.reduce.deferring.products_of"


@pytest.fixture
def anything() -> Iterator[None]:
    """Small sums, and those that no tiles are made of, are interchanged, too."""
    with mock.patch(PRODUCTS_OF, return_value=[mock.Mock()]):
        yield


def scattered(**parts: str) -> Kernel:
    given = {"dtype": "float64", "rows": "0 .. 24", "terms": "0 .. i", "target": "c[k, j]"}
    return marked(SCATTERED.format(**{**given, "sign": "+", "after": OWN_ROW, **parts}))


def interchanged(**parts: str) -> str:
    return body_of(arranged_apart(defer_sums, scattered(**parts)))


def is_interchanged(kernel: Kernel) -> bool:
    return arranged_apart(defer_sums, kernel) is not kernel


def test_terms_for_other_rows_are_summed_row_by_row() -> None:
    kernel = scattered()
    assert body_of(kernel).startswith("serial i")
    after = arranged_apart(defer_sums, kernel)
    assert (
        body_of(after)
        == """\
parallel i in 0 .. 24 {
  parallel j_1 in 0 .. 24 {
    c[i, j_1] = c[i, j_1] * 2.0:float64
  }
}
parallel k in 0 .. 23 {
  reduction i_row in (k + 1) .. 24 {
    parallel j in 0 .. 24 {
      c[k, j] = c[k, j] + (b[i_row, j] * a[i_row, k])
    }
  }
}"""
    )
    assert arranged_apart(tile_products, after) is not after


@pytest.mark.usefixtures("anything")
@pytest.mark.parametrize(
    ("terms", "rows", "sums"),
    [
        ("0 .. 24", "0 .. 24", "0 .. 24"),
        ("i .. 24", "0 .. 24", "0 .. (k + 1)"),
        ("(i + 1) .. 24", "1 .. 24", "0 .. k"),
        ("0 .. (24 - i)", "0 .. 24", "0 .. (24 - k)"),
        ("(23 - i) .. 24", "0 .. 24", "(23 - k) .. 24"),
        # The first terms of the other rows move with them.
        ("i .. (i + 9)", "0 .. 8", "0 .. (k + 1)"),
    ],
)
def test_bounds_are_those_of_the_same_terms(terms: str, rows: str, sums: str) -> None:
    ends = "0 .. 16" if "9" in terms else "0 .. 24"
    text = interchanged(terms=terms, rows=ends, after="")
    assert text.startswith(f"parallel k in {rows} {{\n  reduction i_row in {sums} {{")


@pytest.mark.parametrize("after", ["b[i, 0] = c[i, 0]", "a[i, 0] = c[0, 0]", "a[23, 0] = c[0, i]"])
def test_sums_stay_whose_terms_the_rows_before_write(after: str) -> None:
    assert not is_interchanged(scattered(after=after))


def test_sums_leave_a_loop_first_if_its_rest_needs_them() -> None:
    text = interchanged(terms="(i + 1) .. 24", after="a[i, i] = c[i, 0]")
    assert text.startswith("parallel k in 1 .. 24 {")
    assert "parallel i in 0 .. 24 {\n  a[i, i] = c[i, 0]" in text


def test_columns_of_a_sum_beside_a_sum_over_them_are_parallel() -> None:
    beside = "d[i, k] = d[i, k] + b[i, j]"
    text = SCATTERED.replace("-> (c) {{", "-> (c, d) {{\nbuffer d: {dtype}[24, 24]")
    text = text.replace("{target} =", f"{beside}\n{{target}} =")
    parts = {"dtype": "float64", "rows": "0 .. 24", "terms": "0 .. 24", "target": "c[k, j]"}
    kernel = marked(text.format(**parts, sign="+", after=""))
    assert "reduction j in" in body_of(kernel)
    assert """\
parallel k_1 in 0 .. 24 {
  reduction i_row_1 in 0 .. 24 {
    parallel j_1 in 0 .. 24 {
      c[k_1, j_1] = c[k_1, j_1] + (b[i_row_1, j_1] * a[i_row_1, k_1])
""" in body_of(arranged_apart(defer_sums, kernel))


@pytest.mark.parametrize(
    "parts",
    [
        {"dtype": "int32", "after": ""},
        {"rows": "0 .. 7"},
        {"target": "c[i, j]"},
        {"target": "c[k // 2, j]"},
        {"terms": "0 .. (2 * i)", "rows": "0 .. 12"},
        {"terms": "0 .. int32(a[i, 0])"},
    ],
)
def test_other_loops_stay(parts: dict[str, str]) -> None:
    kernel = scattered(**parts)
    assert defer_sums(kernel) is kernel


def test_a_loop_that_is_serial_by_request_stays() -> None:
    text = SCATTERED.replace("in {rows} {{", "in {rows} @serial {{")
    parts = {"dtype": "float64", "rows": "0 .. 24", "terms": "0 .. i", "target": "c[k, j]"}
    kernel = marked(text.format(**parts, sign="-", after=""))
    assert defer_sums(kernel) is kernel


def test_a_sum_that_is_a_product_as_it_is_stays() -> None:
    kernel = marked("""kernel sum(a: float32[9, 24, 24], b: float32[9, 24, 32]) -> (c) {
      buffer c: float32[24, 32]
      serial t in 0 .. 9 {
        serial i in 0 .. 24 {
          serial k in 0 .. 24 {
            serial j in 0 .. 32 { c[i, j] = c[i, j] + (a[t, i, k] * b[t, k, j]) }
          }
        }
      }
    }""")
    assert defer_sums(kernel) is kernel
    assert arranged_apart(tile_products, kernel) is not kernel


@pytest.mark.usefixtures("anything")
@settings(max_examples=examples(100), deadline=None)
@given(
    rows=st.sampled_from(["0 .. 7", "1 .. 6", "t .. 7", "3 .. (t + 3)"]),
    terms=st.sampled_from(
        ["0 .. i", "i .. 7", "(i + 1) .. 7", "(6 - i) .. 7", "0 .. (7 - i)", "0 .. 7", "i .. i",
         "(t + 1) .. (i + 1)", "t .. (i - 1)"]
    ),
    columns=st.sampled_from(["0 .. 7", "0 .. i", "k .. 7"]),
    target=st.sampled_from(
        ["c[k, j]", "c[j, k]", "c[6 - k, j]", "c[k + j, 0]", "b[k, j]", "c[t, k]"]
    ),
    left=st.sampled_from(["b[i, j]", "b[k, j]", "a[j, i]", "a[i, 6 - k]"]),
    right=st.sampled_from(["a[i, k]", "a[0, j]", "1.0:float64"]),
    start=st.sampled_from(["0.0:float64", "c[i, 0]", "a[i, i]"]),
    before=st.sampled_from(["", "a[i, 0] = 2.0:float64", "c[i, i] = c[i, i] + 1.0:float64"]),
    beside=st.sampled_from(["", "b[i, k] = b[i, k] + a[k, 0]", "c[k, i] = a[k, i]"]),
    after=st.sampled_from(
        ["c[i, j_1] = c[i, j_1]", "c[i, j_1] = 1.0:float64", "b[i, j_1] = c[i, j_1]",
         "b[6 - i, j_1] = b[6 - i, j_1]", "a[j_1, 0] = a[j_1, i]"]
    ),
)  # fmt: skip
def test_interchanged_updates_mean_the_same(**parts: str) -> None:
    kernel = marked(MIXED.format(**parts))
    after = arranged_apart(defer_sums, kernel)
    inputs = [np.full(b.shape, 2.0) for b in kernel.parameters]
    # Iterations of loops without an order in another one.
    shuffled = interpret(after, inputs, shuffle=random.Random(0))
    for got, want in zip(shuffled, interpret(kernel, inputs), strict=True):
        np.testing.assert_array_equal(got, want)
