"""Forward and reverse mode of loop kernels within each other, in any order.

The rows of a sparse matrix are ranges over data: as JAX code a loop that JAX cannot transpose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import msops
from msops.lang import output_tensor

ROWS = 30
LENGTHS = np.arange(ROWS) * 7 % 5
STARTS = np.concatenate([[0], np.cumsum(LENGTHS)]).astype(np.int32)
COLUMNS = (np.arange(STARTS[-1]) * 11 % ROWS).astype(np.int32)
Function = Callable[[Any, Any], Any]


@pytest.fixture(autouse=True)
def x64() -> Any:
    """Float64, without touching JAX's global flag."""
    with jax.enable_x64(True):
        yield


@msops.kernel
def squares_of_rows(starts, columns, values, x):
    y = output_tensor((starts.shape[0] - 1,), x.dtype)
    for i in range(y.shape[0]):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * x[columns[k]] * x[columns[k]]
        y[i] = total
    return y


def ours(values: Any, x: Any) -> Any:
    return squares_of_rows(STARTS, COLUMNS, values, x)


def twin(values: Any, x: Any) -> Any:
    rows = np.repeat(np.arange(ROWS), LENGTHS)
    return jax.ops.segment_sum(values * x[COLUMNS] ** 2, rows, ROWS)


def pushed(function: Function, scale: float = 1.0) -> Function:
    """Returns the derivative along a direction."""

    def derivative(values: Any, x: Any) -> Any:
        directions = scale * jnp.cos(values), scale * jnp.sin(x)
        fixed = jax.lax.stop_gradient(directions)
        return jax.jvp(function, (values, x), fixed)[1]

    return derivative


def loss(function: Function) -> Function:
    return lambda values, x: function(values, x) @ jnp.linspace(-1.0, 2.0, ROWS)


def of_scales(function: Function) -> Function:
    """Returns the gradients of derivatives along several directions."""

    def gradient(values: Any, x: Any) -> Any:
        def one(scale: Any) -> Any:
            return jax.grad(loss(pushed(function, scale)), 1)(values, x)

        return jax.vmap(one)(jnp.arange(3.0))

    return gradient


def along_the_direction(function: Function) -> Function:
    """Returns the gradient in the direction of a derivative, which is linear in it."""

    def gradient(values: Any, x: Any) -> Any:
        def derivative(direction: Any) -> Any:
            return jax.jvp(lambda x: loss(function)(values, x), (x,), (direction,))[1]

        return jax.grad(derivative)(jnp.ones_like(x))

    return gradient


NESTED: dict[str, Callable[[Function], Function]] = {
    "reverse over forward": lambda f: jax.grad(loss(pushed(f)), (0, 1)),
    "forward over reverse": lambda f: pushed(jax.grad(loss(f), 1)),
    "reverse over forward over forward": lambda f: jax.grad(loss(pushed(pushed(f))), (0, 1)),
    "reverse over reverse over forward": lambda f: jax.jacrev(jax.grad(loss(pushed(f))), (0, 1)),
    "forward over reverse over forward": lambda f: pushed(jax.grad(loss(pushed(f)), 1)),
    "jacrev of jacfwd": lambda f: jax.jacrev(jax.jacfwd(loss(f), (0, 1)), (0, 1)),
    "jacfwd of jacrev": lambda f: jax.jacfwd(jax.jacrev(loss(f), (0, 1)), (0, 1)),
    "jacrev of a batch": lambda f: jax.jacrev(of_scales(f)),
    "in the direction": along_the_direction,
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", NESTED)
def test_nested_derivatives_are_those_of_jax_numpy(name: str, compiled: bool) -> None:
    nested = NESTED[name]
    given = jnp.linspace(-1.0, 3.0, STARTS[-1]), jnp.linspace(2.0, -1.0, ROWS)
    derivative = jax.jit(nested(ours)) if compiled else nested(ours)
    got, expected = derivative(*given), nested(twin)(*given)
    assert any(np.any(np.asarray(leaf)) for leaf in jax.tree.leaves(expected))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-12, 1e-12), got, expected)
