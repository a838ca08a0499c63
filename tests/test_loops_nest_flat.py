"""A loop over all elements of an array, numbered in a row, becomes nested loops."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, body_text, interpret, nest_flat_loops, parse_kernel

from msops import Custom
from msops.errors import ArgumentValueError

FLAT = """kernel f(x: float32[{size}], m: float32[6, 40], a: float32[5, 3, 32]) -> (y, g, h) {{
  buffer y: float32[{size}]
  buffer g: float32[6, 40]
  buffer h: float32[5, 3, 32]
  {kind} t in {begin} .. {size} {{
    {body}
  }}
}}"""


def flat(body: str, size: int = 240, begin: int = 0, kind: str = "serial") -> Kernel:
    return parse_kernel(FLAT.format(body=body, size=size, begin=begin, kind=kind))


def nested(kernel: Kernel) -> str:
    """Returns the statements after the pass, which must do the same."""
    after, rng = nest_flat_loops(kernel), np.random.default_rng(3)
    inputs = [rng.integers(0, 9, b.shape).astype(b.dtype) for b in kernel.parameters]
    for want, got in zip(interpret(kernel, inputs), interpret(after, inputs), strict=True):
        np.testing.assert_array_equal(got, want)
    return body_text(after.body)


def test_rows_and_columns() -> None:
    body = "g[t // 40, t % 40] = m[t // 40, t % 40] + x[t]"
    assert nested(flat(body)) == (
        "serial t_row in 0 .. 6 {\n"
        "  serial t_column in 0 .. 40 {\n"
        "    g[t_row, t_column] = m[t_row, t_column] + x[(t_row * 40) + t_column]\n"
        "  }\n"
        "}"
    )


def test_three_axes() -> None:
    place = "(t // 96), ((t // 32) % 3), (t % 32)"
    assert nested(flat(f"h[{place}] = a[{place}] * x[t]", 480)) == (
        "serial t_row_row in 0 .. 5 {\n"
        "  serial t_row_column in 0 .. 3 {\n"
        "    serial t_column in 0 .. 32 {\n"
        "      h[t_row_row, t_row_column, t_column] = a[t_row_row, t_row_column, t_column] * "
        "x[(((t_row_row * 3) + t_row_column) * 32) + t_column]\n"
        "    }\n"
        "  }\n"
        "}"
    )


@pytest.mark.parametrize("kind", ["serial", "parallel", "reduction"])
def test_the_order_and_the_kind_stay(kind: str) -> None:
    text = nested(flat("g[0, 0] = (g[0, 0] * 0.5:float32) + m[t // 40, t % 40]", kind=kind))
    assert text.startswith(f"{kind} t_row in 0 .. 6 {{\n  {kind} t_column in 0 .. 40 {{")


def test_bounds_and_conditions_inside() -> None:
    text = nested(
        flat(
            "if ((t % 40) > 3) { serial k in (t // 40) .. (t % 40) {"
            " g[t // 40, t % 40] = g[t // 40, t % 40] + m[t // 40, k] } }"
        )
    )
    assert "serial k in t_row .. t_column" in text
    assert "//" not in text


def test_no_row_is_looked_at_after_a_break() -> None:
    search = (
        "if (g[0, 0] == 0.0:float32) { if (m[t // 40, t % 40] == 3.0:float32) { g[0, 0] = x[t] } }"
    )
    assert nested(flat(search)).startswith(
        "serial t_row in 0 .. 6 {\n"
        "  if (g[0, 0] == 0.0:float32) {\n"
        "    serial t_column in 0 .. 40 {\n"
        "      if (g[0, 0] == 0.0:float32) {\n"
        "        if (m[t_row, t_column] =="
    )
    of_each = "if (m[t // 40, t % 40] == 3.0:float32) { g[0, 0] = x[t] }"
    otherwise = "if (g[0, 0] == 0.0:float32) { g[0, 0] = x[t] } else { g[0, t % 40] = 0.0:float32 }"
    for body in (of_each, otherwise):
        assert "{\n  serial t_column" in nested(flat(body))


@pytest.mark.parametrize(
    ("body", "size", "begin"),
    [
        ("y[t] = x[t]", 240, 0),
        ("g[t // 40, t % 40] = x[t]", 235, 0),
        ("g[t // 40, t % 40] = x[t]", 240, 40),
        ("g[(t // 40), (t % 32)] = x[t]", 240, 0),
        ("y[t] = x[t] + m[0, t % 3]", 240, 0),
        ("g[(t + 0) // 40, 1] = x[t % 240]", 240, 0),
        ("g[x_at[], 1] = x[t]", 240, 0),
    ],
    ids=["none", "a part of a row", "from the second", "two widths", "short rows", "all", "data"],
)
def test_other_loops_stay(body: str, size: int, begin: int) -> None:
    if "x_at" in body:
        body = f"local x_at: int32[] {{ x_at[] = int32(x[t]) // 40 {body} }}"
    kernel = flat(body, size, begin)
    assert nest_flat_loops(kernel) is kernel
    nested(kernel)


def test_short_rows_of_one_array_alone() -> None:
    text = nested(flat("h[(t // 9), ((t // 3) % 3), (t % 3)] = 1.0:float32", 45))
    assert "//" not in text


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_parts(data: st.DataObject) -> None:
    width = data.draw(st.sampled_from([2, 16, 20, 40]))
    factors = data.draw(st.lists(st.sampled_from([1, 2, 3, 6]), min_size=1, max_size=4))
    parts = [
        f"(t {data.draw(st.sampled_from(['//', '%']))} {width * factor})" for factor in factors
    ]
    parts += data.draw(st.lists(st.just("t"), max_size=1))
    place = functools.reduce(lambda one, other: f"({one} + {other})", parts)
    nested(flat(f"y[t % 240] = (x[{place} % 240] * 0.5:float32) + y[0]"))


def beyond(x):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821
    for t in range(x.shape[0] * x.shape[1]):
        y[t // x.shape[1], t % x.shape[1] + 1] = x[t // x.shape[1], t % x.shape[1]]
    return y


def test_messages_name_the_loop_of_the_author() -> None:
    with pytest.raises(ArgumentValueError, match=r"writes y\[t // 33, 33\] of y: .* at t = 32:\n"):
        Custom(beyond, func_type="akg")(np.zeros((7, 33), "float32"))


def flat_stencil(x):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821
    for t in range(x.shape[0] * x.shape[1]):
        r = t // x.shape[1]
        c = t % x.shape[1]
        if r > 0 and c > 0:
            y[r, c] = x[r - 1, c] + 0.5 * x[r, c - 1]
    return y


@pytest.mark.parametrize("form", ["xla", "native"])
def test_a_stencil_of_threads_in_a_row(form: str) -> None:
    x = np.random.default_rng(0).random((7, 33), "float32")
    op = Custom(flat_stencil, func_type="akg", compile_attrs={"lower": form})
    want = np.zeros_like(x)
    want[1:, 1:] = x[:-1, 1:] + np.float32(0.5) * x[1:, :-1]
    np.testing.assert_allclose(op(x), want, 1e-6)
