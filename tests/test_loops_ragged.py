"""Rows whose lengths are data, with nests in them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, forward_lengths, interpret, parse_kernel, verify, version_ragged_rows
from random_examples import examples
from test_c_arrangement import body_of

from msops import Custom

ROWS = """kernel rows({length}, x: float32[4, {size}, 3]) -> (y) {{
  buffer y: float32[4, 2, {size}]
  parallel b in 0 .. 4 {{
    parallel i in 0 .. 2 {{
      serial j in {begin} .. {end} {{
        {inner}
      }}
    }}
  }}
}}"""
SUM = "reduction k in 0 .. 3 { y[b, i, j] = y[b, i, j] + x[b, j, k] }"
PARTS = {"length": "n: int32[4]", "size": "6", "begin": "0", "end": "n[b]", "inner": SUM}


def rows(**parts: str) -> Kernel:
    return parse_kernel(ROWS.format(**{**PARTS, **parts}))


def test_rows_of_lengths_in_range_are_parallel() -> None:
    assert body_of(version_ragged_rows(rows())) == textwrap.dedent("""\
        buffer y: float32[4, 2, 6]
        parallel b in 0 .. 4 {
          if ((n[b] >= 0) && (n[b] <= 6)) @usual {
            parallel i in 0 .. 2 {
              parallel j in 0 .. within(n[b], 0, 6) {
                reduction k in 0 .. 3 {
                  y[b, i, j] = y[b, i, j] + x[b, j, k]
                }
              }
            }
          } else {
            serial i_1 in 0 .. 2 {
              serial j_1 in 0 .. n[b] {
                serial k_1 in 0 .. 3 {
                  y[b, i_1, j_1] = y[b, i_1, j_1] + x[b, j_1, k_1]
                }
              }
            }
          }
        }""")


def test_the_smallest_array_limits_a_row_and_what_moves_in_it_too() -> None:
    shorter = SUM.replace("x[b, j, k]", "(x[b, k, j] + x[b, j + 2, k])")
    assert "within(n[b], 0, 3)" in body_of(version_ragged_rows(rows(inner=shorter)))
    moved = SUM.replace("x[b, j, k]", "x[b, j + 2, k]")
    assert "within(n[b], 0, 4)" in body_of(version_ragged_rows(rows(inner=moved)))


def test_the_smallest_of_all_loops_of_a_length_limits_them() -> None:
    for first, second in (("j", "l + 3"), ("j + 3", "l")):
        inner = SUM.replace("i, j]", f"i, {first}]")
        inner += f"}} serial l in 0 .. n[b] {{ y[b, i, {second}] = 0.0:float32"
        assert body_of(version_ragged_rows(rows(inner=inner))).count("within(n[b], 0, 3)") == 2


def test_an_empty_row_is_in_range() -> None:
    assert "within(n[b], 0, 6)" in body_of(version_ragged_rows(rows(begin="1")))


def test_a_length_of_all_rows_is_tested_once() -> None:
    text = body_of(version_ragged_rows(rows(end="n[2]")))
    assert text.splitlines()[1] == "if ((n[2] >= 0) && (n[2] <= 6)) @usual {"


def test_rows_without_nests_that_end_alike_get_the_same_version() -> None:
    inner = SUM + "} serial l in 0 .. n[b] { y[b, i, l] = x[b, l, 0]"
    text = body_of(version_ragged_rows(rows(inner=inner)))
    assert "parallel l in 0 .. within(n[b], 0, 6)" in text
    assert text.count("@usual") == 1


def test_of_rows_in_rows_the_outer_ones_get_versions() -> None:
    inner = "serial k in 0 .. n[i] { " + SUM.replace("k in", "l in").replace("j, k]", "k, l]") + "}"
    text = body_of(version_ragged_rows(rows(inner=inner)))
    assert text.count("@usual") == 1
    assert "within(n[b], 0, 6)" in text


def test_a_length_that_is_never_too_long() -> None:
    text = body_of(version_ragged_rows(rows(length="n: int8[4]", size="200")))
    assert "if (n[b] >= 0:int8) @usual {" in text


@pytest.mark.parametrize(
    ("length", "conditions"),
    [("n: uint8[4]", ["n[b] <= 6:uint8"]), ("n: int8[4]", ["n[b] >= 0:int8", "n[b] <= 6:int8"])],
)
def test_a_length_of_few_bits(length: str, conditions: list[str]) -> None:
    text = body_of(version_ragged_rows(rows(length=length)))
    assert all(condition in text for condition in conditions)


@pytest.mark.parametrize(
    "kernel",
    [
        rows(end="6"),
        rows(end="min(max(n[b], 0), 6)"),
        rows(inner="y[b, i, j] = x[b, j, 0]"),
        rows(inner="reduction k in 0 .. 3 { y[b, i, 0] = y[b, i, 0] + x[b, 0, k] }"),
        rows(inner=SUM + "n[b] = n[b] - 1"),
        rows(end="n[b * 2]"),
        rows(end="n[b - 1]"),
        rows(begin="n[b]", end="(n[b] + 2)"),
        rows(begin="min(n[b], 3)"),
        rows(inner=SUM.replace("j, k]", "j + 7, k]")),
        rows(inner=SUM + "y[b, i, j] = 0.0:float32\n" * 100),
    ],
    ids=[
        "a number", "in range", "no nest", "nothing moves", "a length that changes",
        "no such length", "none before the first", "no known begin", "no least begin",
        "never in range", "too many statements",
    ],
)  # fmt: skip
def test_other_rows_have_one_version(kernel: Kernel) -> None:
    assert version_ragged_rows(kernel) is kernel


def test_a_length_in_a_local_array_stays_in_it() -> None:
    kernel = parse_kernel("""kernel rows(x: float32[6, 3]) -> (y) {
  buffer y: float32[6]
  parallel b in 0 .. 4 {
    local n: int32[4] {
      serial j in 0 .. n[0] {
        reduction k in 0 .. 3 { y[j] = y[j] + x[j, k] }
      }
    }
  }
}""")
    assert version_ragged_rows(kernel) is kernel


def test_a_local_that_holds_the_end_of_a_nest_is_forwarded() -> None:
    kernel = parse_kernel("""kernel rows(n: int32[4], x: float32[4, 6, 3]) -> (y) {
  buffer y: float32[4, 6]
  parallel b in 0 .. 4 {
    local end: int32[] {
      end[] = n[b]
      local other: int32[] {
        other[] = n[b]
        serial j in 0 .. end[] {
          serial k in 0 .. other[] { y[b, j] = y[b, j] + x[b, j, k] }
        }
      }
    }
  }
}""")
    text = body_of(forward_lengths(kernel))
    assert "serial j in 0 .. n[b]" in text
    assert "serial k in 0 .. other[]" in text


LENGTHS = st.lists(
    st.sampled_from([-(2**31), -1, 0, 1, 3, 5, 6, 7, 9]), min_size=4, max_size=4
)  # fmt: skip


@settings(max_examples=examples(60), deadline=None)
@given(
    LENGTHS,
    st.sampled_from(["0", "1", "i", "(i - 1)"]),
    st.sampled_from(["n[b]", "(n[b] + 1)", "n[3 - b]", "n[1]", "n[(i + b) - i]"]),
    st.sampled_from(
        [
            SUM,
            "serial k in 0 .. 3 { y[b, i, j] = y[b, i, 5 - j] + x[b, j, k] }",
            "reduction k in 0 .. 3 { y[b, i, j - 1] = y[b, i, j - 1] + x[b, j + 1, k] }",
            SUM + "} serial l in 0 .. n[b] { y[b, i, l] = y[b, i, l] * x[b, l, 0]",
        ]
    ),
)
@example([7, 7, 0, -1], "0", "n[b]", SUM)
def test_both_versions_mean_the_loops(lengths: list[int], begin: str, end: str, inner: str) -> None:
    lengths = [length % 12 if "+" in end else length for length in lengths]
    kernel = rows(begin=begin, end=end, inner=inner)
    after = version_ragged_rows(kernel)
    verify(after)
    inputs = [np.array(lengths, "int32"), np.arange(72, dtype="float32").reshape(4, 6, 3)]
    np.testing.assert_array_equal(interpret(after, inputs), interpret(kernel, inputs))


def attention(q, k, v, lengths):
    batch, queries, dim = q.shape
    out = output_tensor(q.shape, q.dtype)  # noqa: F821
    for b in range(batch):
        n = lengths[b]
        for i in range(queries):
            score = allocate((k.shape[1],), q.dtype)  # noqa: F821
            top = -1e30
            for j in range(n):
                s = 0.0
                for d in range(dim):
                    s += q[b, i, d] * k[b, j, d]
                score[j] = s
                top = max(top, s)
            total = 0.0
            for j in range(n):
                score[j] = exp(score[j] - top)  # noqa: F821
                total += score[j]
            for j in range(n):
                for d in range(dim):
                    out[b, i, d] += score[j] / total * v[b, j, d]
    return out


def attention_by_hand(q, k, v, lengths):
    exists = jnp.arange(k.shape[1]) < lengths[:, None, None]
    weights = jax.nn.softmax(jnp.where(exists, jnp.einsum("bid,bjd->bij", q, k), -1e30))
    return jnp.einsum("bij,bjd->bid", jnp.where(exists, weights, 0), v)


@pytest.mark.parametrize("lengths", [[1, 7, 12], [0, 12, 3]], ids=str)
def test_attention_to_rows_of_several_lengths_and_its_gradient(lengths: list[int]) -> None:
    op = Custom(attention, func_type="akg", compile_attrs={"lower": "native"})
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(3, n, 8)).astype("float32") for n in (5, 12, 12))
    n = np.array(lengths, "int32")
    got, pull = jax.vjp(lambda q, k, v: op(q, k, v, n), q, k, v)
    want, pull_by_hand = jax.vjp(lambda q, k, v: attention_by_hand(q, k, v, n), q, k, v)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    for grad, by_hand in zip(
        pull(jnp.ones_like(got)), pull_by_hand(jnp.ones_like(got)), strict=True
    ):
        np.testing.assert_allclose(grad, by_hand, rtol=1e-3, atol=1e-4)


def test_a_length_out_of_range_is_what_the_interpreter_makes_of_it() -> None:
    def rows(x, n):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821
        for b in range(x.shape[0]):
            for j in range(n[b]):
                for k in range(2):
                    y[b, j] += x[b, j] * float32(k + j)  # noqa: F821
        return y

    x = np.arange(12, dtype="float32").reshape(3, 4) + 1
    n = np.array([6, -2, 4], "int32")
    want = np.zeros_like(x)
    for b in range(3):
        for j in range(min(n[b], 4)):
            want[b, j] = x[b, j] * (2 * j + 1)
    got = Custom(rows, func_type="akg", compile_attrs={"lower": "native"})(x, n)
    np.testing.assert_array_equal(got, want)


def smallest(x, w, n):
    z = output_tensor(w.shape, w.dtype)  # noqa: F821
    for i in range(w.shape[0]):
        c = w[i]
        for j in range(n[i]):
            if x[i, j] < c:
                c = x[i, j]
        z[i] = c
    return z


def overwritten(x, w, n):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821
    for i in range(x.shape[0]):
        t = allocate((x.shape[1],), x.dtype)  # noqa: F821
        for k in range(n[i]):
            y[i, k] += tanh(t[k] + w[k])  # noqa: F821
            x[i, 1] = tanh(t[1] + w[1]) if x[i, 1] > 0.0 else 0.5  # noqa: F821
            t[k] = tanh(t[k] + w[k]) if x[i, k] > 0.0 else 0.5  # noqa: F821
    return y


@pytest.mark.parametrize("form", ["native", "xla"])
@pytest.mark.parametrize("kernel", [smallest, overwritten])
@pytest.mark.parametrize("seed", range(3))
def test_gradients_of_loops_that_run_again_are_those_of_differences(
    kernel: Callable[..., Any], form: str, seed: int
) -> None:
    with jax.enable_x64(True):
        rng = np.random.default_rng(seed)
        op = Custom(kernel, func_type="akg", compile_attrs={"lower": form})
        columns = 4 if kernel is smallest else 14
        x, w, dx, dw = (rng.normal(size=size) for size in ((4, 14), columns, (4, 14), columns))
        n = rng.integers(0, 12, size=4).astype("int32")
        weights = rng.normal(size=op(x, w, n).shape)

        def total(x: Any, w: Any) -> Any:
            return (op(x, w, n) * weights).sum()

        step = 1e-6
        slope = total(x + step * dx, w + step * dw) - total(x - step * dx, w - step * dw)
        of_x, of_w = jax.grad(total, argnums=(0, 1))(x, w)
        np.testing.assert_allclose(
            (of_x * dx).sum() + (of_w * dw).sum(), slope / 2 / step, atol=1e-6
        )
