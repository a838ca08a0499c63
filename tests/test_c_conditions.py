"""Conditions that data decide, without branches: by text, and by what they compute."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from loop_ir import Kernel, interpret, parse_kernel
from loop_native import build_together, call, shipped
from test_c_carrying import MORE, distances


def conditions_of(kernel: Kernel) -> list[str]:
    """Returns the conditions of a kernel's branches, in C."""
    return re.findall(r"if \((.*)\) \{", shipped(kernel, 0)[1].text)


def test_conditions_of_elements_are_evaluated_whole() -> None:
    kept = "a[(i - 1)] == b[j]"
    for more, condition in (
        (MORE, f"(a[i] == b[(j - 1)]) & ({kept})"),
        (MORE.replace("(a[i] == b[j - 1])", "(i > j)"), f"(i > j) & ({kept})"),
        (MORE.replace("&&", "||"), f"(a[i] == b[(j - 1)]) | ({kept})"),
    ):
        assert condition in conditions_of(distances(more=more))


@pytest.mark.parametrize(
    "more",
    [
        MORE.replace("(a[i - 1] == b[j])", "(cost[] > 0)"),
        MORE.replace("b[j])", "b[j + 1])"),
        MORE.replace("== b[j])", "== (b[j] // a[i]))"),
        MORE.replace("== b[j])", f"== ({'(b[j] * ' * 4}b[j]{')' * 4} - {'(a[i] * ' * 4}a[i]))))))"),
    ],
    ids=["variables", "outside", "division", "much"],
)
def test_conditions_that_keep_their_branch(more: str) -> None:
    found = conditions_of(distances(more=more))
    assert any(" && " in condition for condition in found)
    assert not any(" & " in condition for condition in found)


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


def test_a_body_that_one_iteration_leaves_out(tmp_path: Path) -> None:
    kernel, source = shipped(others(), 0)
    library = build_together(tmp_path, [source], ("-O3",))
    rng = np.random.default_rng(0)
    y, p = rng.permutation(60).reshape(30, 2).astype("float64"), rng.uniform(size=30)
    d = y[:, None, 0] - y[None, :, 0]
    np.fill_diagonal(d, np.inf)
    want = (p / (d * d)).sum(1) + np.where(np.isinf(d), 0, d).sum(1)
    np.testing.assert_allclose(call(library, kernel, source, [y, p])[0], want, rtol=1e-13)
