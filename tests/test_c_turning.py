"""Loops over the pairs of a triangle, in exchanged order: by text, and by what they compute."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, order_along_memory, parse_kernel, widen_sums
from random_examples import examples
from test_c_arrangement import Change, arranged_apart
from test_c_carrying import lines_of

# A product with a symmetric matrix of which half is stored.
SYMMETRIC = """kernel symmetric(a: float64[48, 48], x: float64[48], t: int32[48]) -> (y) {{
  buffer y: float64[48]
  {kind} i in {first} .. {last} {{
    local s: float64[] {{
      s[] = 0.0:float64
      reduction j in 0 .. (i + 1) {{ s[] = s[] + (a[i, j] * x[j]) }}
      reduction l in {begin} .. {end} {{ s[] = s[] + (a[l, i] * x[l]) }}
      y[i] = s[] * 2.0:float64
    }}
  }}
}}"""
COLUMNS = """kernel columns(a: float64[48, 48], x: float64[48], t: int32[48]) -> (y) {{
  buffer y: float64[48]
  {kind} i in {first} .. {last} {{
    reduction l in {begin} .. {end} {{ y[i] = y[i] + (a[l, i] * x[l]) }}
  }}
}}"""
PARTS = {"kind": "parallel", "first": "0", "last": "40", "begin": "(i + 1)", "end": "40"}
CHANGES = [(SYMMETRIC, widen_sums), (COLUMNS, order_along_memory)]


def kernel_of(text: str, **parts: str) -> Kernel:
    return parse_kernel(text.format(**{**PARTS, **parts}))


def test_a_column_of_the_stored_half_is_summed_row_by_row() -> None:
    text = "\n".join(lines_of(arranged_apart(widen_sums, kernel_of(SYMMETRIC))))
    numbered = re.sub(r"\bi_\d+", "i", text)
    assert (
        "reduction l in 1 .. 40 {\n"
        "parallel i in 0 .. l {\n"
        "s[i] = s[i] + (a[l, i] * x[l])\n"
    ) in numbered  # fmt: skip
    # The other half is read along its rows as it was.
    assert (
        "parallel i in 0 .. 40 {\n"
        "reduction j in 0 .. (i + 1) {\n"
        "s[i] = s[i] + (a[i, j] * x[j])\n"
    ) in numbered  # fmt: skip


@pytest.mark.parametrize(("text", "change"), CHANGES)
@pytest.mark.parametrize(
    "parts",
    [
        {"kind": "serial"},
        {"begin": "(2 * i)", "end": "48"},
        {"begin": "t[i]"},
        {"begin": "(i + t[0])"},
        {"begin": "0", "end": "t[3]"},
        {"last": "7"},
    ],
    ids=["in an order", "every second", "where data say", "as far as data say",
         "as long as data say", "few"],
)  # fmt: skip
def test_others_stay(text: str, change: Change, parts: dict[str, str]) -> None:
    kernel = kernel_of(text, **parts)
    assert change(kernel) is kernel


@settings(max_examples=examples(60), deadline=None)
@given(
    which=st.sampled_from(CHANGES),
    first=st.sampled_from(["0", "3", "5"]),
    last=st.sampled_from(["40", "44"]),
    bounds=st.sampled_from(
        [("i", "40"), ("(i + 1)", "48"), ("(i + 3)", "45"), ("(i + 2)", "44"),
         ("0", "i"), ("0", "(i + 1)"), ("2", "(i + 4)"), ("0", "(i - 2)"),
         ("0", "(44 - i)"), ("(44 - i)", "45")]
    ),
)  # fmt: skip
def test_any_triangle_means_the_same(
    which: tuple[str, Change], first: str, last: str, bounds: tuple[str, str]
) -> None:
    text, change = which
    kernel = kernel_of(text, first=first, last=last, begin=bounds[0], end=bounds[1])
    assert arranged_apart(change, kernel) is not kernel
