"""`akg.differentiate` inside a kernel gives the gradients that JAX gives."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from msops import Custom
from msops.errors import ArgumentValueError, BuildError

# Names that kernels see.
# ruff: noqa: F821

RNG = np.random.default_rng(3)
X = RNG.uniform(-2, 2, (3, 4)).astype(np.float32)
Y = RNG.uniform(0.5, 2, (3, 4)).astype(np.float32)
HEAD = RNG.uniform(-1, 1, (3, 4)).astype(np.float32)


def everywhere(func: Callable[..., Any], *arrays: Any) -> list[np.ndarray]:
    """Returns the results of a kernel, which are the same in each form."""
    forms = [
        Custom(func, func_type="akg", compile_attrs={"lower": form})(*arrays)
        for form in ("xla", "native")
    ]
    one, other = ([np.asarray(part) for part in jax.tree.leaves(form)] for form in forms)
    for left, right in zip(one, other, strict=True):
        np.testing.assert_allclose(left, right, 1e-5, 1e-6)
    return one


def check(kernel: Callable[..., Any], reference: Callable[..., Any], *arrays: Any) -> None:
    """Compares a kernel of a head and inputs with JAX's gradients of a function of the inputs."""
    head, *inputs = arrays
    wanted = jax.vjp(reference, *inputs)[1](jnp.asarray(head))
    for got, want in zip(everywhere(kernel, *arrays), wanted, strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-5)


def test_a_chain_with_a_branch(caplog: pytest.LogCaptureFixture) -> None:
    def kernel(head, x, y):
        product = topi.multiply(x, y)
        out = topi.add(topi.exp(topi.nn.relu(product)), topi.divide(product, y))
        return list(akg.differentiate(out, [x, y], head))

    with caplog.at_level(logging.WARNING):
        check(kernel, lambda x, y: jnp.exp(jax.nn.relu(x * y)) + x * y / y, HEAD, X, Y)
    assert not caplog.records


def test_reductions_and_products() -> None:
    def kernel(head, x, w):
        k = tvm.reduce_axis((0, 4), "k")
        out = tvm.compute((3, 2), lambda i, j: tvm.sum(x(i, k) * w(k, j), axis=k))
        out = topi.nn.softmax(out)
        return list(akg.differentiate(out, [x, w], head))

    check(kernel, lambda x, w: jax.nn.softmax(x @ w), HEAD[:, :2], X, Y.T[:, :2])


def test_a_script_and_statements_are_differentiated() -> None:
    def kernel(head, x):
        @tvm.hybrid.script
        def running(a):
            sums = output_tensor(a.shape, a.dtype)
            for i in range(a.shape[0]):
                sums[i] = a[i] * a[i]
                if i > 0:
                    sums[i] = sums[i] + sums[i - 1]
            return sums

        return akg.differentiate(running(topi.sin(x)), [x], head)[0]

    check(kernel, lambda x: jnp.cumsum(jnp.sin(x) ** 2), HEAD[0], X[0])


def test_a_linear_operation_needs_no_value_of_its_input() -> None:
    def kernel(head):
        x = tvm.placeholder((3, 4), "float32", "x")
        return akg.differentiate(topi.sum(x, axis=1), [x], head)[0]

    (got,) = everywhere(kernel, HEAD[:, 0])
    np.testing.assert_array_equal(got, np.repeat(HEAD[:, :1], 4, 1))

    def square(head):
        x = tvm.placeholder((3, 4), "float32", "x")
        return akg.differentiate(topi.multiply(x, x), [x], head)[0]

    with pytest.raises(ArgumentValueError, match="'x': it is not an input of the kernel"):
        Custom(square, func_type="akg")(HEAD)


def test_without_a_head_it_is_the_jacobian() -> None:
    def kernel(x, w):
        return list(akg.differentiate(topi.matmul(x, w), [x, w]))

    wanted = jax.jacobian(jnp.matmul, (0, 1))(X, Y.T)
    for got, want in zip(everywhere(kernel, X, Y.T), wanted, strict=True):
        np.testing.assert_allclose(got, want, 1e-6)


def test_heads_with_dimensions_in_front() -> None:
    def kernel(heads, x):
        return akg.differentiate(topi.tanh(x), [x], heads)[0]

    heads = RNG.uniform(-1, 1, (2, 5, 3, 4)).astype(np.float32)
    np.testing.assert_allclose(
        everywhere(kernel, heads, X)[0], heads * (1 - np.tanh(X) ** 2), 1e-4, 1e-6
    )


def test_adjoints_between_and_without_inputs() -> None:
    def kernel(head, x):
        middle = topi.multiply(x, 3.0)
        return akg.differentiate(topi.exp(middle), None, head).adjoints[middle]

    (got,) = everywhere(kernel, HEAD, X)
    np.testing.assert_allclose(got, HEAD * np.exp(3 * X), 1e-5)


def test_a_tensor_has_its_own_derivative() -> None:
    def kernel(head, x):
        middle = topi.multiply(x, 3.0)
        rounded = topi.round(middle)

        def straight_through(out, dependencies, head, attrs, extra):
            return [topi.multiply(head, attrs["gain"])]

        found = akg.differentiate(
            topi.multiply(rounded, x),
            [x],
            head,
            {"gain": 2.0},
            None,
            override={rounded: ([middle], straight_through)},
        )
        return found[0]

    (got,) = everywhere(kernel, HEAD, X)
    np.testing.assert_allclose(got, HEAD * np.round(3 * X) + HEAD * X * 2 * 3, 1e-5)


def test_registered_variables() -> None:
    def kernel(x):
        akg.register_variables("doubled", [x], topi.multiply(x, 2.0))
        output, inputs = akg.get_variables("doubled")
        return topi.add(output, inputs[0])

    np.testing.assert_array_equal(everywhere(kernel, X)[0], 3 * X)

    def missing(x):
        tvm.const(1)
        return akg.get_variables("nowhere")[0]

    with pytest.raises(BuildError, match="nothing is registered as 'nowhere'"):
        Custom(missing, func_type="akg")(X)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda akg, out, x, head: akg.differentiate(out, [x], topi.sum(head, axis=0)), "a head"),
        (lambda akg, out, x, head: akg.differentiate(out, [head], head), "is not made from"),
        (lambda akg, out, x, head: akg.differentiate(out, [x], head, fdiff=print), "'fdiff'"),
    ],
)
def test_what_is_refused(call: Callable[..., Any], problem: str) -> None:
    def kernel(head, x):
        return call(akg, topi.exp(x), x, head)[0]

    with pytest.raises(ArgumentValueError, match=problem):
        Custom(kernel, func_type="akg")(HEAD, X)
