"""Loops whose iterations have different strides are written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from loop_ir import parse_kernel, write_out_stages
from test_c_arrangement import arranged, body_of

from msops import Custom
from msops.errors import ArgumentValueError

STAGES = """kernel stages(x: float32[16]) -> (x) {{
  serial s in {span} {{
    serial i in 0 .. {bound} {{
      x[i] = x[i] + x[i + {half}]
    }}
  }}
}}"""
HALF = "(16 >> (s + 1))"


@pytest.mark.parametrize("bound", [HALF, "(1 << s)", "pow(2, s)"])
def test_each_stage_has_numbers_for_its_strides(bound: str) -> None:
    kernel = parse_kernel(STAGES.format(span="0 .. 4", bound=bound, half="(8 - s)"))
    text = body_of(arranged(write_out_stages, kernel))
    assert text.count("serial i") == 4
    assert "serial s" not in text


@pytest.mark.parametrize(
    "parts",
    [
        {"span": "0 .. 1"},
        {"span": "0 .. 100", "bound": "(1 << (s % 4))"},
        {"span": "0 .. int32(x[0])"},
        {"bound": "(4 - s)", "half": "s"},
        {"bound": "(s << 1)", "half": "s"},
        {"bound": "4", "half": "(1 << s)"},
    ],
    ids=["one stage", "many stages", "data", "no power", "a multiple", "no bound"],
)
def test_other_loops_stay(parts: dict[str, str]) -> None:
    given = {"span": "0 .. 3", "bound": HALF, "half": HALF, **parts}
    kernel = parse_kernel(STAGES.format(**given))
    assert write_out_stages(kernel) is kernel


def test_stages_of_stages_are_written_out_once() -> None:
    kernel = parse_kernel("""kernel nested(x: float32[16]) -> (x) {
  serial s in 0 .. 4 {
    serial u in 0 .. 3 {
      serial i in 0 .. ((8 >> s) + (1 << u)) {
        x[i % 16] = x[i % 16] + 1.0:float32
      }
    }
  }
}""")
    text = body_of(arranged(write_out_stages, kernel))
    assert "serial s" in text
    assert "serial u" not in text


def test_stages_of_many_statements_stay() -> None:
    text = STAGES.format(span="0 .. 4", bound=HALF, half=HALF)
    line = next(line for line in text.splitlines() if "x[i] =" in line)
    kernel = parse_kernel(text.replace(line, "\n".join([line] * 110)))
    assert write_out_stages(kernel) is kernel


CORNERS = """kernel corners(x: float32[6, 6]) -> (y) {{
  buffer y: float32[5, 5]
  serial k in 0 .. {corners} {{
    serial i in 0 .. 5 {{
      serial j in 0 .. {end} {{
        y[i, j] = y[i, j] + x[i + {row}, j + {column}]
      }}
    }}
  }}
}}"""


@pytest.mark.parametrize(
    ("row", "column"), [("k // 2", "k % 2"), ("truncmod(k, 2)", "truncdiv(k, 2)")]
)
def test_each_corner_has_numbers_for_its_distances(row: str, column: str) -> None:
    kernel = parse_kernel(CORNERS.format(corners=4, end=5, row=f"({row})", column=f"({column})"))
    text = body_of(arranged(write_out_stages, kernel))
    assert text.count("serial j") == 4
    assert "serial k" not in text


@pytest.mark.parametrize(
    "parts",
    [
        {"corners": 10, "row": "(k // 8)", "column": "(k % 8)"},
        {"row": "((i + k) // 9)", "column": "((i + k) % 9)"},
        {"row": "(9 // (k + 9))", "column": "(9 % (k + 9))"},
        {"row": "(k // 2)"},
        {"row": "(k % 2)"},
        {"row": "(k // 2)", "column": "(k % 3)"},
    ],
    ids=["many", "another variable", "a divisor", "groups", "turns", "two divisors"],
)
def test_other_quotients_stay(parts: dict[str, str]) -> None:
    given = {"corners": 4, "end": 5, "row": "0", "column": "0", **parts}
    kernel = parse_kernel(CORNERS.format(**given))
    assert write_out_stages(kernel) is kernel


def test_parts_of_many_statements_stay() -> None:
    text = CORNERS.format(corners=4, end=5, row="(k // 2)", column="(k % 2)")
    line = next(line for line in text.splitlines() if "y[i, j] =" in line)
    kernel = parse_kernel(text.replace(line, "\n".join([line] * 19)))
    assert write_out_stages(kernel) is kernel


def test_a_loop_without_loops_stays() -> None:
    kernel = parse_kernel("""kernel corners(x: float32[2, 2]) -> (y) {
  buffer y: float32[1]
  serial k in 0 .. 4 {
    y[0] = y[0] + x[k // 2, k % 2]
  }
}""")
    assert write_out_stages(kernel) is kernel


def fourier(re, im):
    batch, n = re.shape
    xr = output_tensor((batch, n), re.dtype)  # noqa: F821
    xi = output_tensor((batch, n), re.dtype)  # noqa: F821
    for b in range(batch):
        yr = allocate((n,), re.dtype)  # noqa: F821
        yi = allocate((n,), re.dtype)  # noqa: F821
        for k in range(n):
            xr[b, k] = re[b, k]
            xi[b, k] = im[b, k]
        for s in range(5):
            stride = 1 << s
            half = n >> (s + 1)
            for p in range(half):
                angle = -3.141592653589793 * float64(p) / float64(half)  # noqa: F821
                wr = cos(angle)  # noqa: F821
                wi = sin(angle)  # noqa: F821
                for q in range(stride):
                    ar = xr[b, q + stride * p]
                    ai = xi[b, q + stride * p]
                    br = xr[b, q + stride * (p + half)]
                    bi = xi[b, q + stride * (p + half)]
                    yr[q + stride * 2 * p] = ar + br
                    yi[q + stride * 2 * p] = ai + bi
                    yr[q + stride * (2 * p + 1)] = (ar - br) * wr - (ai - bi) * wi
                    yi[q + stride * (2 * p + 1)] = (ar - br) * wi + (ai - bi) * wr
            for k in range(n):
                xr[b, k] = yr[k]
                xi[b, k] = yi[k]
    return xr, xi


def doubling(x):
    rows, n = x.shape
    y = output_tensor(x.shape, x.dtype)  # noqa: F821
    before = allocate((n,), x.dtype)  # noqa: F821
    for r in range(rows):
        for i in range(n):
            y[r, i] = x[r, i]
        for s in range(6):
            for i in range(n):
                before[i] = y[r, i]
            for i in range(2**s, n):
                y[r, i] = before[i] + before[i - 2**s]
    return y


def as_op(kernel: Callable[..., Any], form: str) -> Callable[..., Any]:
    op = Custom(kernel, func_type="akg", compile_attrs={"lower": form})
    return lambda *arrays: op(*arrays)


@pytest.mark.parametrize("form", ["native", "xla"])
def test_a_fourier_transform_and_its_gradient(form: str) -> None:
    re, im, dr, di = np.random.default_rng(0).normal(size=(4, 3, 16))
    want = np.fft.fft(re + 1j * im)
    with jax.enable_x64(True):
        got, pull = jax.vjp(as_op(fourier, form), re, im)
        back = pull((jax.numpy.asarray(dr), jax.numpy.asarray(di)))
    np.testing.assert_allclose(np.asarray(got[0]) + 1j * np.asarray(got[1]), want, atol=1e-11)
    # The transpose of F as a real matrix: conjugate, transform, conjugate.
    adjoint = np.conj(np.fft.fft(np.conj(dr + 1j * di)))
    np.testing.assert_allclose(np.asarray(back[0]) + 1j * np.asarray(back[1]), adjoint, atol=1e-11)


@pytest.mark.parametrize("form", ["native", "xla"])
@pytest.mark.parametrize("n", [40, 64])
def test_prefix_sums_by_doubling(form: str, n: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (3, n)).astype("float32")
    np.testing.assert_array_equal(as_op(doubling, form)(x), np.cumsum(x, axis=1))


def corners(x):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821
    for k in range(4):
        for i in range(x.shape[0]):
            for j in range(x.shape[1] - 1):
                y[i, j] += x[i + k // 2, j + k % 2]
    return y


def test_an_error_names_the_loops_of_the_author() -> None:
    op = Custom(corners, func_type="akg")
    with pytest.raises(ArgumentValueError) as caught:
        op(np.ones((15, 15), "float32"))
    # Both corners with k // 2 = 1 read it.
    assert "reads x[15, j + (k % 2)] of x: float32[15, 15] at k = 2, i = 14, j = 0" in str(
        caught.value
    )
    assert str(caught.value).count("reads") == 1


def no_rounds(x):
    n = x.shape[0]
    for s in range(1):
        for u in range(s):
            for i in range((1 << u) + (n >> u) - n):
                x[i] = x[i] + 1.0
    return x


@pytest.mark.parametrize("form", ["native", "xla"])
def test_a_power_by_the_variable_of_a_loop_that_never_runs(form: str) -> None:
    x = np.arange(8, dtype="float32")
    np.testing.assert_array_equal(as_op(no_rounds, form)(x), x)
