"""Loops that add to windows, as sums for each element: by text, and by what they compute."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, adjoint, analyse, gather_windows, interpret, parse_kernel
from random_examples import examples
from test_c_arrangement import arranged_apart, body_of

# What a convolution along one axis adds to the gradients of its image and of its filter.
ADDED = """kernel added(g: {dtype}[{o}, {n}], w: {dtype}[{o}, {c}, {taps}], x: {dtype}[{c}, {size}])
    -> ({results}) {{
  buffer dx: {dtype}[{c}, {size}]
  buffer dw: {dtype}[{o}, {c}, {taps}]
  parallel o in 0 .. {o} {{
    reduction i in 0 .. {n} {{
      local t: {dtype}[] {{
        t[] = {value}
        parallel c in 0 .. {c} {{ parallel p in 0 .. {taps} {{ {body} }} }}
      }}
    }}
  }}
}}"""
OF_IMAGE = "dx[c, {at}] = dx[c, {at}] + (t[] * w[o, c, p])"
OF_FILTER = "dw[o, c, p] = dw[o, c, p] + (t[] * x[c, {at}])"
ON_DATA = "if ((g[0, i] > w[0, 0, 0])) {{ {body} }}"
INSIDE = "if ((({at}) >= 0) && (({at}) < {size})) {{ {body} }}"
PARTS = {
    "dtype": "float32",
    "o": 4,
    "c": 3,
    "n": 70,
    "taps": 3,
    "size": 72,
    "at": "i + p",
    "value": "g[o, i]",
}


def added(*updates: str, guard: str = "{body}", **parts: Any) -> Kernel:
    parts = {**PARTS, **parts}
    results = ", ".join(update.split("[")[0] for update in updates)
    body = guard.format(body=" ".join(updates).format(**parts), **parts)
    return parse_kernel(ADDED.format(body=body, results=results, **parts))


def test_each_element_of_an_image_sums_what_its_windows_add() -> None:
    text = body_of(arranged_apart(gather_windows, added(OF_IMAGE)))
    assert text.partition("parallel c ")[2] == textwrap.dedent("""\
        in 0 .. 3 {
          parallel i_element in 0 .. 72 {
            reduction o in 0 .. 4 {
              reduction p in 0 .. 3 {
                if ((((i_element + p) - 2) >= 0) && (((i_element + p) - 2) < 70)) {
                  dx[c, i_element] = dx[c, i_element] + (g[o, (i_element + p) - 2] * w[o, c, 2 - p])
                }
              }
            }
          }
        }""")


def test_a_window_inside_of_an_image_needs_no_other_condition() -> None:
    kernel = added(OF_IMAGE, guard=INSIDE, at="(i + p) - 1", size=70)
    text = body_of(arranged_apart(gather_windows, kernel))
    assert "if ((((i_element + p) - 1) >= 0) && (((i_element + p) - 1) < 70)) {" in text


def test_windows_two_elements_apart_are_those_of_odd_and_of_even_elements() -> None:
    kernel = added(OF_IMAGE, at="(2 * i) + p", size=141)
    text = body_of(arranged_apart(gather_windows, kernel))
    assert "dx[c, i_element * 2] = dx[c, i_element * 2] + (g[o, (i_element + p_1) - 1]" in text
    assert "dx[c_1, (i_element_1 * 2) + 1] = " in text
    # Three elements of a window: two even ones, and an odd one.
    assert text.count("reduction p") == 1


def test_each_element_of_a_filter_sums_over_all_positions() -> None:
    text = body_of(arranged_apart(gather_windows, added(OF_FILTER)))
    assert text.partition("parallel o ")[2] == textwrap.dedent("""\
        in 0 .. 4 {
          parallel c in 0 .. 3 {
            parallel p in 0 .. 3 {
              reduction i in 0 .. 70 {
                dw[o, c, p] = dw[o, c, p] + (g[o, i] * x[c, i + p])
              }
            }
          }
        }""")


def test_loops_that_add_to_both_become_two() -> None:
    text = body_of(arranged_apart(gather_windows, added(OF_IMAGE, OF_FILTER)))
    assert text.count("parallel c") == 2
    assert "t[]" not in text


@pytest.mark.parametrize(
    ("updates", "parts"),
    [
        ((OF_IMAGE,), {"o": 1}),
        ((OF_IMAGE,), {"n": 5, "size": 7}),
        ((OF_IMAGE,), {"at": "(2 * i) + (p * i)", "size": 300}),
        ((OF_IMAGE,), {"at": "(7 * i) + p", "size": 500}),
        ((OF_IMAGE.replace("+ (t", "* (t"),), {}),
        ((OF_IMAGE, "dw[o, c, p] = t[]"), {}),
        ((OF_IMAGE,), {"value": "exp(g[o, i])"}),
        ((OF_IMAGE,), {"at": "(i * 1073741824) + (p * 1073741824)"}),
        ((OF_IMAGE.replace("w[o, c, p]", "dw[o, c, p]"), OF_FILTER), {}),
        ((OF_IMAGE.replace("dx[c, {at}]", "dx[p, {at}]"),), {}),
        ((OF_FILTER,), {"n": 40}),
        ((OF_FILTER.replace("{at}", "i"),), {}),
        ((OF_FILTER.replace("t[] * ", ""),), {}),
        ((OF_IMAGE, OF_FILTER.replace("t[] * ", "")), {}),
    ],
    ids=["one term", "mostly borders", "an uneven step", "a large step", "products", "a store",
         "a function in a local", "an index that wraps",
         "a sum that is read", "a diagonal", "few positions", "no window", "no product",
         "one of two"],
)  # fmt: skip
def test_other_loops_stay(updates: tuple[str, ...], parts: dict[str, Any]) -> None:
    kernel = added(*updates, **parts)
    assert gather_windows(kernel) is kernel


@settings(max_examples=examples(80), deadline=None)
@given(
    updates=st.sampled_from([(OF_IMAGE,), (OF_FILTER,), (OF_IMAGE, OF_FILTER)]),
    taps=st.integers(1, 5),
    step=st.integers(-3, 3).filter(bool),
    spread=st.integers(-2, 3).filter(bool),
    cut=st.none() | st.tuples(st.integers(-3, 9), st.integers(-5, 5)),
    is_negated=st.booleans(),
    is_on_data=st.booleans(),
    dtype=st.sampled_from(["float32", "float64", "int32"]),
)
def test_gathered_windows_mean_the_same(
    updates: tuple[str, ...], taps: int, step: int, spread: int, cut: tuple[int, int] | None,
    is_negated: bool, is_on_data: bool, dtype: str,
) -> None:  # fmt: skip
    lasts = (69 * step, (taps - 1) * spread)
    first, size = sum(min(last, 0) for last in lasts), 1 + sum(map(abs, lasts))
    # Without conditions all windows lie inside of the image.
    before, more = cut or (0, 0)
    at = f"(({step} * i) + ({spread} * p)) + {-first - before}"
    if is_negated:
        updates = tuple(update.replace("+ (t", "- (t") for update in updates)
    guard = INSIDE if cut else "{body}"
    guard = ON_DATA.replace("{body}", guard) if is_on_data else guard
    kernel = added(*updates, at=at, guard=guard, taps=taps, size=size + more, dtype=dtype)
    arranged_apart(gather_windows, kernel)


IMAGE = """kernel image(x: float64[3, 19, 20], w: float64[4, 3, 3, 3], b: float64[4]) -> (y) {{
  buffer y: float64[4, {rows}, {columns}]
  serial o in 0 .. 4 {{ serial i in 0 .. {rows} {{ serial j in 0 .. {columns} {{
    {start}
    serial c in 0 .. 3 {{ serial p in 0 .. 3 {{ serial q in 0 .. 3 {{
      if (((((({step} * i) + p) - 1) >= 0) && (((({step} * i) + p) - 1) < 19))
          && ((((({step} * j) + q) - 1) >= 0) && (((({step} * j) + q) - 1) < 20))) {{
        y[o, i, j] = y[o, i, j] + (x[c, (({step} * i) + p) - 1, (({step} * j) + q) - 1]
          * w[o, c, p, q]) }} }} }} }} }} }} }}
}}"""


@pytest.mark.parametrize("start", ["", "y[o, i, j] = b[o]"], ids=["plain", "bias"])
@pytest.mark.parametrize(("step", "rows", "columns"), [(1, 19, 20), (2, 10, 10)])
def test_the_gradient_of_a_convolution_is_gathered(
    step: int, rows: int, columns: int, start: str
) -> None:
    kernel = parse_kernel(IMAGE.format(step=step, rows=rows, columns=columns, start=start))
    gradient = adjoint(analyse(kernel).kernel)
    text = body_of(gradient)
    assert text.count("i_1_element") > 2
    rng = np.random.default_rng(0)
    x, w, d = (
        rng.integers(-3, 4, shape).astype(float)
        for shape in ((3, 19, 20), (4, 3, 3, 3), (4, rows, columns))
    )
    want_x, want_w = np.zeros_like(x), np.zeros_like(w)
    for o, i, j, p, q in np.ndindex(4, rows, columns, 3, 3):
        y, z = step * i + p - 1, step * j + q - 1
        if 0 <= y < 19 and 0 <= z < 20:
            want_x[:, y, z] += d[o, i, j] * w[o, :, p, q]
            want_w[o, :, p, q] += d[o, i, j] * x[:, y, z]
    got_x, got_w, got_b = interpret(gradient, [x, w, np.zeros(4), d])
    np.testing.assert_array_equal(got_b, d.sum((1, 2)) * bool(start))
    np.testing.assert_array_equal(got_x, want_x)
    np.testing.assert_array_equal(got_w, want_w)
