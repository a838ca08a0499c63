"""Sums below a running maximum: which become sums below the last one, and are the same."""

from __future__ import annotations

import textwrap
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, interpret, parse_kernel, split_running_maxima, verify
from random_examples import examples
from test_c_arrangement import body_of

from msops import Custom
from msops.lang import allocate, exp, output_tensor

pytestmark = pytest.mark.usefixtures("as_users_compile")

ONLINE = """kernel online(x: float32[6, 9], v: float32[9]) -> (y, z, e) {
  buffer y: float32[6]
  buffer z: float32[6]
  buffer e: float32[6]
  serial i in 0 .. 6 {
    local top: float32[] {
      top[] = -1e+30:float32
      local total: float32[] {
        serial j in 0 .. 9 {
          local new: float32[] {
            new[] = max(top[], x[i, j])
            total[] = (total[] * exp(top[] - new[])) + (exp(x[i, j] - new[]) * v[j])
            top[] = new[]
          }
        }
        y[i] = total[]
        z[i] = top[]
      }
    }
  }
}"""


def split(kernel: Kernel, inputs: list[np.ndarray] | None = None) -> Kernel:
    """Returns the kernel after the pass, which must leave it legal and meaning the same."""
    after = split_running_maxima(kernel)
    verify(after)
    rng = np.random.default_rng(0)
    inputs = inputs or [rng.normal(size=b.shape).astype(b.dtype) * 3 for b in kernel.parameters]
    for got, want in zip(interpret(after, inputs), interpret(kernel, inputs), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
    return after


def test_the_first_iteration_stays_and_two_loops_follow() -> None:
    text = body_of(split(parse_kernel(ONLINE)))
    assert textwrap.dedent("""\
        local new: float32[] {
          new[] = max(top[], x[i, 0])
          total[] = (total[] * exp(top[] - new[])) + (exp(x[i, 0] - new[]) * v[0])
          top[] = new[]
        }
        local first: float32[] {
          first[] = top[]
          reduction j in 1 .. 9 {
            top[] = max(top[], x[i, j])
          }
          total[] = total[] * exp(first[] - top[])
          reduction j_1 in 1 .. 9 {
            total[] = total[] + (exp(x[i, j_1] - top[]) * v[j_1])
          }
        }""") in textwrap.dedent(text.replace("\n  ", "\n").replace("\n    ", "\n"))


SUM = "total[] = (total[] * exp(top[] - new[])) + (exp(x[i, j] - new[]) * v[j])"
STEP = f"""local new: float32[] {{
            new[] = max(top[], x[i, j])
            {SUM}
            top[] = new[]
          }}"""
FACTOR = """local factor: float32[] {
              factor[] = exp(top[] - new[])
              total[] = (factor[] * total[]) + (exp(x[i, j] - new[]) * v[j])
              top[] = new[]
            }"""
OLD = """local old: float32[] {
            old[] = top[]
            top[] = max(x[i, j], top[])
            total[] = (exp(x[i, j] - top[]) * v[j]) + (exp(old[] - top[]) * total[])
          }"""
ARRAY = """local many: float32[4] {
        serial j in 0 .. 9 {
          local dot: float32[] {
            serial d in 0 .. 6 {
              dot[] = dot[] + (x[d, j] * x[i, d])
            }
            local new: float32[] {
              new[] = max(top[], dot[])
              local p: float32[] {
                p[] = exp(dot[] - new[])
                total[] = (total[] * exp(top[] - new[])) + p[]
                serial c in 0 .. 4 {
                  many[c] = (many[c] * exp(top[] - new[])) + (p[] * v[c])
                }
                top[] = new[]
              }
            }
          }
        }
        e[i] = many[2] + (many[3] / total[])
      }"""
LOOP = f"serial j in 0 .. 9 {{\n          {STEP}\n        }}"
IN_RESULTS = (
    ARRAY.replace("total[]", "y[i]")
    .replace("many[", "many[i, ")
    .replace("local many: float32[4]", "local many: float32[6, 4]")
)
FLASH = ONLINE.replace(LOOP, ARRAY)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0 .. 9", "0 .. (i + 1)"),
        ("0 .. 9", "2 .. 3"),
        ("-1e+30", "-inf"),
        (f"{SUM}\n            top[] = new[]", FACTOR),
        (STEP, OLD),
        ("* v[j])", "/ v[j])"),
        ("(exp(x[i, j] - new[]) * v[j])", "exp(x[i, j] - new[])"),
        ("* v[j])", "* (v[j] + x[i, 0]))"),
        ("(exp(x[i, j] - new[]) * v[j])", "(exp(x[i, j] - new[]) - (v[j] * exp(x[i, j] - new[])))"),
        ("* v[j])", "* ((v[j] > 0.0:float32) ? v[j] : 1.0:float32))"),
        (LOOP, ARRAY),
        (LOOP, IN_RESULTS),
    ],
    ids=[
        "triangle", "one", "from -inf", "factor", "old", "divided", "alone", "of several",
        "difference", "choice", "flash attention", "in results",
    ],
)  # fmt: skip
def test_sums_below_a_running_maximum(old: str, new: str) -> None:
    assert old in ONLINE
    kernel = parse_kernel(ONLINE.replace(old, new))
    assert split(kernel) != kernel


def test_what_the_maximum_is_of_is_computed_once() -> None:
    text = body_of(split(parse_kernel(FLASH)))
    # In the first iteration, and in the loop over the others.
    assert text.count("x[i, d") == 2
    assert "local kept: float32[9]" in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("max(top[], x[i, j])", "min(top[], x[i, j])"),
        ("max(top[], x[i, j])", "max(v[j], x[i, j])"),
        ("max(top[], x[i, j])", "max(top[], total[])"),
        ("exp(x[i, j] - new[])", "exp2(x[i, j] - new[])"),
        ("exp(x[i, j] - new[])", "exp(x[i, 0] - new[])"),
        ("exp(x[i, j] - new[])", "exp(x[i, j] - top[])"),
        ("exp(x[i, j] - new[])", "exp(new[] - x[i, j])"),
        ("exp(x[i, j] - new[])", "v[j]"),
        ("exp(top[] - new[])", "exp(new[] - top[])"),
        ("exp(top[] - new[])", "exp(v[j] - new[])"),
        ("* exp(top[] - new[]))", "* 0.5:float32)"),
        ("* v[j])", "* exp(x[i, j] - new[]))"),
        ("* v[j])", "+ v[j])"),
        ("* v[j])", "* total[])"),
        ("* v[j])", "* new[])"),
        ("(exp(x[i, j] - new[]) * v[j])", "(v[j] / exp(x[i, j] - new[]))"),
        ("top[] = new[]", "top[] = new[] + 1.0:float32"),
        ("top[] = new[]", "top[] = new[]\n e[i] = total[]"),
        ("top[] = new[]", "top[] = new[]\n e[i] = new[]"),
        ("top[] = new[]", "top[] = new[]\n e[i] = v[j]"),
        ("top[] = new[]", "top[] = new[]\n total[] = total[] + 1.0:float32"),
        ("top[] = new[]", "if (v[j] > 0.0:float32) {\n top[] = new[]\n }"),
        (SUM, f"if (v[j] > 0.0:float32) {{\n {SUM}\n }}"),
        (SUM, f"serial c in 0 .. 2 {{\n {SUM}\n }}"),
        (SUM, "top[] = new[]\n " + SUM),
        (SUM, f"{SUM}\n {SUM}"),
        ("x[i, j]", "total[]"),
        ("0 .. 9", "0 .. 9 @serial"),
        ("0 .. 9", "0 .. i"),
        ("x[i, j]", "e[j % 6]"),
        ("0 .. 9", "0 .. (2 + (int32(top[]) % 2))"),
    ],
    ids=[
        "minimum", "no running maximum", "of the sum", "other base", "of another value",
        "below the old maximum", "negative", "no weight", "negative factor", "another factor",
        "constant factor", "two weights", "a term without", "of the sum", "of the maximum",
        "divided by a weight", "another maximum", "uses the sum", "uses the maximum",
        "writes something else", "added to twice", "a maximum at times", "a sum at times",
        "more than once", "after the new maximum", "scaled twice", "of the sum alone",
        "asked for", "may not run", "of what is written", "bounds of data",
    ],
)  # fmt: skip
def test_other_uses_stay(old: str, new: str) -> None:
    assert old in ONLINE
    text = ONLINE.replace(old, new)
    if "e[j % 6]" in text:
        text = text.replace("top[] = new[]", "top[] = new[]\n e[i] = x[i, j]")
    kernel = parse_kernel(text)
    assert split(kernel) == kernel


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("many[c] =", "many[3 - c] ="),
        ("many[c", "many[c, j % 2"),
        ("serial c in 0 .. 4", "serial c in 0 .. min(j, 4)"),
        ("serial c in 0 .. 4 {", "serial r in 0 .. 2 {\n serial c in 0 .. 4 {"),
        ("p[] * v[c]", "p[] * many[0]"),
        ("top[] = new[]", "top[] = new[]\n total[] = dot[]"),
        ("total[] = (", "p[] = 2.0:float32\n total[] = ("),
        ("float32[4]", "float32[4000000]"),
    ],
    ids=[
        "other",
        "another each time",
        "fewer",
        "twice",
        "of others",
        "lost",
        "no weight",
        "nothing",
    ],
)
def test_other_arrays_stay(old: str, new: str) -> None:
    text = FLASH.replace(old, new)
    if "j % 2" in new:
        text = text.replace("many: float32[4]", "many: float32[4, 2]")
        text = text.replace("many[2]", "many[2, 0]").replace("many[3]", "many[3, 1]")
    if "serial r" in new:
        text = text.replace("(p[] * v[c])", "(p[] * v[c])\n }")
    kernel = parse_kernel(text)
    assert (split(kernel) != kernel) is (old == "float32[4]")


SPECIAL = st.sampled_from([np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, 60.0, -60.0, 200.0, -200.0])


@given(
    start=st.sampled_from(["nan", "inf", "-inf", "-1e+30", "0.0", "70.0"]),
    x=st.lists(SPECIAL, min_size=54, max_size=54),
    form=st.sampled_from([STEP, OLD]),
)
@settings(max_examples=examples(60), deadline=None)
def test_infinities_and_nan_come_out_as_they_did(start: str, x: list[float], form: str) -> None:
    kernel = parse_kernel(ONLINE.replace(STEP, form).replace("-1e+30", start))
    values = np.array(x, np.float32).reshape(6, 9)
    with np.errstate(all="ignore"):
        assert split(kernel, [values, np.arange(1, 10, dtype=np.float32)]) != kernel


def flash_attention(q: Any, k: Any, v: Any) -> Any:
    n, size = q.shape
    out = output_tensor(q.shape, q.dtype)
    for i in range(n):
        top = -1e30
        total = 0.0
        mean = allocate((size,), q.dtype)
        for j in range(k.shape[0]):
            score = 0.0
            for d in range(size):
                score += q[i, d] * k[j, d]
            new = max(top, score)
            factor = exp(top - new)
            weight = exp(score - new)
            total = total * factor + weight
            for d in range(size):
                mean[d] = mean[d] * factor + weight * v[j, d]
            top = new
        for d in range(size):
            out[i, d] = mean[d] / total
    return out


@pytest.mark.parametrize("form", ["native", pytest.param("xla", marks=pytest.mark.slow)])
def test_flash_attention_and_its_gradient_agree_with_jax(form: str) -> None:
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(n, 5)).astype(np.float32) for n in (7, 9, 9)]
    op = Custom(flash_attention, func_type="akg", compile_attrs={"lower": form})

    def wanted(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.softmax(q @ k.T, axis=1) @ v

    for function in (lambda f: f, lambda f: jax.grad(lambda *a: (f(*a) ** 2).sum(), (0, 1, 2))):
        got, want = function(op)(*inputs), function(wanted)(*inputs)
        for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


def test_flash_attention_is_operations_on_whole_arrays() -> None:
    arrays = [jax.ShapeDtypeStruct((400, 64), np.float32)] * 3
    text = Custom(flash_attention, func_type="akg").explain(*arrays)
    assert text.count("contraction, dot_general") == 3
    assert "order-bound" not in text
