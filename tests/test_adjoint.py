"""Adjoints of loop kernels: text, tapes, and gradients against derivatives of others."""

from __future__ import annotations

import random
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume
from loop_corpus import BY_NAME, CORPUS, specialised
from loop_idioms import idioms
from loop_ir import (
    BINARY,
    FUNCTIONS,
    Kernel,
    Local,
    adjoint,
    as_dtype,
    interpret,
    is_float,
    kernel_text,
    parse_kernel,
    recording,
    size_bytes,
    statements,
    verify,
)
from loop_ir import GRADIENT_RULES as RULES
from loop_ir import isl as library
from loop_kernels.case import Case as CorpusCase
from loop_patterns import patterns
from loop_strategies import Case, kernels
from loop_tangents import slope, tangents
from random_examples import on_random

from msops.errors import ArgumentValueError


def check_transpose(kernel: Kernel, inputs: list[np.ndarray], seed: int = 0) -> Kernel:
    """Checks <u, J v> = <J^T u, v> for random u and v; returns the adjoint."""
    generator = np.random.default_rng(seed)
    directions = [generator.standard_normal(b.shape) for b in kernel.parameters]
    floats = [is_float(b.dtype) for b in kernel.outputs]
    along = [t for t, is_smooth in zip(tangents(kernel, inputs, directions), floats, strict=True)
             if is_smooth]  # fmt: skip
    cotangents = [generator.standard_normal(tangent.shape) for tangent in along]
    reverse = adjoint(kernel)
    verify(reverse)
    gradients = interpret(
        reverse, [*inputs, *cotangents], check_bounds=True, shuffle=random.Random(seed)
    )
    moved = [d for b, d in zip(kernel.parameters, directions, strict=True) if is_float(b.dtype)]
    forward = [np.sum(u * t) for u, t in zip(cotangents, along, strict=True)]
    backward = [np.sum(g * d) for g, d in zip(gradients, moved, strict=True)]
    sizes = [np.sum(np.abs(u * t)) for u, t in zip(cotangents, along, strict=True)]
    sizes += [np.sum(np.abs(g * d)) for g, d in zip(gradients, moved, strict=True)]
    tolerance = 1e-11 * (sum(sizes) + 1)
    text = f"{kernel_text(kernel)}\n{kernel_text(reverse)}"
    np.testing.assert_allclose(sum(backward), sum(forward), 0, tolerance, err_msg=text)
    return reverse


def in_float64(kernel: Kernel) -> Kernel:
    """Returns the kernel with float64 for every float."""
    text = kernel_text(kernel)
    for dtype in ("bfloat16", "float16", "float32"):
        text = text.replace(dtype, "float64")
    return parse_kernel(text)


def corpus_inputs(case: CorpusCase, size: int = 5) -> list[np.ndarray]:
    arrays = case.inputs(np.random.default_rng(0), size)
    return [np.asarray(a, "float64") if a.dtype.kind in "fV" else a for a in arrays]


def is_smooth(kernel: Kernel) -> bool:
    return all(any(is_float(b.dtype) for b in part) for part in (kernel.parameters, kernel.outputs))


def tape_bytes(kernel: Kernel) -> int:
    """Returns the size of the tapes of a whole adjoint; those in locals are scratch memory."""
    return sum(size_bytes(buffer) for buffer in adjoint(kernel).buffers if "_tape" in buffer.name)


# Text.


def tape_shapes(kernel: Kernel) -> list[str]:
    """Returns the shapes of all tapes of an adjoint, also of those in locals."""
    return re.findall(r" \w*_tape\w*: float64\[(.*)\]", kernel_text(adjoint(kernel)))


def test_elementwise_needs_no_forward_sweep() -> None:
    kernel = parse_kernel(
        """kernel f(a: float32[4], c: float32[]) -> (b) {
          buffer b: float32[4]
          serial i in 0 .. 4 {
            b[i] = sin(a[i]) * c[]
          }
        }"""
    )
    assert (
        kernel_text(adjoint(kernel))
        == """kernel f_adjoint(a: float32[4], c: float32[], d_b: float32[4]) -> (d_a, d_c) {
  buffer d_a: float32[4]
  buffer d_c: float32[]
  reduction i_1 in 0 .. 4 {
    d_a[i_1] = (d_b[i_1] * c[]) * cos(a[i_1])
    d_c[] = d_c[] + (d_b[i_1] * sin(a[i_1]))
  }
}"""
    )
    assert "d_c" not in kernel_text(adjoint(kernel, (True, False)))


def test_recurrence_runs_backwards_from_its_stored_results() -> None:
    kernel = parse_kernel(
        """kernel recur(x: float64[9], w: float64[]) -> (h) {
          buffer h: float64[10]
          serial t in 0 .. 9 {
            h[t + 1] = tanh(w[] * h[t] + x[t])
          }
        }""".replace("w[] * h[t] + x[t]", "(w[] * h[t]) + x[t]")
    )
    assert (
        kernel_text(adjoint(kernel))
        == """kernel recur_adjoint(x: float64[9], w: float64[], d_h: float64[10]) -> (d_x, d_w) {
  buffer h: float64[10]
  buffer d_x: float64[9]
  buffer d_w: float64[]
  serial t in 0 .. 9 {
    h[t + 1] = tanh((w[] * h[t]) + x[t])
  }
  serial t_1 in 0 .. 9 {
    local w_1: float64[] {
      w_1[] = d_h[9 - t_1]
      local v: float64[] {
        v[] = w_1[] * (1.0:float64 - (h[9 - t_1] * h[9 - t_1]))
        d_w[] = d_w[] + (v[] * h[8 - t_1])
        d_h[8 - t_1] = d_h[8 - t_1] + (v[] * w[])
        d_x[8 - t_1] = v[]
      }
    }
  }
}"""
    )
    assert tape_bytes(kernel) == 0


def test_what_is_overwritten_goes_to_a_tape_indexed_by_the_loops() -> None:
    kernel = parse_kernel(
        """kernel sweep(u: float64[6], b: float64[6]) -> (u) {
          serial t in 0 .. 3 {
            serial i in 1 .. 6 {
              u[i] = u[i - 1] * (u[i] + b[i])
            }
          }
        }"""
    )
    text = kernel_text(adjoint(kernel))
    assert "buffer u_tape: float64[3, 5]" in text
    assert "      u_tape[t, i - 1] = u[i]\n      u[i] = u[i - 1] * (u[i] + b[i])" in text
    assert "u[6 - i_1] = u_tape[2 - t_1, 5 - i_1]" in text
    assert tape_bytes(kernel) == 3 * 5 * 8


@pytest.mark.parametrize(
    ("between", "shapes"),
    [
        ("", ["4"]),
        ("out[t] = u[] * u[]", ["4"]),
        ("serial i in 0 .. 2 { u[] = u[] * x[i] }", ["4", "4, 2"]),
    ],
)
def test_a_tape_has_only_what_is_overwritten_first(between: str, shapes: list[str]) -> None:
    # The product needs the sum as it was before: that is saved once, not with each term as well.
    kernel = parse_kernel(f"""kernel k(x: float64[4], y: float64[4, 3]) -> (out) {{
  buffer out: float64[4]
  local u: float64[] {{
    u[] = x[0]
    serial t in 0 .. 4 {{
      u[] = u[] * x[t]
      serial j in 0 .. 3 {{ u[] = u[] + y[t, j] }}
      {between}
    }}
    out[0] = out[0] + u[]
  }}
}}""")
    assert sorted(tape_shapes(kernel)) == shapes
    rng = np.random.default_rng(0)
    check_transpose(kernel, [rng.random(b.shape) for b in kernel.parameters])


def test_a_store_that_may_not_run_hides_none_behind_it() -> None:
    kernel = parse_kernel("""kernel k(x: float64[6], y: float64[6]) -> (out) {
  buffer out: float64[6]
  local u: float64[] {
    serial t in 0 .. 6 {
      out[t] = u[] * u[]
      if (x[t] > 0.5:float64) { u[] = x[t] }
      u[] = u[] + y[t]
    }
  }
}""")
    assert sorted(tape_shapes(kernel)) == ["6", "6"]
    rng = np.random.default_rng(0)
    check_transpose(kernel, [rng.random(b.shape) for b in kernel.parameters])


@pytest.mark.parametrize("at", [(0, 0, 0, 0), (2, 2, 2, 2), (0, 1, 2, 0), (1, 2, 1, 1)])
def test_a_store_hides_only_the_element_that_it_sets(at: tuple[int, ...]) -> None:
    # What v[n[i]] was may be set by the next v[n[0]], and not by the v[i] between.
    kernel = parse_kernel("""kernel k(x: float64[4], n: int32[4]) -> (out) {
  buffer out: float64[4]
  local v: float64[3] {
    serial q in 0 .. 3 { v[q] = x[3] }
    serial i in 1 .. 3 {
      v[n[0] % 3] = v[n[0] % 3] + x[0]
      v[i] = v[n[i] % 3] * x[1]
    }
    serial q_1 in 0 .. 3 { out[q_1] = v[q_1] }
  }
}""")
    check_transpose(kernel, [np.array([0.3, 0.7, 0.2, 0.5]), np.array(at, np.int32)])


def test_a_tape_is_laid_out_as_the_arrays_beside_it() -> None:
    kernel = parse_kernel(
        """kernel columns(u: float64[6, 5], b: float64[6, 5]) -> (u) {
          serial z in 1 .. 5 {
            serial i in 0 .. 6 {
              u[i, z] = u[i, z - 1] * (u[i, z] + b[i, z])
            }
          }
        }"""
    )
    text = kernel_text(adjoint(kernel))
    assert "buffer u_tape: float64[6, 4]" in text
    assert "u_tape[i, z - 1] = u[i, z]" in text


def test_locals_are_computed_again_where_their_sources_are_unchanged() -> None:
    kernel = parse_kernel(
        """kernel f(a: float32[4]) -> (b) {
          buffer b: float32[4]
          serial i in 0 .. 4 {
            local t: float32[] {
              t[] = exp(a[i])
              b[i] = sin(t[])
            }
          }
        }"""
    )
    assert (
        kernel_text(adjoint(kernel))
        == """kernel f_adjoint(a: float32[4], d_b: float32[4]) -> (d_a) {
  buffer d_a: float32[4]
  parallel i_1 in 0 .. 4 {
    local d_t: float32[] {
      local t: float32[] {
        t[] = exp(a[i_1])
        d_t[] = d_b[i_1] * cos(t[])
        d_a[i_1] = d_t[] * t[]
      }
    }
  }
}"""
    )


@pytest.mark.parametrize(
    ("body", "reversed_body"),
    [
        (
            "b[i] = a[i]\n}\nserial j in 0 .. 4 {\nb[j] = b[j] * a[j]",
            ["d_a[j_1] = d", "d_a[i_1] +"],
        ),
        ("b[i] = a[i] - a[i + 1]", ["d_a[i_1] + d", "d_a[i_1 + 1] - d"]),
        ("b[0] = b[0] - a[at[i]]", ["] - d_b[0]"]),
        ("if (i > 1) {\nb[i] = -(a[i])\n}", ["d_a[i_1] = -(d_b[i_1])"]),
    ],
    ids=["two loops", "neighbours", "anywhere", "conditional"],
)
def test_the_first_term_of_an_adjoint_is_stored(body: str, reversed_body: list[str]) -> None:
    kernel = parse_kernel(
        f"""kernel f(a: float64[5], at: int32[4]) -> (b) {{
          buffer b: float64[4]
          serial i in 0 .. 4 {{
            {body}
          }}
        }}"""
    )
    text = kernel_text(check_transpose(kernel, [np.arange(1.0, 6), np.int32([1, 1, 4, 0])]))
    assert [part for part in reversed_body if part not in text] == []


def test_what_is_cheap_beside_the_forward_sweep_is_computed_again() -> None:
    kernel = parse_kernel(
        """kernel mean(x: float64[6, 5]) -> (y) {
          buffer y: float64[6]
          serial i in 0 .. 6 {
            local total: float64[] {
              local weights: float64[] {
                serial j in 0 .. 5 {
                  local w: float64[] {
                    w[] = exp(x[i, j])
                    total[] = total[] + (w[] * x[i, j])
                    weights[] = weights[] + w[]
                  }
                }
                y[i] = total[] / weights[]
              }
            }
          }
        }"""
    )
    text = kernel_text(check_transpose(kernel, [np.random.default_rng(0).random((6, 5))]))
    # No forward sweep for the quotient, and one loop for both sums.
    assert "buffer y:" not in text
    assert text.count("exp(") == 2


def test_local_whose_source_changes_is_saved_at_its_end() -> None:
    kernel = parse_kernel(
        """kernel f(a: float64[4]) -> (a) {
          serial i in 1 .. 4 {
            local t: float64[] {
              t[] = sin(a[i])
              a[i] = (t[] * t[]) * a[i - 1]
            }
          }
        }"""
    )
    text = kernel_text(adjoint(kernel))
    assert "buffer t_tape: float64[3]" in text
    assert "t_tape[i - 1] = t[]" in text


RELAXED = """kernel relaxed(x: {dtype}[6], b: {dtype}[3, 6]) -> (x) {{
  serial t in 0 .. 3 {{
    serial i in 1 .. 6 {{
      {update}
    }}
  }}
}}"""
OVERWRITING = "x[i] = {op}({operands})"
READING = "local m: {dtype}[] {{ m[] = {op}({operands}) x[i] = m[] }}"


def relaxed(update: str, dtype: str, op: str, operands: str) -> Kernel:
    return parse_kernel(
        RELAXED.format(dtype=dtype, update=update.format(dtype=dtype, op=op, operands=operands))
    )


def test_of_an_overwritten_extreme_the_decision_is_on_the_tape() -> None:
    of_taped_extremes(OVERWRITING)


def test_of_an_extreme_of_overwritten_elements_the_decision_is_on_the_tape() -> None:
    of_taped_extremes(READING)


def of_taped_extremes(update: str) -> None:
    kernel = relaxed(update, "float64", "min", "x[i], x[i - 1] + b[t, i]")
    text = kernel_text(adjoint(kernel))
    assert "chosen_tape[t, i - 1] = chosen[]" in text
    assert "_tape: float64" not in text
    assert tape_bytes(kernel) == 3 * 5


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize("operands", ["x[i], x[i - 1] + b[t, i]", "x[i - 1] - b[t, i], x[i]"])
@pytest.mark.parametrize("update", [OVERWRITING, READING], ids=["overwriting", "reading"])
def test_a_decision_on_a_tape_gives_the_slopes_of_comparisons(
    monkeypatch: pytest.MonkeyPatch, dtype: str, op: str, operands: str, update: str
) -> None:
    """Ties, zeros of both signs, infinite numbers and NaN among them."""
    kernel = relaxed(update, dtype, op, operands)
    decided = adjoint(kernel)
    monkeypatch.setattr("msops._loops.gradient.reverse.taped_extremes", lambda tree, plan: ())
    compared = adjoint(kernel)
    assert "chosen" in kernel_text(decided)
    assert "chosen" not in kernel_text(compared)
    random = np.random.default_rng(0)
    numbers = [-2, -1, -0.0, 0.0, 0, 1, 1, 2, np.inf, np.nan]
    ties = 0
    for share in np.linspace(0.2, 1, 40):
        few = numbers[: round(share * len(numbers))]
        inputs = [random.choice(few, size).astype(as_dtype(dtype).dtype)
                  for size in (6, (3, 6), 6)]  # fmt: skip
        for got, want in zip(interpret(decided, inputs), interpret(compared, inputs), strict=True):
            np.testing.assert_array_equal(got, want)
            ties += np.sum(np.abs(np.asarray(got, "float64")) == 0.5)
    assert ties > 20


@pytest.mark.parametrize("name", ["lu", "cholesky", "forward_substitution", "matmul", "layer_norm"])
def test_dense_algebra_needs_no_tape(name: str) -> None:
    case = BY_NAME[name]
    assert tape_bytes(specialised(case, case.inputs(np.random.default_rng(0), 8))) == 0


def test_in_place_update_through_an_index_reads_its_adjoint() -> None:
    kernel = parse_kernel(
        """kernel scatter(a: float32[4], v: float32[6], at: int32[6]) -> (a) {
          serial i in 0 .. 6 {
            a[at[i]] = a[at[i]] + v[i]
          }
        }"""
    )
    head, _, body = kernel_text(adjoint(kernel)).partition(" -> ")
    assert head == (
        "kernel scatter_adjoint(a: float32[4], v: float32[6], at: int32[6], d_a: float32[4])"
    )
    assert (
        body
        == """(d_a, d_v) {
  buffer d_v: float32[6]
  parallel i_1 in 0 .. 6 {
    if ((at[i_1] >= 0) && (at[i_1] < 4)) {
      d_v[i_1] = d_a[at[i_1]]
    }
  }
}"""
    )


# Gradients.


@on_random(kernels(("float64", "float64", "int32")), quick=12, thorough=120)
def test_adjoint_transposes_forward_mode(case: Case) -> None:
    assume(is_smooth(case.kernel))
    check_transpose(case.kernel, case.inputs)


@on_random(patterns(["float64"]), quick=8, thorough=40)
def test_adjoint_of_patterns_transposes_forward_mode(case: Case) -> None:
    check_transpose(case.kernel, case.inputs)


@on_random(idioms(["float64"]), quick=8, thorough=40)
def test_adjoint_of_idioms_transposes_forward_mode(case: Case) -> None:
    """Multiples of 1/4 are often equal: minima and maxima are shared alike in both modes."""
    check_transpose(case.kernel, case.inputs)


@on_random(kernels(("float64",)), quick=6, thorough=40)
def test_loops_of_unknown_length_are_run_again(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # Every loop counts as one of unknown length.
        patch.setattr(recording, "LONGEST", 0)
        check_transpose(case.kernel, case.inputs)


@on_random(kernels(("float64", "int32")), quick=15, thorough=30)
def test_kernels_too_complex_to_analyse_have_gradients(case: Case) -> None:
    assume(is_smooth(case.kernel))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "OPERATION_LIMIT", 1)
        check_transpose(case.kernel, case.inputs)


def test_bounds_read_from_data() -> None:
    kernel = parse_kernel(
        """kernel rows(start: int32[4], a: float64[7]) -> (m, p) {
          buffer m: float64[3]
          buffer p: float64[]
          serial i in 0 .. 3 {
            local s: float64[] {
              s[] = 1.0:float64
              serial k in start[i] .. start[i + 1] {
                m[i] = max(m[i], a[k])
                serial l in 0 .. start[1] {
                  s[] = sin(s[] * a[k])
                }
              }
              p[] = p[] + s[]
            }
          }
        }"""
    )
    values = np.random.default_rng(0).uniform(0.5, 1.5, 7)
    reverse = check_transpose(kernel, [np.array([0, 2, 2, 7], "int32"), values])
    assert sum(np.prod(buffer.shape) for buffer in reverse.buffers) < 100


def test_local_that_is_saved_may_run_again_for_another_one() -> None:
    """Insertion: `last` needs the start of `j` only, and the last store needs its end."""
    kernel = parse_kernel(
        """kernel insertion(a: float64[4]) -> (a) {
          local key: float64[] {
            key[] = a[3]
            local j: int32[] {
              j[] = 2
              local last: int32[] {
                last[] = j[]
                serial step in 0 .. (last[] + 1) {
                  if ((j[] >= 0) && (a[j[]] > key[])) {
                    a[j[] + 1] = a[j[]]
                    j[] = j[] - 1
                  }
                }
              }
              a[j[] + 1] = key[]
            }
          }
        }"""
    )
    check_transpose(kernel, [np.array([0.5, 2.0, 3.0, 1.0])])


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_corpus(case: CorpusCase) -> None:
    inputs = corpus_inputs(case)
    kernel = in_float64(specialised(case, case.inputs(np.random.default_rng(0), 5)))
    if not is_smooth(kernel):
        with pytest.raises(ArgumentValueError, match="expected a float result and a float param"):
            adjoint(kernel)
        return
    check_transpose(kernel, inputs)


SECOND_ORDER = (
    "gelu",
    "lu",
    "cholesky",
    "softmax_row",
    "forward_substitution",
    "n_body",
    "gauss_seidel",
)


@pytest.mark.parametrize(
    "name",
    [
        name if name in SECOND_ORDER else pytest.param(name, marks=pytest.mark.slow)
        for name in BY_NAME
    ],
)
def test_adjoints_have_adjoints(name: str) -> None:
    case = BY_NAME[name]
    kernel = in_float64(specialised(case, case.inputs(np.random.default_rng(0), 3)))
    if not is_smooth(kernel):
        pytest.skip("nothing to differentiate")
    reverse = adjoint(kernel)
    cotangents = [np.random.default_rng(1).standard_normal(b.shape) for b in kernel.outputs]
    check_transpose(reverse, [*corpus_inputs(case, 3), *cotangents])


JAX = {
    "softmax_row": lambda x: jax.nn.softmax(x, axis=1),
    "forward_substitution": lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True),
    "cholesky": lambda a: jnp.linalg.cholesky(a, symmetrize_input=False),
    "matmul": lambda a, b: a @ b,
    "cumulative_sum": lambda a: jnp.cumsum(a),
}


@pytest.mark.parametrize("name", JAX)
def test_gradients_are_those_of_jax(name: str) -> None:
    case = BY_NAME[name]
    inputs = corpus_inputs(case)
    kernel = in_float64(specialised(case, case.inputs(np.random.default_rng(0), 5)))
    generator = np.random.default_rng(2)
    (cotangent,) = (generator.standard_normal(b.shape) for b in kernel.outputs)
    if name == "cholesky":
        # What is above the diagonal is no result.
        cotangent = np.tril(cotangent)
    with jax.enable_x64(True):
        _, pull_back = jax.vjp(JAX[name], *inputs)
        expected = [np.asarray(g) for g in pull_back(jnp.asarray(cotangent))]
    if name == "cholesky":
        # JAX spreads the gradient over both triangles; the loops read the lower one.
        expected = [np.tril(expected[0]) + np.tril(expected[0].T, -1)]
    if name == "forward_substitution":
        expected[0] = np.tril(expected[0])
    for got, wanted in zip(interpret(adjoint(kernel), [*inputs, cotangent]), expected, strict=True):
        np.testing.assert_allclose(got, wanted, 1e-9, 1e-9)


POINTS = {"log": 0.7, "log2": 0.7, "log10": 0.7, "sqrt": 0.7, "rsqrt": 0.7, "acosh": 1.7}
UNARY = [name for name, row in FUNCTIONS.items() if row.arity == 1 and not row.to_bool]


@pytest.mark.parametrize("point", [-0.6, 0.4])
@pytest.mark.parametrize("name", [name for name in UNARY if FUNCTIONS[name].domain != "integer"])
def test_slope_of_every_function(name: str, point: float) -> None:
    kernel = parse_kernel(
        f"kernel f(a: float64[]) -> (b) {{ buffer b: float64[] b[] = {name}(a[]) }}"
    )
    point = POINTS.get(name, point)
    (got,) = interpret(adjoint(kernel), [np.array(point), np.array(1.0)])
    np.testing.assert_allclose(got, slope(name, [point], 0), 1e-14)


OPERATIONS = {"mul": "a[] * b[]", "div": "a[] / b[]", "mod": "a[] % b[]", "pow": "pow(a[], b[])",
              "sub": "a[] - b[]", "add": "a[] + b[]", "fmod": "fmod(a[], b[])",
              "atan2": "atan2(a[], b[])", "floordiv": "a[] // b[]"}  # fmt: skip


@pytest.mark.parametrize("point", [(2.3, 0.7), (1.2, -0.8), (3.0, 2.0)])
@pytest.mark.parametrize("name", OPERATIONS)
def test_slopes_of_every_operation(name: str, point: tuple[float, float]) -> None:
    kernel = parse_kernel(
        f"kernel f(a: float64[], b: float64[]) -> (c) {{ buffer c: float64[] c[] = "
        f"{OPERATIONS[name]} }}"
    )
    got = interpret(adjoint(kernel), [*map(np.array, point), np.array(1.0)])
    expected = [slope(name, point, which) for which in (0, 1)]
    np.testing.assert_allclose(got, expected, 1e-14, 1e-15)


def test_every_float_operation_has_a_rule() -> None:
    choices = {"min", "max"}
    operations = {op for op, (_, domain) in BINARY.items() if domain in ("number", "float")}
    operations -= {"eq", "ne", "lt", "le", "gt", "ge"}
    functions = {name for name, row in FUNCTIONS.items() if row.domain != "integer"}
    functions -= {name for name, row in FUNCTIONS.items() if row.to_bool}
    assert operations | functions | {"neg"} == set(RULES) | choices


@pytest.mark.parametrize(
    ("value", "slopes"),
    [("max(a[], b[])", (0.5, 0.5)), ("min(a[], b[])", (0.5, 0.5)), ("abs(a[] - b[])", (1, -1)),
     ("pow(a[] - b[], 0.0:float64)", (0, 0)), ("pow(a[] - b[], 1.0:float64)", (1, -1)),
     ("pow(a[] - b[], 2.0:float64)", (0, 0)),
     ("((a[] > b[]) ? sqrt(a[] - b[]) : a[])", (1, 0)),
     ("sqrt(max(a[] - 1.0:float64, 0.0:float64))", (0, 0))],
)  # fmt: skip
def test_slopes_at_ties_and_edges(value: str, slopes: tuple[float, float]) -> None:
    kernel = parse_kernel(
        f"kernel f(a: float64[], b: float64[]) -> (c) {{ buffer c: float64[] c[] = {value} }}"
    )
    got = interpret(adjoint(kernel), [np.array(0.5), np.array(0.5), np.array(1.0)])
    np.testing.assert_array_equal(got, slopes)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_16_bits_are_kept_in_32(dtype: str) -> None:
    import ml_dtypes

    kernel = parse_kernel(
        f"""kernel f(w: {dtype}[], x: {dtype}[5000]) -> (y) {{
          buffer y: {dtype}[5000]
          serial i in 0 .. 5000 {{
            y[i] = w[] * x[i]
          }}
        }}"""
    )
    narrow = np.float16 if dtype == "float16" else ml_dtypes.bfloat16
    w, x, ones = np.array(2.0, narrow), np.ones(5000, narrow), np.ones(5000, narrow)
    d_w, d_x = interpret(adjoint(kernel), [w, x, ones])
    # Ones summed in 16 bits stop at 2048 or 256.
    assert d_w.dtype == d_x.dtype == narrow
    np.testing.assert_allclose(float(d_w), 5000, 4e-3)
    np.testing.assert_array_equal(d_x.astype("float32"), 2)


def test_result_listed_twice_has_two_cotangents() -> None:
    kernel = parse_kernel(
        "kernel f(a: float64[2]) -> (a, a) { serial i in 0 .. 2 { a[i] = a[i] * a[i] } }"
    )
    reverse = adjoint(kernel)
    assert [b.name for b in reverse.parameters] == ["a", "d_a", "d_a_1"]
    (got,) = interpret(reverse, [np.array([3.0, 5.0]), np.array([1.0, 2.0]), np.array([10.0, 20])])
    np.testing.assert_array_equal(got, [6 * 11, 10 * 22])


def test_integers_have_neither_cotangent_nor_gradient() -> None:
    kernel = parse_kernel(
        """kernel f(n: int32[], a: float64[]) -> (b, c) {
          buffer b: int32[]
          buffer c: float64[]
          b[] = int32(a[])
          c[] = a[] * float64(b[] + n[])
        }"""
    )
    reverse = adjoint(kernel)
    assert [b.name for b in reverse.parameters] == ["n", "a", "d_c"]
    (got,) = interpret(reverse, [np.array(4, "int32"), np.array(2.5), np.array(1.0)])
    assert got == 6


def test_no_float_parameter_is_an_error() -> None:
    kernel = parse_kernel("kernel f(a: float32[2], n: int32[2]) -> (a) { }")
    with pytest.raises(ArgumentValueError) as caught:
        adjoint(kernel, (False, True))
    assert str(caught.value).splitlines() == [
        "the adjoint of kernel 'f': expected a float result and a float parameter whose gradient "
        "is wanted; got () -> (float32).",
        "Ask for gradients of float parameters only.",
    ]


def test_tapes_of_nested_loops_of_short_unknown_lengths_stay_small() -> None:
    kernel = parse_kernel(
        """kernel f(n: uint16[2], a: float64[3]) -> (m) {
          buffer m: float64[3]
          serial i in 0 .. 3 {
            local s: float64[] {
              s[] = 1.0:float64
              serial k in 0 .. int32(n[0]) {
                serial l in 0 .. int32(n[1]) {
                  s[] = sin(s[] * a[i])
                }
              }
              m[i] = s[]
            }
          }
        }"""
    )
    check_transpose(kernel, [np.uint16([2, 3]), np.array([0.5, 1.0, 1.5])])
    arrays = [s.buffer for s in statements(adjoint(kernel).body) if isinstance(s, Local)]
    assert max(size_bytes(array) for array in arrays) <= 8 * 2**16
