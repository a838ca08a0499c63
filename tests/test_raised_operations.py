"""Operations of raised kernels, on the values where they are easily wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from loop_ir import (
    BINARY,
    FLOATS,
    FUNCTIONS,
    INTEGERS,
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    FunctionCall,
    Kernel,
    Load,
    Store,
    Var,
    as_dtype,
    interpret,
    is_float,
    parse_kernel,
    raise_kernel,
    result_dtype,
    steps_text,
    to_raised,
    verify,
)
from loop_ir import build_jax as build
from quick_cases import one_in

pytestmark = pytest.mark.usefixtures("as_users_compile")

DOMAINS = {"number": (*INTEGERS, *FLOATS), "integer": INTEGERS, "float": FLOATS, "bool": ("bool",)}


@pytest.fixture(autouse=True)
def x64() -> Any:
    """All dtypes of the IR, without touching JAX's global flag."""
    with jax.enable_x64(True):
        yield


def run(kernel: Kernel, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns what a kernel computes as one compiled JAX function."""
    return [np.asarray(array) for array in jax.jit(build(kernel))(*inputs)]


def edge_values(dtype: str) -> np.ndarray:
    """Returns values at the limits of a dtype and around 0."""
    kind = as_dtype(dtype).dtype
    if dtype == "bool":
        return np.array([False, True])
    if is_float(dtype):
        values = [0, -0.0, 0.5, -0.5, 1, -1, 1.5, 2.5, -2.5, 3, -7, 100, np.inf, -np.inf, np.nan]
        return np.array(values, kind)
    info = np.iinfo(kind)
    around = [0, 1, 2, 3, 7, 33, info.max, info.max - 1, info.min, info.min + 1]
    return np.array([*around, *([-1, -2, -7] if info.min else [])], kind)


def elementwise_kernel(values: Sequence[Expr], dtype: str, count: int) -> Kernel:
    """Returns a kernel that stores each value, for every element of inputs x and y."""
    x, y = (Buffer(name, (count,), dtype) for name in "xy")
    outputs = tuple(Buffer(f"c{n}", (count,), value.dtype) for n, value in enumerate(values))
    stores = tuple(
        Store(output.name, (Var("i"),), value)
        for output, value in zip(outputs, values, strict=True)
    )
    loop = For("i", Const(0, "int32"), Const(count, "int32"), stores)
    return Kernel("ops", (x, y), tuple(output.name for output in outputs), outputs, (loop,))


def operations_of(dtype: str) -> list[Expr]:
    """Returns every operation, function and cast on elements of x and y."""
    x, y = (Load(name, (Var("i"),), dtype) for name in "xy")
    found: list[Expr] = [
        Binary(op, x, y, result_dtype(op, dtype))  # type: ignore[arg-type]
        for op, (_, domain) in BINARY.items()
        if dtype in DOMAINS[domain] or (dtype == "bool" and op in ("eq", "ne", "and", "or", "xor"))
    ]
    for name, function in FUNCTIONS.items():
        if dtype in DOMAINS[function.domain]:
            result = "bool" if function.to_bool else dtype
            found.append(FunctionCall(name, (x, y)[: function.arity], result))
    return found + [Cast(x, other) for other in (*FLOATS, *INTEGERS, "bool") if other != dtype]


# Signed and unsigned, of the width of JAX and of another, and one that XLA computes wider.
FAST = ("bool", "uint8", "int64", "float32")


@pytest.mark.parametrize(
    "dtype",
    one_in(
        2,
        [
            pytest.param(name, marks=() if name in FAST else pytest.mark.slow)
            for name in ("bool", *INTEGERS, *FLOATS)
        ],
    ),
)
def test_operations_at_the_limits_of_dtypes(dtype: str) -> None:
    edge = edge_values(dtype)
    x, y = (grid.ravel() for grid in np.meshgrid(edge, edge))
    values = operations_of(dtype)
    kernel = elementwise_kernel(values, dtype, x.size)
    verify(kernel)
    for value, want, got in zip(
        values, interpret(kernel, [x, y]), run(to_raised(kernel), [x, y]), strict=True
    ):
        name = getattr(value, "op", getattr(value, "function", f"to {value.dtype}"))
        if not is_float(value.dtype):
            np.testing.assert_array_equal(got, want, name)
        else:
            eps = float(jnp.finfo(value.dtype).eps)
            wide = [array.astype("float64") for array in (got, want)]
            np.testing.assert_allclose(*wide, rtol=16 * eps, atol=eps, err_msg=name)


@pytest.mark.parametrize(
    "value",
    [
        "(c[j, i - 1] * b[j]) + b[j]",
        "b[j] - (c[j, i - 1] * b[j])",
        "b[j] + (b[j] * (-(c[j, i - 1])))",
        "-((c[j, i - 1] / b[j]) - b[j])",
        "(b[j] * (c[j, i - 1] * b[j])) / b[j]",
        "(c[j, i - 1] * 0.0:float32) - b[j]",
        "c[j, i - 1] - (b[j] - c[j, i - 1])",
        "(c[j, i - 1] - b[j]) * b[j]",
        "1.0:float32 - ((b[(j + i) % 225] - c[j, i - 1]) / b[j])",
        "(c[j, i - 1] + 3.0:float32) * 0.5:float32",
    ],
)
def test_linear_recurrences_at_the_limits_of_floats(value: str) -> None:
    values = edge_values("float32")
    pairs = np.array(np.meshgrid(values, values)).reshape(2, -1)
    kernel = parse_kernel(f"""kernel recurrence(a: float32[225], b: float32[225]) -> (c) {{
      buffer c: float32[225, 9]
      parallel k in 0 .. 225 {{ c[k, 0] = a[k] }}
      parallel j in 0 .. 225 {{ serial i in 1 .. 9 {{ c[j, i] = {value} }} }}
    }}""")
    raised = to_raised(kernel)
    assert "linear recurrence" in steps_text(raise_kernel(raised))
    with np.errstate(all="ignore"):
        (want,) = interpret(kernel, list(pairs))
    np.testing.assert_allclose(run(raised, list(pairs))[0], want, rtol=1e-5)


def test_terms_of_recurrences_that_cancel_lose_no_digits() -> None:
    kernel = parse_kernel("""kernel recurrence(a: float32[9], b: float32[9]) -> (c) {
      buffer c: float32[9]
      c[0] = a[0]
      serial i in 1 .. 9 { c[i] = (c[i - 1] - a[i]) * b[i] }
    }""")
    raised = to_raised(kernel)
    assert "linear recurrence" in steps_text(raise_kernel(raised))
    want = np.float32([1e6, -1, 1, -1, 1, -1, 1, -1, 1])
    inputs = [np.float32([1e6] + [-7e5, 7e5] * 4), np.full(9, np.float32(1 / 3))]
    inputs[0][1:] = want[:-1] - want[1:] * 3
    np.testing.assert_allclose(run(raised, inputs)[0], interpret(kernel, inputs)[0], rtol=1e-6)


EXACT = (
    *("x + y", "x - y", "x * y", "x / y", "x // y", "x % y", "min(x, y)", "max(x, y)"),
    *("sqrt(x)", "floor(x)", "ceil(x)", "trunc(x)", "nearbyint(x)", "abs(x)"),
)
"""What IEEE 754 or the language defines to the last bit."""


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_is_defined_to_the_last_bit_has_these_bits(dtype: str) -> None:
    kind = as_dtype(dtype).dtype
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(2, 4000)) * 10 ** rng.uniform(-3, 3, (2, 4000))
    names = [f"r{n}" for n in range(len(EXACT))]
    # In parentheses, as the text of the IR wants them.
    values = [value if "(" in value else f"({value})" for value in EXACT]
    values = [re.sub(r"\b([xy])\b", r"\1[i]", value) for value in values]
    lines = [
        *(f"buffer {name}: {dtype}[4000]" for name in names),
        "parallel i in 0 .. 4000 {",
        *(f"{name}[i] = {value}" for name, value in zip(names, values, strict=True)),
        "}",
    ]
    head = f"kernel k(x: {dtype}[4000], y: {dtype}[4000]) -> ({', '.join(names)})"
    kernel = parse_kernel("\n".join([head + " {", *lines, "}"]))
    inputs = [*numbers.astype(kind)]
    got = run(to_raised(kernel), inputs)
    for value, one, want in zip(EXACT, got, interpret(kernel, inputs), strict=True):
        tiny = float(ml_dtypes.finfo(kind).tiny)
        is_normal = np.abs(want.astype("float64")) >= tiny  # XLA takes smaller numbers for 0.
        np.testing.assert_array_equal(one[is_normal], want[is_normal], value)


def test_whole_powers_of_narrow_floats_are_rounded_once() -> None:
    kernel = parse_kernel("""kernel k(x: bfloat16[999]) -> (y) {
      buffer y: bfloat16[999]
      parallel i in 0 .. 999 { y[i] = pow(x[i], 3.0:bfloat16) }
    }""")
    x = np.random.default_rng(0).normal(size=999).astype(as_dtype("bfloat16").dtype)
    (got,) = run(to_raised(kernel), [x])
    np.testing.assert_array_equal(got, (x.astype("float64") ** 3).astype(x.dtype))
