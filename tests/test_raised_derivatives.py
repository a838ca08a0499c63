"""Derivatives of raised kernels, and vmap: what JAX makes of them without a bprop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume
from jax.test_util import check_grads
from loop_corpus import BY_NAME, specialised
from loop_ir import Kernel, TooComplex, is_float, kernel_text, parse_kernel, to_raised
from loop_ir import build_jax as build
from loop_strategies import Case as Random
from loop_strategies import kernels
from loop_tangents import tangents
from quick_cases import one_in
from random_examples import on_random

pytestmark = pytest.mark.usefixtures("as_users_compile")


@pytest.fixture(autouse=True)
def x64() -> Any:
    """All dtypes of the IR, without touching JAX's global flag."""
    with jax.enable_x64(True):
        yield


def function_of(text: str) -> Callable[..., Any]:
    """Returns the JAX function of a kernel with one result."""
    function = build(to_raised(parse_kernel(text)))
    return lambda *arrays: function(*arrays)[0]


@on_random(kernels(("float64", "float64", "int32"), smooth=True), quick=3, thorough=200)
def test_derivatives_of_random_kernels(case: Random) -> None:
    kernel, inputs = case.kernel, case.inputs
    floats = [i for i, buffer in enumerate(kernel.parameters) if is_float(buffer.dtype)]
    results = [i for i, buffer in enumerate(kernel.outputs) if is_float(buffer.dtype)]
    assume(floats and results)
    generator = np.random.default_rng(0)
    directions = [generator.standard_normal(buffer.shape) for buffer in kernel.parameters]
    slopes = tangents(kernel, inputs, directions)
    with jax.enable_x64(True):
        try:
            function = build(to_raised(kernel))
        except TooComplex:
            assume(False)

        def smooth(*arrays: Any) -> list[Any]:
            given = dict(zip(floats, arrays, strict=True))
            outputs = function(*(given.get(i, array) for i, array in enumerate(inputs)))
            return [outputs[i] for i in results]

        primals = [jnp.asarray(inputs[i]) for i in floats]
        along = [jnp.asarray(directions[i]) for i in floats]
        # Compiled as a whole: one operation at a time takes ten times as long.
        forward = jax.jit(lambda *at: jax.jvp(smooth, primals, list(at))[1])(*along)
        for i, got in zip(results, forward, strict=True):
            want = slopes[i]
            scale = 1e-10 * (1 + np.max(np.abs(want), initial=0))
            np.testing.assert_allclose(np.asarray(got), want, 0, scale)
        if _has_while(smooth, primals):
            return  # Its trips are data: JAX has no reverse mode for it.
        weights = [jnp.asarray(generator.standard_normal(slope.shape)) for slope in forward]
        gradients = jax.jit(lambda *of: jax.vjp(smooth, *primals)[1](list(of)))(*weights)
        back = sum(jnp.vdot(g, d) for g, d in zip(gradients, along, strict=True))
        ahead = sum(jnp.vdot(w, t) for w, t in zip(weights, forward, strict=True))
        np.testing.assert_allclose(back, ahead, 1e-9, 1e-9)


def _has_while(function: Callable[..., Any], primals: Sequence[Any]) -> bool:
    return "while[" in str(jax.make_jaxpr(function)(*primals))


DIFFERENTIABLE = (
    "gelu", "softmax_row", "layer_norm", "stencil_5", "jacobi", "gauss_seidel", "max_pool_3",
    "running_mean", "convolution_1d", "conv2d_3x3", "matmul", "batched_matmul", "n_body",
    "gather_rows", "scatter_add", "cumulative_sum_rows", "cumulative_product",
    "linear_recurrence", "exponential_average", "lu", "cholesky", "forward_substitution",
    "tridiagonal_solve", "suffix_sum", "row_product",
)  # fmt: skip


def smooth_function(name: str) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """Returns a kernel of the corpus as a function of float64 inputs, and such inputs."""
    case = BY_NAME[name]
    inputs = case.inputs(np.random.default_rng(1), 4)
    wide = [x.astype("float64") if x.dtype == "float32" else x for x in inputs]
    kernel = specialised(case, inputs)
    function = build(to_raised(widened(kernel)))
    positions = [i for i, x in enumerate(wide) if x.dtype == "float64"]

    def smooth(*arrays: Any) -> list[Any]:
        given = dict(zip(positions, arrays, strict=True))
        return function(*(given.get(i, x) for i, x in enumerate(wide)))

    return smooth, [wide[i] for i in positions]


def widened(kernel: Kernel) -> Kernel:
    """Returns the kernel in float64 instead of float32."""
    return parse_kernel(kernel_text(kernel).replace("float32", "float64"))


# A recurrence whose rows depend on one another compiles for long in all modes, and so do nests.
SLOW = (
    *("gauss_seidel", "tridiagonal_solve", "forward_substitution", "cholesky"),
    *("lu", "n_body"),
)
QUICK = one_in(
    3,
    [
        pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name
        for name in DIFFERENTIABLE
    ],
)


@pytest.mark.parametrize("name", QUICK)
def test_derivatives_of_the_corpus(name: str) -> None:
    function, inputs = smooth_function(name)
    check_grads(jax.jit(function), inputs, order=1, modes=["fwd", "rev"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "name",
    [
        "scatter_add",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("linear_recurrence", "gelu", "matmul", "softmax_row", "conv2d_3x3", "lu")
        ),
    ],
)
def test_second_derivatives_of_the_corpus(name: str) -> None:
    function, inputs = smooth_function(name)
    check_grads(jax.jit(function), inputs, order=2, modes=["rev"], rtol=1e-4, atol=1e-4)


# vmap acts on the operations that kernels become: a few kernels meet all kinds of them.
MAPPED = ("gelu", "softmax_row", "matmul", "gather_rows", "scatter_add", "linear_recurrence")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in MAPPED else pytest.mark.slow) for n in DIFFERENTIABLE],
)
def test_vmap_is_a_loop_over_the_kernel(name: str) -> None:
    function, inputs = smooth_function(name)
    batches = [np.stack([x, x * 1.01, x * 0.99]) for x in inputs]
    got = jax.jit(jax.vmap(function))(*batches)
    for i in range(3):
        for whole, one in zip(got, jax.jit(function)(*(b[i] for b in batches)), strict=True):
            np.testing.assert_allclose(whole[i], one, rtol=1e-12, atol=1e-12)


def test_a_guarded_singularity_has_a_finite_derivative() -> None:
    function = function_of("""kernel k(a: float64[4]) -> (c) {
      buffer c: float64[4]
      serial i in 0 .. 4 {
        if (a[i] > 0.0:float64) { c[i] = (sqrt(a[i]) + log(a[i])) + (1.0:float64 / a[i]) }
        c[i] = c[i] + ((a[i] > 1.0:float64) ? a[i] : exp(a[i] * -800.0:float64))
      }
    }""")
    a = jnp.array([-1e3, 0.0, 1.0, 4.0])
    slope = jax.grad(lambda x: function(x).sum())(jnp.maximum(a, 0.0))
    np.testing.assert_allclose(slope[3], 0.25 + 0.25 - 1 / 16 + 1, rtol=1e-12)
    assert np.isfinite(slope).all()


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
def test_a_condition_that_replaces_a_value_is_no_extreme(sign: str) -> None:
    text = f"""kernel f(x: float32[5]) -> (y) {{
  buffer y: float32[5]
  parallel i in 0 .. 5 {{
    local v: float32[] {{
      v[] = x[i]
      if (v[] {sign} 0.0:float32) {{ v[] = 0.0:float32 }}
      y[i] = v[]
    }}
  }}
}}"""
    x = jnp.array([-2.0, -0.0, 0.0, 3.0, np.nan], jnp.float32)
    is_replaced = {"<": x < 0, "<=": x <= 0, ">": x > 0, ">=": x >= 0}[sign]
    f, cotangent = function_of(text), jnp.array([1, 1, 1, 1, np.nan], jnp.float32)
    for given in (f, lambda x: jnp.where(is_replaced, 0.0, x)):
        y, pull = jax.vjp(given, x)
        np.testing.assert_array_equal(y, jnp.where(is_replaced, 0.0, x))
        np.testing.assert_array_equal(pull(cotangent)[0], jnp.where(is_replaced, 0.0, cotangent))


def test_scattered_extremes_share_their_derivative() -> None:
    function = function_of("""kernel k(a: float64[5], at: int32[5]) -> (c) {
      buffer c: float64[2]
      serial i in 0 .. 5 { c[at[i]] = max(c[at[i]], a[i]) }
    }""")
    a, at = jnp.array([3.0, 5.0, 5.0, 1.0, -2.0]), jnp.array([0, 0, 0, 9, 1], "int32")
    np.testing.assert_allclose(function(a, at), [5.0, 0.0])
    slope = jax.grad(lambda x: function(x, at)[0])(a)
    np.testing.assert_allclose(slope, [0, 0.5, 0.5, 0, 0])
    np.testing.assert_allclose(jax.jvp(lambda x: function(x, at), (a,), (a,))[1], [5.0, 0.0])


def test_a_loop_with_a_hull_has_reverse_mode() -> None:
    text = """kernel k(a: float64[6]) -> (c) {
      buffer c: float64[6]
      serial i in 0 .. 6 { serial j in 0 .. i { c[i] = sin(c[i] + a[j]) } }
    }"""
    function = build(parse_kernel(text))
    check_grads(function, [np.linspace(0.1, 1, 6)], order=1, rtol=1e-5, atol=1e-5)


def test_rows_whose_numbers_of_steps_are_data_have_reverse_mode() -> None:
    kernel = parse_kernel("""kernel k(a: float64[4], n: int32[4]) -> (c) {
      buffer c: float64[4]
      serial i in 0 .. 4 {
        serial j in 0 .. min(n[i], 3000) { c[i] = sin(c[i] + (a[i] * float64(j + 1))) }
      }
    }""")
    n = np.int32([3, -1, 0, 9])
    function = build(to_raised(kernel))
    check_grads(lambda a: function(a, n), [np.linspace(0.1, 1, 4)], order=1, rtol=1e-5, atol=1e-5)
