"""Sums whose elements are apart in memory get an array where they are side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest
from loop_ir import Kernel, parse_kernel, strided_sums, sum_side_by_side
from test_c_arrangement import arranged_apart, body_of

from msops import Custom

TEXT = """kernel k(x: float32[9, 40], w: float32[{channels}, 9], n: int32[40]) -> (out, z) {{
  buffer out: float32[{channels}, 40]
  buffer z: float32[16, 9, 40]
  {outer} i in 0 .. 40 {{
    {kind} c in 0 .. 9 {{
      local value: float32[] {{
        value[] = x[c, i]
        serial q in 0 .. 3 {{ value[] = value[] * x[c, {sample}] }}
        {before}
        {columns} o in {span} {{ {store} }} {end}
      }}
    }}
  }} {last}
}}"""
PARTS = {
    "channels": "16", "outer": "parallel", "kind": "reduction", "sample": "n[i] % 40",
    "before": "", "columns": "parallel", "span": "0 .. 16",
    "store": "out[o, i] = out[o, i] + (w[o, c] * value[])", "end": "", "last": "",
}  # fmt: skip


def sums(**parts: str) -> Kernel:
    return parse_kernel(TEXT.format(**{**PARTS, **parts}))


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    """Small kernels are changed, too."""
    small: Any = {"FEWEST_READS": 1, "FEWEST_WAITING": 9}
    with mock.patch.multiple(strided_sums, **small):
        yield


def test_sums_and_their_factors_are_side_by_side() -> None:
    assert body_of(arranged_apart(sum_side_by_side, sums())) == textwrap.dedent("""\
        buffer out: float32[16, 40]
        buffer z: float32[16, 9, 40]
        local w_columns: float32[9, 16] {
          parallel w_1 in 0 .. 9 {
            parallel w_0 in 0 .. 16 {
              w_columns[w_1, w_0] = w[w_0, w_1]
            }
          }
          parallel i in 0 .. 40 {
            local sums: float32[16] {
              parallel o in 0 .. 16 {
                sums[o] = out[o, i]
              }
              reduction c in 0 .. 9 {
                local value: float32[] {
                  value[] = x[c, i]
                  serial q in 0 .. 3 {
                    value[] = value[] * x[c, n[i] % 40]
                  }
                  parallel o_1 in 0 .. 16 {
                    sums[o_1] = sums[o_1] + (w_columns[c, o_1] * value[])
                  }
                }
              }
              parallel o_2 in 0 .. 16 {
                out[o_2, i] = sums[o_2]
              }
            }
          }
        }""")


@pytest.mark.parametrize(
    "parts",
    [
        {"store": "out[o, i] = out[o, i] - (value[] * w[o, c])"},
        {"store": "out[o, i] = max(out[o, i], value[] * w[o, c])"},
        {"store": "out[15 - o, i] = out[15 - o, i] + (w[15 - o, c] * value[])"},
        {"kind": "serial"},
        {"span": "4 .. 13"},
        {"before": "if (value[] > 0.0:float32) { value[] = 2.0:float32 }"},
        {"columns": "if (value[] > 0.0:float32) { parallel", "end": "}"},
        {
            "before": "parallel p in 0 .. 16 { z[p, c, i] = value[] }",
            "store": "out[o, i] = out[o, i] + (z[o, c, i] * value[])",
        },
    ],
    ids=[
        "differences",
        "extremes",
        "backwards",
        "in an order",
        "some",
        "beside a condition",
        "under a condition",
        "of a factor that changes",
    ],
)
def test_other_forms_are_as_well(parts: dict[str, str]) -> None:
    assert "local sums" in body_of(arranged_apart(sum_side_by_side, sums(**parts)))


def test_factors_that_are_read_seldom_stay() -> None:
    with mock.patch.object(strided_sums, "FEWEST_READS", 1000):
        text = body_of(arranged_apart(sum_side_by_side, sums()))
    assert "local sums" in text
    assert "columns" not in text


@pytest.mark.parametrize(
    "parts",
    [
        {"span": "0 .. 7"},
        {"span": "0 .. (n[i] % 9)"},
        {"outer": "serial"},
        {"store": "out[o, n[i] % 40] = out[o, n[i] % 40] + (w[o, c] * value[])", "outer": "serial"},
        {"store": "out[o, c] = out[o, c] + (w[o, c] * value[])", "outer": "serial"},
        {"store": "out[o, i] = w[o, c] * value[]", "kind": "serial"},
        {"store": "out[o, i] = out[o, i] + value[]", "before": "value[] = out[3, i]",
         "kind": "serial"},
        {"store": "x[c, o] = x[c, o] + value[]", "outer": "serial", "kind": "serial"},
        {"store": "z[o, c % 9, i] = z[o, c % 9, i] + value[]"},
        {"store": "out[(o * 7) % 16, i] = out[(o * 7) % 16, i] + value[]"},
        {"columns": "if (i < 30) { parallel", "end": "}",
         "store": "out[o, i + 10] = out[o, i + 10] + (w[o, c] * value[])"},
        {"outer": "parallel h in 0 .. 2 { parallel", "last": "}", "end": "}",
         "columns": "if (h == 1) { parallel"},
    ],
    ids=["few", "data", "no parallel loop", "picked", "of a term", "no update", "read beside",
         "contiguous", "moved by terms", "uneven",
         "out of range elsewhere", "an element of another iteration"],
)  # fmt: skip
def test_others_stay(parts: dict[str, str]) -> None:
    kernel = sums(**parts)
    assert sum_side_by_side(kernel) is kernel


def samples(x, w, at):  # type: ignore[no-untyped-def]  # a kernel
    out = output_tensor((w.shape[0], x.shape[1]), x.dtype)  # noqa: F821
    for i in range(x.shape[1]):
        for c in range(x.shape[0]):
            value = 1.0
            for q in range(3):
                if at[i, q] < 30:
                    value *= x[c, at[i, q]]
            for o in range(w.shape[0]):
                out[o, i] += w[o, c] * value
    return out


def test_c_computes_the_same() -> None:
    rng = np.random.default_rng(3)
    x, w = (rng.integers(-2, 3, shape).astype(np.float32) for shape in ((9, 40), (16, 9)))
    at = rng.integers(0, 40, (40, 3), np.int32)
    factors = np.where(at < 30, x[:, at], np.float32(1))
    got = Custom(samples, func_type="akg", compile_attrs={"lower": "native"})(x, w, at)
    np.testing.assert_array_equal(got, w @ factors.prod(axis=-1))
