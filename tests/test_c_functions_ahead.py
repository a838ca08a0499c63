"""Functions that loops without vectors call are computed ahead of them, in vectors."""

from __future__ import annotations

import textwrap
from random import Random

import numpy as np
import pytest
from loop_ir import Kernel, compute_functions_ahead, parse_kernel
from loop_native import build_together, call, shipped
from test_c_arrangement import arranged_apart, body_of
from test_c_functions import called, in_vectors, needs_vector_library

ROWS = """kernel rows(a: float64[700], x: float64[8, 700], n: int32[700])
  -> (y, z) {{
  buffer y: float64[700, 8]
  buffer z: float64[1400]
  {kind} j in {span} {{
    local w: float64[] {{
      local v: float64[] {{
        local u: float64[] {{
          local t: float64[3] {{
            {before}
            {inside}
          }}
        }}
      }}
    }}
  }}
}}"""
PARTS = {
    "kind": "parallel", "span": "0 .. 40", "before": "w[] = cos(a[j])",
    "inside": "parallel k in 0 .. 8 { y[j, k] = w[] * x[k, j] }",
}  # fmt: skip


def rows(**parts: str) -> Kernel:
    return parse_kernel(ROWS.format(**{**PARTS, **parts}))


def text_of(**parts: str) -> str:
    return body_of(arranged_apart(compute_functions_ahead, rows(**parts)))


def test_a_function_has_a_loop_of_its_own() -> None:
    assert text_of() == textwrap.dedent("""\
        buffer y: float64[700, 8]
        buffer z: float64[1400]
        local w: float64[40] {
          parallel j_1 in 0 .. 40 {
            w[j_1] = cos(a[j_1])
          }
          parallel j in 0 .. 40 {
            parallel k in 0 .. 8 {
              y[j, k] = w[j] * x[k, j]
            }
          }
        }""")


@pytest.mark.parametrize(
    ("span", "blocks", "size"), [("0 .. 64", 1, 64), ("5 .. 105", 2, 50), ("0 .. 700", 11, 64)]
)
def test_a_long_loop_goes_by_blocks_of_about_one_size(span: str, blocks: int, size: int) -> None:
    text = text_of(span=span)
    assert f"local w: float64[{size}]" in text
    assert (f"parallel j_block in 0 .. {blocks} {{" in text) == (blocks > 1)


def test_what_a_function_needs_comes_with_it() -> None:
    text = text_of(before="v[] = a[j] v[] = v[] * 2.0:float64 w[] = sin(v[]) w[] = w[] + v[]")
    ahead, rest = text.split("parallel j in")
    assert "local w: float64[40]" in ahead
    assert "local v: float64[]" in ahead
    assert "v[]" not in rest


def test_what_the_rest_needs_too_is_computed_again() -> None:
    inside = "parallel k in 0 .. 8 { y[j, k] = w[] * v[] }"
    text = text_of(before="v[] = a[j] * 2.0:float64 w[] = sin(v[])", inside=inside)
    ahead, rest = text.split("parallel j in")
    assert "v_1[] = a[j_1] * 2.0:float64" in ahead
    assert "v[] = a[j] * 2.0:float64" in rest


def test_what_depends_on_a_function_is_not() -> None:
    inside = "parallel k in 0 .. 8 { y[j, k] = w[] * v[] }"
    text = text_of(before="w[] = sin(a[j]) v[] = w[] * 2.0:float64", inside=inside)
    ahead, rest = text.split("parallel j in")
    assert "local v: float64[40]" in ahead
    assert "w[j] * v[j]" in rest
    # Here v is made of what w was before.
    text = text_of(before="w[] = a[j] v[] = w[] w[] = sin(v[])", inside=inside)
    assert "w[j] * v[j]" in text


def test_chains_of_variables_stay_together() -> None:
    inside = "parallel k in 0 .. 8 { y[j, k] = u[] }"
    text = text_of(before="w[] = sin(a[j]) v[] = w[] * w[] u[] = v[] + v[]", inside=inside)
    assert "local u: float64[40]" in text
    assert "local v: float64[]" in text
    text = text_of(before="u[] = a[j] v[] = u[] + u[] w[] = sin(v[])")
    ahead, rest = text.split("parallel j in")
    assert "u[] = a[j_1]" in ahead
    assert "u[]" not in rest


def test_what_no_function_needs_stays() -> None:
    inside = "parallel k in 0 .. 8 { y[j, k] = w[] * v[] }"
    text = text_of(before="v[] = a[j] * 2.0:float64 w[] = sin(a[j])", inside=inside)
    ahead, _ = text.split("parallel j in")
    assert "v" not in ahead.replace("value", "").replace("parallel", "")


def test_functions_in_longer_expressions_are_variables() -> None:
    text = text_of(
        kind="serial", before="v[] = y[(j + 699) % 700, 0] w[] = v[] * exp(a[j])",
        inside="y[j, 0] = ((w[] + exp(a[j])) + (2.0:float64 * sin(a[j]))) + v[]",
    )  # fmt: skip
    assert text == textwrap.dedent("""\
        buffer y: float64[700, 8]
        buffer z: float64[1400]
        local value_1: float64[40] {
          local value: float64[40] {
            parallel j_1 in 0 .. 40 {
              value[j_1] = exp(a[j_1])
              value_1[j_1] = 2.0:float64 * sin(a[j_1])
            }
            serial j in 0 .. 40 {
              local v: float64[] {
                local w: float64[] {
                  v[] = y[(j + 699) % 700, 0]
                  w[] = v[] * value[j]
                  y[j, 0] = ((w[] + value[j]) + value_1[j]) + v[]
                }
              }
            }
          }
        }""")


SERIAL = {"kind": "serial", "before": "v[] = y[(j + 699) % 700, 0]"}


@pytest.mark.parametrize(
    "parts",
    [
        {**SERIAL, "inside": "y[j, 0] = v[] + exp(a[j])"},
        {**SERIAL, "inside": "y[j, 0] = v[] + pow(a[j], v[])", "before": "v[] = 3.0:float64"},
        {**SERIAL, "inside": "y[j, 0] = v[] + float64(exp(float32(a[j])))"},
        {**SERIAL, "inside": "y[j, 0] = v[] + float64(erf(float32(a[j])))"},
        {
            "kind": "reduction", "before": "",
            "inside": "z[n[j] % 8] = z[n[j] % 8] + exp(a[j])",
        },
        {"span": "1 .. 41", "inside": "if ((j % 2) > 0) { z[j] = z[j - 1] + w[] }"},
        {"before": "w[] = cos(a[n[j] % 700])"},
        {"before": "w[] = cos(a[j]) y[j, 0] = w[] w[] = a[j]"},
        {"before": "t[1] = cos(a[j])", "inside": "parallel k in 0 .. 2 { y[j, k] = t[k] }"},
    ],
    ids=["serial", "power", "float32", "own", "picked", "carried", "gathered",
        "read before it is stored again", "an array",
    ],
)  # fmt: skip
def test_loops_without_vectors(parts: dict[str, str]) -> None:
    kernel = rows(**parts)
    assert arranged_apart(compute_functions_ahead, kernel) is not kernel


@pytest.mark.parametrize(
    "parts",
    [
        {"before": "", "inside": "y[j, 0] = cos(a[j])"},
        {"kind": "reduction", "before": "", "inside": "w[] = w[] + cos(a[j])"},
        {"kind": "reduction", "before": "z[j] = exp(a[j])", "inside": "w[] = w[] + z[j]"},
        {"span": "0 .. 15"},
        {"span": "0 .. n[0]"},
        {"before": "w[] = sqrt(a[j])"},
        {"before": "w[] = pow(a[j], 2.0:float64)"},
        {"before": "w[] = float64(tanh(float16(a[j])))"},
        {"before": "w[] = cos(y[0, 0])"},
        {"before": "if (n[j] > 0) { w[] = cos(a[j]) }"},
        {"before": "v[] = a[j] if (n[j] > 0) { v[] = 0.0:float64 } w[] = cos(v[])"},
        {"before": "v[] = y[0, 0] w[] = ((n[j] > 0) ? cos(a[j]) : v[])"},
        {"before": "v[] = y[0, 0] w[] = float64((j > 0) && ((cos(a[j - 1]) * v[]) > v[]))"},
        {"before": "w[] = a[j] w[] = y[0, 0] * w[]"},
        {
            "inside": "parallel k in 0 .. 8 { serial l in 0 .. 90 "
            "{ y[j, k] = (y[j, k] * 0.5:float64) + (w[] * x[k, l]) } }"
        },
    ],
    ids=[
        "in vectors", "a sum", "a sum and its terms", "short", "of any length", "an instruction",
        "a product", "float16", "of what is stored", "under a condition",
        "that a condition changes", "that a choice guards",
        "that a condition guards", "no function", "a small part",
    ],
)  # fmt: skip
def test_loops_that_stay(parts: dict[str, str]) -> None:
    kernel = rows(**parts)
    assert compute_functions_ahead(kernel) is kernel


@needs_vector_library
@pytest.mark.parametrize("span", ["0 .. 40", "0 .. 700"])
def test_they_come_from_the_vector_library(span: str, tmp_path) -> None:
    inside = "parallel k in 0 .. 8 { y[j, k] = w[] * x[k, n[j] % 700] }"
    text = ROWS.format(**{**PARTS, "span": span, "inside": inside})
    assert in_vectors(called(tmp_path, text)) == {"cos"}


def random_rows(random: Random) -> Kernel:
    """Returns rows whose variables are computed in some order, from each other and elements."""

    def value(depth: int) -> str:
        if not depth or random.random() < 0.2:
            elements = ["a[j]", "x[1, j]", "v[]", "w[]", "float64(n[j])", "0.5:float64"]
            return random.choice([*elements, "y[(j + 1) % 700, 0]", "y[j, 1]"])
        kind = random.choice(["add", "mul", "function", "choice"])
        if kind == "function":
            name = random.choice(["sin", "cos", "floor", "exp"])
            return f"{name}({value(depth - 1)} * 0.25:float64)"
        if kind == "choice":
            return f"((n[j] > 1) ? {value(depth - 1)} : {value(depth - 1)})"
        return f"({value(depth - 1)} {'+' if kind == 'add' else '*'} {value(depth - 1)})"

    def statement() -> str:
        target = random.choice(["v[]", "w[]", "v[]", "w[]", "y[j, 0]", "y[j, 1]"])
        text = f"{target} = {value(3)}"
        if random.random() < 0.2:
            return f"if (n[j] > 0) {{ {text} }}"
        if random.random() < 0.2:
            at = f"k{random.randrange(10**9)}"
            return f"parallel {at} in 4 .. 8 {{ y[j, {at}] = w[] + v[] }}"
        return text

    before = " ".join(statement() for _ in range(random.randint(2, 6)))
    span = random.choice(["0 .. 20", "3 .. 103"])
    return rows(kind="serial", span=span, before=before, inside="y[j, 3] = w[] - v[]")


def test_random_rows_mean_the_same() -> None:
    random, changed = Random(28), 0
    for _ in range(150):
        kernel = random_rows(random)
        changed += arranged_apart(compute_functions_ahead, kernel) is not kernel
    assert changed > 50


def test_their_c_computes_the_same(tmp_path) -> None:
    rng = np.random.default_rng(0)
    x, a, n = rng.standard_normal((8, 700)), rng.standard_normal(700), rng.integers(0, 9, 700)
    kernels = [shipped(rows(span=span), k) for k, span in enumerate(("0 .. 40", "0 .. 700"))]
    library = build_together(tmp_path, [source for _, source in kernels], ("-O3",))
    for (kernel, source), end in zip(kernels, (40, 700), strict=True):
        y, _ = call(library, kernel, source, [a, x, n.astype("int32")])
        want = np.zeros((700, 8))
        want[:end] = (np.cos(a) * x).T[:end]
        np.testing.assert_allclose(y, want, rtol=1e-14, atol=1e-14)
