"""Minima and maxima of equal elements and of NaN, in every form that a reduction becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loop_ir import Kernel, adjoint, interpret, kernel_text, parse_kernel, to_raised
from loop_ir import build_jax as build
from loop_native import build_together, call, prepared, printed
from quick_cases import in_turn


@pytest.fixture(autouse=True)
def x64() -> Any:
    """Float64, without touching JAX's global flag."""
    with jax.enable_x64(True):
        yield


EXTREMES = {
    "reduction": "serial j in 0 .. SIZE { c[0] = OP(c[0], a[j]) }",
    "conditional": "serial j in 0 .. SIZE { if (a[j] SIGN c[0]) { c[0] = a[j] } }",
    "windows": "serial i in 0 .. 4 { c[i] = a[i] serial k in 1 .. 3 "
    "{ c[i] = OP(c[i], a[i + k]) } }",
    "cumulative": "serial i in 0 .. 4 { c[i] = OP(((i > 0) ? c[i - 1] : a[0]), a[i]) }",
    "indirect": "serial j in 0 .. SIZE { c[j % 2] = OP(c[j % 2], a[j]) }",
}
"""Into c, which is 0 at the start."""


def kernel_of(name: str, op: str, size: int = 6) -> Kernel:
    text = EXTREMES[name].replace("OP", op).replace("SIGN", ">" if op == "max" else "<")
    text = text.replace("SIZE", str(size))
    return parse_kernel(f"kernel f(a: float64[{size}]) -> (c) {{ buffer c: float64[4] {text} }}")


def raised(kernel: Kernel) -> Any:
    function = build(to_raised(kernel))
    return lambda *arrays: function(*arrays)[0]


@pytest.mark.parametrize(("name", "op"), in_turn(EXTREMES, ["max", "min"]))
def test_equal_extremes_share_their_slope(name: str, op: str) -> None:
    kernel = kernel_of(name, op)
    a = (1 if op == "max" else -1) * np.array([1.0, 3.0, 3.0, 2.0, 3.0, 3.0])
    (values,) = interpret(kernel, [a])
    for element in np.flatnonzero(values):
        seed = np.eye(4)[element]
        pulled = jax.vjp(raised(kernel), jnp.asarray(a))[1](jnp.asarray(seed))
        for (slope,) in (pulled, interpret(adjoint(kernel), [a, seed])):
            shares = np.asarray(slope)
            np.testing.assert_allclose(shares.sum(), 1.0, err_msg=f"element {element}")
            assert (shares >= 0).all()
            assert not shares[a != values[element]].any()


@pytest.mark.parametrize("op", ["max", "min"])
def test_nan_is_the_extreme_of_what_it_is_among(op: str, tmp_path: Path) -> None:
    kernels = [kernel_of(name, op, size) for name in EXTREMES for size in (6, 100)]
    ready = [prepared(kernel) for kernel in kernels]
    sources = [printed(kernel, number) for number, kernel in enumerate(ready)]
    library = build_together(tmp_path, sources)
    for kernel, prepared_kernel, source in zip(kernels, ready, sources, strict=True):
        for place in (0, 2, 3):
            a = np.linspace(-1, 1, *kernel.parameters[0].shape)
            a[place] = np.nan
            (expected,) = interpret(kernel, [a])
            is_replaced = "if (" in kernel_text(kernel)  # By what is greater, which NaN is not.
            assert np.isnan(expected).any() != is_replaced
            np.testing.assert_array_equal(raised(kernel)(a), expected, source.text)
            (got,) = call(library, prepared_kernel, source, [a])
            np.testing.assert_array_equal(got, expected, source.text)
