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

from msops import ops
from msops.lang import output_tensor

pytestmark = pytest.mark.usefixtures("as_users_compile")


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


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.nan, -np.nan, np.inf, -np.inf])


def zero_rule(op: str, a: Any, b: Any) -> Any:
    """Returns numpy's extremes, but for its zeros: -0 is less than 0."""
    extreme, joined = {
        "max": (np.maximum, np.logical_and), "min": (np.minimum, np.logical_or)
    }[op]  # fmt: skip
    signed = np.where(joined(np.signbit(a), np.signbit(b)), -0.0, 0.0)
    return np.where((a == 0) & (b == 0), signed, extreme(a, b))


def assert_same_with_zeros(got: Any, want: Any) -> None:
    got = np.asarray(got).astype("f8")
    np.testing.assert_array_equal(got, want)
    is_number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[is_number], np.signbit(want)[is_number])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_zeros_beside_a_constant(dtype: str, tmp_path: Path) -> None:
    x = np.resize(SPECIAL, 64).astype(jnp.dtype(dtype))
    wide = x.astype("f8")
    stores: list[str] = []
    wanted: list[np.ndarray] = []
    for op in ("max", "min"):
        for constant in (0.0, -0.0, 1.0):
            number = f"{constant}:{dtype}"
            for pair in (f"x[i], {number}", f"{number}, x[i]"):
                stores.append(f"y[{len(stores)}, i] = {op}({pair})")
                wanted.append(zero_rule(op, wide, constant))
    kernel = parse_kernel(f"""kernel k(x: {dtype}[64]) -> (y) {{
      buffer y: {dtype}[{len(stores)}, 64]
      parallel i in 0 .. 64 {{ {" ".join(stores)} }}
    }}""")
    arranged = prepared(kernel)
    source = printed(arranged, 0)
    (in_c,) = call(build_together(tmp_path, [source]), arranged, source, [x])
    for result in (in_c, *interpret(kernel, [x]), jax.jit(raised(kernel))(x)):
        assert_same_with_zeros(result, np.stack(wanted))


def both(a: Any, b: Any) -> Any:
    high = output_tensor(a.shape, a.dtype)
    low = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        high[i] = max(a[i], b[i])
        low[i] = min(a[i], b[i])
    return high, low


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("loop", ["parallel", "serial"])
def test_zeros_of_two_variables(loop: str, dtype: str, tmp_path: Path) -> None:
    a, b = (np.ravel(x) for x in np.meshgrid(SPECIAL, SPECIAL))
    wanted = zero_rule("max", a, b), zero_rule("min", a, b)
    a, b = a.astype(jnp.dtype(dtype)), b.astype(jnp.dtype(dtype))
    kernel = parse_kernel(f"""kernel k(a: {dtype}[64], b: {dtype}[64]) -> (high, low) {{
      buffer high: {dtype}[64]
      buffer low: {dtype}[64]
      {loop} i in 0 .. 64 {{ high[i] = max(a[i], b[i]) low[i] = min(a[i], b[i]) }}
    }}""")
    arranged = prepared(kernel)
    source = printed(arranged, 0)
    in_c = call(build_together(tmp_path, [source]), arranged, source, [a, b])
    in_python = ops.kernel(both)(a, b) if dtype.startswith("float") else ()
    in_xla = jax.jit(build(to_raised(kernel)))(a, b)
    for results in (in_c, in_python, in_xla, interpret(kernel, [a, b])):
        for result, want in zip(results, wanted, strict=bool(results)):
            assert_same_with_zeros(result, want)
