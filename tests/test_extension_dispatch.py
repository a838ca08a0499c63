"""Extensions without a runner: ``ms::DispatchKernel`` under JAX, and operators as C++ functions."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import ROOT

import msops as ms
from msops.errors import ArgumentTypeError, ArgumentValueError, GradientTypeError

X = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
Y = jnp.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]], jnp.float32)


@pytest.fixture(scope="module")
def ops():
    """The module of the script that MindSpore runs, too."""
    source = ROOT / "tests" / "scripts" / "extension_dispatch.cpp"
    return ms.ops.CustomOpBuilder("extension_dispatch", source).load()


def same(ours, theirs):
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


def test_kernels_run_in_programs(ops):
    step = jax.jit(lambda x, y: ops.axpy(x * 2, y, 3.0) - 1)
    for _ in range(2):
        same(step(X, Y), 6 * X + Y - 1)
        same(step(Y, X), 6 * Y + X - 1)
    total, difference = jax.jit(ops.sum_and_difference)(X, Y)
    same(total, X + Y)
    same(difference, X - Y)
    same(jax.jit(lambda x: ops.sum_and_difference(x, None))(X)[1], X - 1)
    same(jax.jit(ops.nested)(Y), 3 * Y)
    assert jax.jit(ops.nested)(jnp.ones((0, 3))).shape == (0, 3)


def test_kernels_run_once_an_element_under_vmap(ops):
    axpy = functools.partial(ops.axpy)
    same(jax.vmap(lambda x, y: axpy(x, y, 2.0))(X, Y), 2 * X + Y)
    same(jax.jit(jax.vmap(lambda x: axpy(x, Y[0], 2.0)))(X), 2 * X + Y[0])


def test_a_tensor_that_is_named_twice_is_updated_in_a_program(ops):
    @ms.jit
    def scaled(x):
        x = x + 0
        ops.scale(x, 3.0, True)
        return x

    x = ms.Tensor(np.asarray(Y))
    same(scaled(x).asnumpy(), 3 * Y)
    same(x.asnumpy(), Y)


def test_a_tensor_is_changed_in_place(ops):
    """MindSpore 2.10.0 does not wait for such a kernel when the Tensor is read."""
    x = ms.Tensor(np.asarray(Y))
    ops.scale(x, 2.0, False)
    same(x.asnumpy(), 2 * Y)
    ops.scale(x, 2.0, True)
    same(x.asnumpy(), 4 * Y)
    same(ops.writes(x).asnumpy(), 4 * Y)
    same(x.asnumpy(), 8 * Y)


def test_a_jax_array_never_changes(ops):
    before = np.array(Y)
    same(ops.writes(Y), before)
    same(Y, before)


def test_a_program_refuses_a_write_to_what_is_only_an_input(ops):
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"only an input. Name the tensor in"):
        jax.block_until_ready(jax.jit(ops.writes)(Y))
    # Nothing is written then: zeros stay zeros.
    same(jax.jit(ops.writes)(jnp.zeros(3)), np.zeros(3))


def test_a_program_needs_the_tensors_named(ops):
    with pytest.raises(RuntimeError, match=r"no tensor is named as an output. Call ms::TensorAll"):
        jax.jit(lambda x: ops.scale(x, 2.0, False))(X)
    with pytest.raises(ArgumentTypeError, match="named by ms::TensorToDevice"):
        jax.jit(ops.unnamed)(X)


def test_it_has_no_gradient_of_its_own(ops):
    with pytest.raises(GradientTypeError, match="has no gradient"):
        jax.grad(lambda x: ops.axpy(x, Y, 2.0).sum())(X)


def test_slices_are_dense(ops):
    x = ms.Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
    for part in (x[1:, ::2], x.T[:2, 1:]):
        expected = part.asnumpy()
        same(ops.axpy(part, part, 1.0).asnumpy(), 2 * expected)


@pytest.mark.parametrize("turn_x", [False, True])
@pytest.mark.parametrize("turn_y", [False, True])
def test_products(ops, turn_x, turn_y):
    x = X.T if turn_x else X
    y = Y if turn_y else Y.T

    def product(x, y):
        return ops.product(x, y, turn_x, turn_y)

    expected = np.asarray(X) @ np.asarray(Y).T
    np.testing.assert_allclose(product(x, y), expected)
    np.testing.assert_allclose(jax.jit(product)(x, y), expected)
    slope = jax.grad(lambda x: (product(x, y) ** 2).sum())(x)
    wanted = 2 * expected @ np.asarray(Y)
    np.testing.assert_allclose(slope, wanted.T if turn_x else wanted)
    batched = jax.vmap(product, (0, None))(jnp.stack([x, x + 1]), y)
    np.testing.assert_allclose(batched[0], expected)


def test_operators_that_do_not_fit_say_so(ops):
    with pytest.raises(ArgumentValueError, match=r"kernel::pyboost::matmul.*of rank 2"):
        ops.product(X[0], Y, False, False)
    with pytest.raises(ArgumentValueError, match=r"kernel::pyboost::matmul"):
        ops.product(X, Y, False, False)
    with pytest.raises(ArgumentValueError, match=r"kernel::pyboost::add"):
        ops.binary("add", X, Y[:, :2])
    with pytest.raises(KeyError, match="nothing"):
        ops.binary("nothing", X, Y)


@pytest.fixture(scope="module")
def operators():
    source = ROOT / "tests" / "extensions" / "dispatched_operators.cpp"
    return ms.ops.CustomOpBuilder("dispatched_operators", source, cflags="-O0").load()


def test_operators_of_aclnn_are_dispatched(operators):
    expected = X * Y + 3 * Y
    same(operators.mul_add(X, Y, 3.0), expected)
    same(jax.jit(lambda x, y: operators.mul_add(x, y, 3.0))(X, Y), expected)
    same(jax.vmap(lambda x: operators.mul_add(x, Y[0], 3.0))(X), X * Y[0] + 3 * Y[0])
    by_tensor = operators.mul_add(ms.Tensor(np.asarray(X)), ms.Tensor(np.asarray(Y)), 3.0)
    assert isinstance(by_tensor, ms.Tensor)
    same(by_tensor.asnumpy(), expected)


def test_dispatched_operators_are_differentiated(operators):
    def total(x, y):
        return (operators.mul_add(x, y, 3.0) ** 2).sum()

    for got, wanted in zip(
        jax.grad(total, (0, 1))(X, Y),
        jax.grad(lambda x, y: ((x * y + 3 * y) ** 2).sum(), (0, 1))(X, Y),
        strict=True,
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
    twice = jax.grad(lambda x: jax.grad(total)(x, Y).sum())(X)
    np.testing.assert_allclose(twice, 2 * Y**2, rtol=1e-6)


@pytest.mark.parametrize("weight", [None, jnp.array([1.0, 2.0, 3.0])])
def test_dispatched_operators_take_absent_tensors_and_lists(operators, weight):
    centred = X - X.mean(1, keepdims=True)
    expected = (
        centred / jnp.sqrt(X.var(1, keepdims=True) + 1e-5) * (1 if weight is None else weight)
    )
    for norm in (operators.norm, jax.jit(operators.norm)):
        out, mean = norm(X, weight)
        np.testing.assert_allclose(out, expected, rtol=1e-5)
        np.testing.assert_allclose(mean, X.mean(1, keepdims=True), rtol=1e-6)


def test_a_dispatched_operator_changes_a_tensor_in_place(operators):
    x = ms.Tensor(np.asarray(X))
    operators.add_to(x, ms.Tensor(np.asarray(Y)))
    same(x.asnumpy(), X + Y)


def test_operators_and_kernels_follow_each_other(operators):
    same(operators.square_twice(X), X**4)
    same(jax.jit(operators.square_twice)(X), X**4)


def test_an_operator_uses_up_the_names_before_it(operators):
    same(operators.forgets(X), X)
    with pytest.raises(ArgumentTypeError, match="named by ms::TensorToDevice"):
        jax.jit(operators.forgets)(X)


def test_what_an_operator_refuses_is_said(operators):
    with pytest.raises(ms.errors.InferenceValueError, match="aclnnMul"):
        operators.wrong_shape(X)
    with pytest.raises(ArgumentValueError, match="aclnnMulOfNothing"):
        operators.unknown(X)
