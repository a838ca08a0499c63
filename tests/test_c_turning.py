"""Loops over the pairs of a triangle, in exchanged order: by text, and by what they compute."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, order_along_memory, parse_kernel
from random_examples import examples
from test_c_arrangement import arranged_apart

# A product with the stored half of a symmetric matrix.
COLUMNS = """kernel columns(a: float64[48, 48], x: float64[48], t: int32[48]) -> (y) {{
  buffer y: float64[48]
  {kind} i in {first} .. {last} {{
    reduction l in {begin} .. {end} {{ y[i] = y[i] + (a[l, i] * x[l]) }}
  }}
}}"""
PARTS = {"kind": "parallel", "first": "0", "last": "40", "begin": "(i + 1)", "end": "40"}


def kernel_of(text: str, **parts: str) -> Kernel:
    return parse_kernel(text.format(**{**PARTS, **parts}))


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
def test_others_stay(parts: dict[str, str]) -> None:
    kernel = kernel_of(COLUMNS, **parts)
    assert order_along_memory(kernel) is kernel


@settings(max_examples=examples(60), deadline=None)
@given(
    first=st.sampled_from(["0", "3", "5"]),
    last=st.sampled_from(["40", "44"]),
    bounds=st.sampled_from(
        [("i", "40"), ("(i + 1)", "48"), ("(i + 3)", "45"), ("(i + 2)", "44"),
         ("0", "i"), ("0", "(i + 1)"), ("2", "(i + 4)"), ("0", "(i - 2)"),
         ("0", "(44 - i)"), ("(44 - i)", "45")]
    ),
)  # fmt: skip
def test_any_triangle_means_the_same(first: str, last: str, bounds: tuple[str, str]) -> None:
    kernel = kernel_of(COLUMNS, first=first, last=last, begin=bounds[0], end=bounds[1])
    assert arranged_apart(order_along_memory, kernel) is not kernel
