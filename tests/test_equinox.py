"""Ops as users of equinox meet them: in modules, and under its filtered transformations."""

from __future__ import annotations

from typing import Any

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from custom_ops import aot, loops

import msops
from msops.errors import BuildError


def scale(x, by):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821
    for i in range(x.shape[0]):
        y[i] = x[i] * by[0]
    return y


def multiply_bprop(x: Any, y: Any, out: Any, dout: Any) -> tuple[Any, Any]:
    return dout * y, dout * x


OPS = {
    "aot": lambda: aot("Multiply", bprop=multiply_bprop),
    "pyfunc": lambda: msops.Custom(
        np.multiply, lambda x, y: x, lambda x, y: x, bprop=multiply_bprop
    ),
    "native_loops": lambda: loops(scale, "native"),
    "raised_loops": lambda: loops(scale, "xla"),
}


class Layer(equinox.Module):
    """A layer that holds its op beside its weights."""

    weight: jax.Array
    op: msops.Custom

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.op(x, self.weight)


@pytest.mark.parametrize("make", OPS.values(), ids=OPS)
def test_a_module_that_holds_an_op_is_differentiated_and_mapped(make: Any) -> None:
    layer = Layer(jnp.full(3, 2.0), make())
    x = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)

    @equinox.filter_jit
    @equinox.filter_value_and_grad
    def loss(layer: Layer, x: jax.Array) -> jax.Array:
        return (equinox.filter_vmap(layer)(x) ** 2).sum()

    value, gradient = loss(layer, x)
    expected, by_weight = jax.value_and_grad(lambda w: ((x * w) ** 2).sum())(layer.weight)
    np.testing.assert_allclose(value, expected)
    np.testing.assert_allclose(gradient.weight.sum(), by_weight.sum(), rtol=1e-6)


@pytest.mark.parametrize("form", ["native", "xla"])
def test_an_input_without_dimensions_is_refused_by_the_rank_that_the_kernel_expects(
    form: str,
) -> None:
    layer = Layer(jnp.full(3, 2.0), loops(scale, form))
    number, numbers = jnp.float32(1), jnp.ones(2)
    for call, x in [
        (layer, number),
        (equinox.filter_jit(layer), number),
        (equinox.filter_vmap(layer), numbers),
        (equinox.filter_grad(lambda x: layer(x).sum()), number),
    ]:
        with pytest.raises(BuildError, match="expects 'x' of rank 1 or more"):
            call(x)
