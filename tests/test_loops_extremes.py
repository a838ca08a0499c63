"""Slopes of the extremes of many elements."""

from __future__ import annotations

import re
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loop_ir import Kernel, adjoint, interpret, kernel_text, parse_kernel, share_extremes, verify
from test_c_arrangement import body_of

from msops import Custom

pytestmark = pytest.mark.usefixtures("as_users_compile")

ROWS = """kernel rows(x: {dtype}[3, 12], at: int32[12]) -> (y) {{
  buffer y: {dtype}[3]
  parallel i in 0 .. 3 {{
    {before}
    local top: {dtype}[] {{
      top[] = {first}
      {kind} j in 0 .. {end} {{
        {body}
      }}
      {after}
    }}
  }}
}}"""
PARTS = {
    "dtype": "float32", "before": "", "after": "y[i] = top[] * 2.0:float32",
    "first": "-1e+30:float32", "kind": "reduction", "end": "12",
    "body": "top[] = max(top[], x[i, j])",
}  # fmt: skip


def rows(**parts: str) -> Kernel:
    return parse_kernel(ROWS.format(**{**PARTS, **parts}))


def test_an_extreme_is_the_mean_of_what_equals_it() -> None:
    assert body_of(share_extremes(rows())) == textwrap.dedent("""\
        buffer y: float32[3]
        parallel i in 0 .. 3 {
          local top: float32[] {
            top[] = -1e+30:float32
            local top_best: float32[] {
              local top_ties: int32[] {
                local top_part: float32[] {
                  top_best[] = top[]
                  reduction j in 0 .. 12 {
                    top_best[] = max(top_best[], x[i, j])
                  }
                  top_ties[] = int32(top[] == top_best[])
                  reduction j_1 in 0 .. 12 {
                    top_ties[] = top_ties[] + int32(x[i, j_1] == top_best[])
                  }
                  top_part[] = 1.0:float32 / float32(top_ties[])
                  top[] = (top[] == top_best[]) ? (top[] * top_part[]) : ((top_best[] == top_best[]) ? 0.0:float32 : nan:float32)
                  reduction j_2 in 0 .. 12 {
                    top[] = top[] + ((x[i, j_2] == top_best[]) ? (x[i, j_2] * top_part[]) : 0.0:float32)
                  }
                }
              }
            }
            y[i] = top[] * 2.0:float32
          }
        }""")  # noqa: E501


def test_what_runs_before_it_gets_a_loop_of_its_own() -> None:
    body = "local t: float32[] { t[] = x[i, j] y[i] = y[i] + t[] top[] = max(top[], x[i, j]) }"
    text = body_of(share_extremes(rows(body=body)))
    assert "y[i] = y[i] + t[]\n" in text.split("top_best[] = top[]")[0]
    assert text.count("t[] = x") == 1


@pytest.mark.parametrize(
    "kernel",
    [
        rows(kind="serial"),
        rows(body="top[] = top[] + x[i, j]"),
        rows(body="top[] = max(top[], exp(x[i, j]))"),
        rows(body="y[j] = max(y[j], x[i, j])"),
        rows(body="y[i] = y[i] + top[] top[] = max(top[], x[i, j])"),
        rows(body="local t: float32[] { t[] = x[i, j] top[] = max(top[], t[]) }"),
        rows(body="top[] = max(top[], float32(int32(x[i, j])))"),
        rows(body="y[i] = y[i] + x[i, j] local t: float32[] { }"),
        rows(body="local k: int32[] { k[] = at[j] % 3 y[k[]] = max(y[k[]], x[i, j]) }"),
        rows(dtype="float16", first="0.0:float16", after="y[i] = top[] * 2.0:float16"),
        rows(after="if (top[] > 1.0:float32) { y[i] = top[] }"),
        rows(after="y[i] = top[] * ((x[i, 3] == top[]) ? 2.0:float32 : 1.0:float32)"),
        rows(after="local t: float32[] { t[] = top[] + 1.0:float32 y[i] = max(t[], x[i, 0]) }"),
        rows(after="y[i] = top[] * x[i, int32(top[])]"),
        rows(after="y[int32(top[])] = top[]"),
        rows(after="serial k in 0 .. int32(top[]) { y[i] = top[] }"),
        rows(after="y[i] = abs(top[] - x[i, 3])"),
        rows(after="y[i] = top[] - floor(top[])"),
        rows(after="y[i] = top[] % 2.0:float32"),
        rows(before="if (y[2] > 0.0:float32) { y[1] = 1.0:float32 }"),
        rows(body="y[i] = max(y[i], x[i, j])", after="if (y[i] > y[0]) { y[1] = y[2] }"),
        rows(
            kind="reduction k in 0 .. 3 { if (top[] > y[0]) { y[i] = 1.0:float32 } reduction",
            body=PARTS["body"] + "}",
        ),
        rows(body="if (j < 3) { top[] = max(top[], x[i, j]) } else { y[i] = 1.0:float32 }"),
        rows(body="if (top[] < 3.0:float32) { top[] = max(top[], x[i, j]) }"),
        rows(body="if (y[i] < x[i, j]) { y[i] = x[i, j] top[] = max(top[], x[i, j]) }"),
    ],
    ids=[
        "in order", "a sum", "long elements", "each its own", "read before", "a local",
        "no slope", "an empty local", "picked",
        "few digits", "decides", "compared", "an extreme of it", "picks", "picks what is stored",
        "ends a loop", "has a kink", "has steps", "a remainder", "decides through a result",
        "a result decides", "decides in the next round",
        "another branch", "a condition of it", "a condition that changes",
    ],
)  # fmt: skip
def test_other_loops_stay(kernel: Kernel) -> None:
    assert share_extremes(kernel) is kernel


def test_an_extreme_may_be_compared_before_it_is_found() -> None:
    before = "local t: float32[] { t[] = max(x[i, 0], x[i, 1]) y[i] = t[] }"
    first = "max(x[i, 0], -1.0:float32)"
    assert "ties" in kernel_text(share_extremes(rows(before=before, first=first)))
    first = "x[i, 0] top[] = max(top[], x[i, 1])"
    assert "ties" in kernel_text(share_extremes(rows(first=first)))


def test_an_extreme_of_all_rows_is_compared_by_none() -> None:
    kernel = rows(kind="reduction j_1 in 0 .. 3 { reduction", body=PARTS["body"] + "}")
    assert "ties" in kernel_text(share_extremes(kernel))


def test_elements_under_a_condition_share_the_slope() -> None:
    kernel = rows(first="x[i, 0]", body="if ((j > 0) && (at[j] > 3)) { " + PARTS["body"] + "}")
    verify(share_extremes(kernel))
    x = np.stack([ELEMENTS, ELEMENTS[::-1], np.full(12, 3, "float32")])
    (got,) = interpret(adjoint(kernel), [x, AT, np.ones(3, "float32")])
    among = (np.arange(12) > 3) + (np.arange(12) == 0)
    best = (x == np.where(among, x, -np.inf).max(1, keepdims=True)) & among
    np.testing.assert_allclose(got, best * 2 / best.sum(1, keepdims=True), rtol=1e-6)


AT = np.arange(12, dtype="int32")
ELEMENTS = np.float32([1, 5, -2, 5, 0, 3, 5, -7, 2, 1, 4, 0])


@pytest.mark.parametrize(
    ("first", "elements", "slopes"),
    [
        ("-1e+30:float32", ELEMENTS, (ELEMENTS == 5) * 2 / 3),
        ("5.0:float32", ELEMENTS, (ELEMENTS == 5) * 2 / 4),
        ("9.0:float32", ELEMENTS, np.zeros(12)),
        ("-inf:float32", np.full(12, -np.inf, "float32"), np.full(12, 2 / 13)),
        ("-inf:float32", np.where(ELEMENTS == 5, np.inf, ELEMENTS), (ELEMENTS == 5) * 2 / 3),
        ("0.0:float32", np.where(ELEMENTS == 4, np.nan, ELEMENTS), np.zeros(12)),
    ],
    ids=["ties", "the first value, too", "the first value", "all -inf", "inf", "NaN"],
)
def test_equal_elements_share_the_slope(
    first: str, elements: np.ndarray, slopes: np.ndarray
) -> None:
    kernel = rows(first=first)
    changed = share_extremes(kernel)
    verify(changed)
    x = np.stack([elements] * 3).astype("float32")
    np.testing.assert_allclose(
        interpret(changed, [x, AT])[0], interpret(kernel, [x, AT])[0], rtol=1e-6
    )
    backwards = adjoint(kernel)
    (got,) = interpret(backwards, [x, AT, np.ones(3, "float32")])
    np.testing.assert_allclose(got, np.stack([slopes] * 3), rtol=1e-6)
    # Tapes of one number are those of the row.
    assert not re.search(r"_tape\w*: \w+\[\d", kernel_text(backwards))


def test_the_least_element_has_the_slope() -> None:
    kernel = rows(first="1e+30:float32", body="top[] = min(x[i, j], top[])")
    (got,) = interpret(adjoint(kernel), [np.stack([ELEMENTS] * 3), AT, np.ones(3, "float32")])
    np.testing.assert_array_equal(got, np.stack([(ELEMENTS == -7) * 2.0] * 3))


def softmax(x, w):
    n, m = x.shape
    y = output_tensor((n,), x.dtype)  # noqa: F821
    for i in range(n):
        top = x[i, 0]
        for j in range(m):
            top = max(top, x[i, j])
        total = 0.0
        for j in range(m):
            total += exp(x[i, j] - top)  # noqa: F821
        for j in range(m):
            y[i] += exp(x[i, j] - top) / total * w[i, j]  # noqa: F821
    return y


def where_it_is(x, w):
    n, m = x.shape
    y = output_tensor((n,), x.dtype)  # noqa: F821
    for i in range(n):
        top = -1e30
        for j in range(m):
            top = max(top, x[i, j])
        for j in range(m):
            if x[i, j] == top:
                y[i] += top * w[j]
    return y


@pytest.mark.parametrize("seed", range(6))
def test_elements_that_equal_an_extreme_do_so_backwards(seed: int) -> None:
    # A mean of three equal numbers may differ from them.
    x = (np.random.default_rng(seed).integers(-9, 3, (1, 24)) * 0.37 + 0.1).astype("float32")
    op = Custom(where_it_is, func_type="akg", compile_attrs={"lower": "native"})
    got = jax.grad(lambda w: op(x, w).sum())(np.ones(24, "float32"))
    np.testing.assert_array_equal(got, np.where(x[0] == x.max(), x.max(), 0))


@pytest.mark.parametrize("form", ["native", "xla"])
def test_the_gradient_of_a_softmax(form: str) -> None:
    op = Custom(softmax, func_type="akg", compile_attrs={"lower": form})
    x, w = np.random.default_rng(0).normal(size=(2, 5, 40)).astype("float32")
    x[0, 3] = x[0, 7] = 9
    got = jax.grad(lambda x, w: op(x, w).sum(), argnums=(0, 1))(x, w)
    want = jax.grad(lambda x, w: (jax.nn.softmax(x) * w).sum(), argnums=(0, 1))(x, w)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    assert jnp.isnan(jax.grad(lambda x: op(x, w).sum())(x * np.float32("nan"))).all()
