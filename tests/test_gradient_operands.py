"""Operands of products that gradients compute once, in arrays."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from loop_ir import (
    Kernel,
    adjoint,
    compute_operands_once,
    interpret,
    kernel_text,
    parse_kernel,
    verify,
)
from test_c_arrangement import body_of

PRODUCT = """kernel mul(x: {dtype}[6, 5], b: {dtype}[5], w: {dtype}[5, 7], n: int32[1]) -> (y) {{
  buffer y: {dtype}[6, 7]
  parallel i in 0 .. 6 {{
    parallel j in 0 .. {columns} {{
      {before}
      reduction k in {first} .. 5 {{
        {body}
      }}
    }}
  }}
}}"""
TERM = "y[i, j] = y[i, j] + ({operand} * {other})"
PARTS = {
    "dtype": "float32", "columns": "7", "before": "", "first": "0",
    "operand": "(x[i, k] - b[k])", "other": "w[k, j]",
}  # fmt: skip


def product(body: str = TERM, **parts: str) -> Kernel:
    every = {**PARTS, **parts}
    return parse_kernel(PRODUCT.format(body=body.format(**every), **every))


def test_an_operand_is_computed_before_the_loops_that_repeat_it() -> None:
    assert body_of(compute_operands_once(product(first="1"))) == textwrap.dedent("""\
        buffer y: float32[6, 7]
        local operand: float32[6, 4] {
          parallel i_1 in 0 .. 6 {
            parallel k_1 in 1 .. 5 {
              operand[i_1, k_1 - 1] = x[i_1, k_1] - b[k_1]
            }
          }
          parallel i in 0 .. 6 {
            parallel j in 0 .. 7 {
              reduction k in 1 .. 5 {
                y[i, j] = y[i, j] + (operand[i, k - 1] * w[k, j])
              }
            }
          }
        }""")


def test_operands_over_the_same_elements_share_an_array() -> None:
    body = "y[i, k] = y[i, k] + ((x[i, j] - b[j]) * (x[i, k] - b[k]))"
    text = kernel_text(compute_operands_once(product(body, columns="5")))
    assert "(operand[i, j] * operand[i, k])" in text
    assert text.count("local operand") == 1


def test_loops_inside_have_operands_of_their_own() -> None:
    kernel = parse_kernel("""kernel steps(h: float32[5], b: float32[5], w: float32[5, 5]) -> (h) {
  serial t in 0 .. 8 {
    local s: float32[5] {
      parallel i in 0 .. 5 {
        reduction j in 0 .. 5 {
          s[i] = s[i] + ((h[j] * b[j]) * (w[i, j] + b[0]))
        }
      }
      parallel i_1 in 0 .. 5 {
        h[i_1] = s[i_1]
      }
    }
  }
}""")
    changed = compute_operands_once(kernel)
    verify(changed)
    lines = [line.strip() for line in kernel_text(changed).splitlines()]
    assert lines.index("local operand: float32[5, 5] {") < lines.index("serial t in 0 .. 8 {")
    assert lines.index("local operand_1: float32[5] {") > lines.index("serial t in 0 .. 8 {")
    h, b, w = (np.linspace(-1, 1, size, dtype="float32") for size in (5, 5, 25))
    inputs = [h, b, w.reshape(5, 5)]
    np.testing.assert_array_equal(interpret(changed, inputs)[0], interpret(kernel, inputs)[0])


@pytest.mark.parametrize(
    "kernel",
    [
        product(operand="x[i, k]"),
        product(operand="(x[i, k] - w[k, j])"),
        product(columns="3"),
        product(columns="n[0]"),
        product("if (b[k] > 0.0:float32) {{ " + TERM + " }}"),
        product(other="((b[k] > 0.0:float32) ? (x[i, k] - b[k]) : 1.0:float32)", operand="w[k, j]"),
        product(before="b[0] = 2.0:float32"),
        product(operand="float32(n[0] + k)", other="2.0:float32"),
        product(operand="(x[i, k] - b[k + 1])"),
    ],
    ids=[
        "an element", "of all loops", "few reads", "bounds of data", "under a condition",
        "in a choice", "of what changes", "an integer", "out of range",
    ],
)  # fmt: skip
def test_other_operands_stay(kernel: Kernel) -> None:
    assert compute_operands_once(kernel) is kernel


@pytest.mark.parametrize(
    ("operand", "slope"),
    [
        ("(x[i, k] - b[k])", lambda x, b: (np.ones_like(x), -np.ones_like(x))),
        ("max(x[i, k] + b[k], 0.0:float64)", lambda x, b: ((x + b > 0) * 1.0,) * 2),
        ("exp(x[i, k] * b[k])", lambda x, b: (b * np.exp(x * b), x * np.exp(x * b))),
    ],
    ids=["a difference", "a choice", "a function"],
)
def test_gradients_are_those_of_the_formula(operand: str, slope: object) -> None:
    kernel = product(operand=operand, dtype="float64")
    assert compute_operands_once(kernel) is not kernel
    rng = np.random.default_rng(0)
    x, b, w, d = (rng.standard_normal(shape) for shape in ((6, 5), 5, (5, 7), (6, 7)))
    backwards = adjoint(kernel, (True, True, False, False))
    verify(backwards)
    d_x, d_b = interpret(backwards, [x, b, w, np.zeros(1, "int32"), d])
    assert callable(slope)
    by_x, by_b = slope(x, b)
    np.testing.assert_allclose(d_x, (d @ w.T) * by_x, rtol=1e-12)
    np.testing.assert_allclose(d_b, ((d @ w.T) * by_b).sum(0), rtol=1e-12)
