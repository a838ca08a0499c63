"""Derivatives where there is none: at ties, kinks and poles they are those of jax.numpy.

Every operation is differentiated at all pairs of its edges, by raised loops and by adjoint loops,
and compared with what jax.grad makes of the same function of jax.numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from loop_ir import Kernel, adjoint, interpret, parse_kernel, to_raised
from loop_ir import build_jax as build
from loop_native import build_together, call, prepared, printed
from quick_cases import in_turn, one_in

pytestmark = pytest.mark.usefixtures("as_users_compile")


@pytest.fixture(autouse=True)
def x64() -> Any:
    """Float64, without touching JAX's global flag."""
    with jax.enable_x64(True):
        yield


OPERATIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "max": ("max(a[i], b[i])", jnp.maximum),
    "min": ("min(a[i], b[i])", jnp.minimum),
    "clip": ("min(max(a[i], -1.0:DTYPE), b[i])", lambda a, b: jnp.minimum(jnp.maximum(a, -1), b)),
    "abs": ("abs(a[i]) * b[i]", lambda a, b: jnp.abs(a) * b),
    "power": ("pow(a[i], b[i])", jnp.power),
    "power 0": ("pow(a[i], 0.0:DTYPE) * b[i]", lambda a, b: a**0 * b),
    "power 1": ("pow(a[i], 1.0:DTYPE) * b[i]", lambda a, b: a**1 * b),
    "power 3": ("pow(a[i], 3.0:DTYPE) * b[i]", lambda a, b: a**3 * b),
    "power -1": ("pow(a[i], -1.0:DTYPE) * b[i]", lambda a, b: a**-1 * b),
    "power 1/2": ("pow(a[i], 0.5:DTYPE) * b[i]", lambda a, b: jnp.power(a, 0.5) * b),
    "power 3/2": ("pow(a[i], 1.5:DTYPE) * b[i]", lambda a, b: jnp.power(a, 1.5) * b),
    "sqrt": ("sqrt(a[i]) * b[i]", lambda a, b: jnp.sqrt(a) * b),
    "rsqrt": ("rsqrt(a[i]) * b[i]", lambda a, b: jax.lax.rsqrt(a) * b),
    "log": ("log(a[i]) * b[i]", lambda a, b: jnp.log(a) * b),
    "atan2": ("atan2(a[i], b[i])", jnp.arctan2),
    "divide": ("a[i] / b[i]", jnp.divide),
    "floor divide": ("a[i] // b[i]", jnp.floor_divide),
    "remainder": ("a[i] % b[i]", jnp.remainder),
    "floor": ("floor(a[i]) * b[i]", lambda a, b: jnp.floor(a) * b),
    "sign": ("sign(a[i]) * b[i]", lambda a, b: jnp.sign(a) * b),
}
"""An expression of the loop IR, and the same of jax.numpy."""

EDGES = (-2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0)
FAR = (-np.inf, np.inf, np.nan)
DTYPES = [
    "float32",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("bfloat16", "float64")),
]


def kernel_of(name: str, dtype: str, size: int) -> Kernel:
    value = OPERATIONS[name][0].replace("DTYPE", dtype)
    return parse_kernel(
        f"""kernel f(a: {dtype}[{size}], b: {dtype}[{size}]) -> (c) {{
          buffer c: {dtype}[{size}]
          serial i in 0 .. {size} {{ c[i] = {value} }}
        }}"""
    )


def points(name: str, dtype: str) -> list[np.ndarray]:
    """Returns all pairs of edges, as two arrays."""
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    far = FAR if name in ("max", "min", "clip", "abs", "remainder") else ()
    first = EDGES if name == "remainder" else (*EDGES, *far)  # The remainder of infinity is NaN.
    pairs = np.array([(a, b) for a in first for b in (*EDGES, *far)], kind)
    # As many for all, so that JAX compiles what it runs for one shape.
    return [np.resize(column, (len(EDGES) + len(FAR)) ** 2) for column in pairs.T]


def slopes(function: Callable[..., Any], primals: Sequence[Any]) -> list[np.ndarray]:
    """Returns the slope by each argument of a function of elements."""
    _, pull_back = jax.vjp(function, *map(jnp.asarray, primals))
    return [np.asarray(g) for g in pull_back(jnp.ones_like(primals[0]))]


def raised(kernel: Kernel) -> Callable[..., Any]:
    function = build(to_raised(kernel))
    return lambda *arrays: function(*arrays)[0]


def assert_same(got: Sequence[Any], expected: Sequence[Any], what: str) -> None:
    for have, want in zip(got, expected, strict=True):
        eps = float(ml_dtypes.finfo(want.dtype).eps)
        wide = [np.asarray(x).astype("float64") for x in (have, want)]
        np.testing.assert_allclose(*wide, rtol=4 * eps, atol=4 * eps, err_msg=what)


@pytest.mark.parametrize("dtype", DTYPES)
def test_slopes_are_those_of_jax_numpy(dtype: str, tmp_path: Path) -> None:
    given, adjoints = {}, {}
    for name in OPERATIONS:
        given[name] = points(name, dtype)
        kernel = kernel_of(name, dtype, len(given[name][0]))
        adjoints[name] = adjoint(kernel)
        expected = slopes(OPERATIONS[name][1], given[name])
        assert_same(slopes(raised(kernel), given[name]), expected, f"{name}, raised, reverse")
        for which in (0, 1):
            along = [jnp.full_like(x, float(i == which)) for i, x in enumerate(given[name])]
            if name == "power":
                continue  # 0 in one direction times infinity in the other, in jax.numpy as here.
            pushed = jax.jvp(raised(kernel), [*map(jnp.asarray, given[name])], along)[1]
            wanted = jax.jvp(OPERATIONS[name][1], [*map(jnp.asarray, given[name])], along)[1]
            assert_same([pushed], [wanted], f"{name}, raised, forward")
        with np.errstate(all="ignore"):
            got = interpret(adjoints[name], [*given[name], np.ones_like(given[name][0])])
        assert_same(got, expected, f"{name}, adjoint loops")
    ready = [prepared(kernel) for kernel in adjoints.values()]
    sources = [printed(kernel, number) for number, kernel in enumerate(ready)]
    library = build_together(tmp_path, sources)
    for name, kernel, source in zip(adjoints, ready, sources, strict=True):
        got = call(library, kernel, source, [*given[name], np.ones_like(given[name][0])])
        assert_same(got, slopes(OPERATIONS[name][1], given[name]), f"{name}, C")


@pytest.mark.parametrize(("which", "name"), one_in(3, in_turn([0, 1], OPERATIONS)))
def test_second_slopes_are_those_of_jax_numpy(name: str, which: int) -> None:
    given = points(name, "float64")
    kernel = kernel_of(name, "float64", len(given[0]))
    ones = np.ones_like(given[0])

    def second(function: Callable[..., Any]) -> list[np.ndarray]:
        return slopes(lambda *at: jax.vjp(function, *at)[1](ones)[which], given)

    expected = second(OPERATIONS[name][1])
    assert_same(second(raised(kernel)), expected, "raised")
    once = adjoint(kernel, (which == 0, which == 1))
    with np.errstate(all="ignore"):
        *got, _ = interpret(adjoint(once), [*given, ones, ones])
    assert_same(got, expected, "adjoint loops")


def test_the_slope_of_a_remainder_is_that_of_its_value() -> None:
    # 1.0 / 0.1 is rounded up to 10, but 0.1 is in 1.0 nine times: 1.0 % 0.1 is nearly 0.1.
    a, b = np.array([1.0, -1.0, 0.3]), np.array([0.1, 0.1, 0.1])
    kernel = kernel_of("remainder", "float64", 3)
    step = 1e-9
    expected = (np.remainder(a, b + step) - np.remainder(a, b)) / step
    np.testing.assert_allclose(slopes(raised(kernel), [a, b])[1], expected, 1e-5)
    np.testing.assert_allclose(interpret(adjoint(kernel), [a, b, np.ones(3)])[1], expected, 1e-5)
