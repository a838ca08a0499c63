"""Inputs of loop kernels that are constants of a program: the values of the kernel stay its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import msops
from msops.lang import abs, output_tensor

pytestmark = pytest.mark.usefixtures("as_users_compile")


def rewritable(x, y):
    out = output_tensor((4, x.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        out[0, i] = (x[i] + y[i]) - y[i]
        out[1, i] = x[i] + y[i]
        out[2, i] = 1.0 if abs(x[i]) >= y[i] else 0.0
        out[3, i] = (x[i] * y[i]) * y[i]
    return out


X = np.float32([1e-9, -0.0, np.nan, 3e38])
NUMBERS = (0.0, 1.0, 0.1, 3e38)


def wanted(number: float) -> np.ndarray:
    y = np.full(4, number, np.float32)
    with np.errstate(all="ignore"):
        return np.stack([X + y - y, X + y, np.float32(np.abs(X) >= y), X * y * y])


def of_numpy(op: Any, x: Any, number: float) -> Any:
    return op(x, np.full(4, number, np.float32))


def of_jax(op: Any, x: Any, number: float) -> Any:
    return op(x, jnp.full(4, number, jnp.float32))


def computed(op: Any, x: Any, number: float) -> Any:
    return op(x, jnp.arange(4, dtype=jnp.float32) * 0 + np.float32(number))


def through_a_function(op: Any, x: Any, number: float) -> Any:
    return jax.jit(op)(x, jnp.full(4, number, jnp.float32))


def in_a_loop(op: Any, x: Any, number: float) -> Any:
    y = jnp.full(4, number, jnp.float32)
    return jax.lax.scan(lambda carry, _: (carry, op(x, y)), 0, length=3)[1][2]


def in_a_branch(op: Any, x: Any, number: float) -> Any:
    y = jnp.full(4, number, jnp.float32)
    return jax.lax.cond(x[0] < 1, lambda: op(x, y), lambda: op(y, x))


def in_a_batch(op: Any, x: Any, number: float) -> Any:
    y = jnp.full(4, number, jnp.float32)
    return jax.vmap(op, in_axes=(0, None))(jnp.stack([x, x]), y)[1]


def beside_a_gradient(op: Any, x: Any, number: float) -> Any:
    return jax.vjp(lambda x: op(x, jnp.full(4, number, jnp.float32)), x)[0]


WAYS = (
    of_numpy,
    of_jax,
    computed,
    through_a_function,
    in_a_loop,
    in_a_branch,
    in_a_batch,
    beside_a_gradient,
)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("lower", ["xla", "native"])
def test_a_constant_of_the_program_is_an_input_as_any(
    lower: str, way: Callable[..., Any], number: float
) -> None:
    op = msops.Custom(rewritable, func_type="akg", compile_attrs={"lower": lower})
    got = np.asarray(jax.jit(lambda x: way(op, x, number))(X))
    want = wanted(number)
    np.testing.assert_array_equal(got, want)
    # The sign of a NaN is nobody's.
    np.testing.assert_array_equal(np.signbit(got)[want == 0], np.signbit(want)[want == 0])


def test_the_derivative_knows_no_constant_either() -> None:
    def scaled(x, y):
        out = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            out[i] = (x[i] * y[i]) * y[i]
        return out

    op = msops.Custom(scaled, func_type="akg", compile_attrs={"lower": "xla"})
    x, y, tangent = np.float32([[3.0, 3.0], [1e30, 1e30], [1e-30, 2e-30]])
    program = jax.jit(lambda x, t: jax.jvp(lambda x: op(x, jnp.asarray(y)), (x,), (t,))[1])
    # With y * y, which is infinite, they were infinite.
    np.testing.assert_array_equal(np.asarray(program(x, tangent)), tangent * y * y)


def test_what_is_computed_from_data_stays_open_to_fusion() -> None:
    """As XLA looks no further than a barrier."""
    op = msops.Custom(rewritable, func_type="akg", compile_attrs={"lower": "xla"})

    def barriers(function: Callable[..., Any]) -> int:
        return jax.jit(function).lower(X, X).as_text().count("optimization_barrier")

    assert barriers(op) == 0
    assert barriers(lambda x, y: op(x * 2, jnp.sin(y) + jnp.ones(4))) == 0
    assert barriers(lambda x, y: op(x * 2, jnp.ones(4))) == 1
