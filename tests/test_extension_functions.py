"""Functions of extension modules: Forward and Backward in C++ under every transformation of JAX."""

from __future__ import annotations

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from extension_modules import extension
from jax.test_util import check_grads

import msops as ms
from msops.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    GradientRuntimeError,
    GradientTypeError,
)

X = jnp.array([0.5, -1.5, 2.0], jnp.float32)
Y = jnp.array([3.0, 0.25, -1.0], jnp.float32)


@pytest.fixture(scope="module")
def ops():
    return extension("functions")


# C++ function, twin, arguments that are differentiated.
CASES = {
    "mul": (lambda m: m.mul, lambda x, y: x * y, (X, Y)),
    "exp": (lambda m: m.exp, jnp.exp, (X,)),
    "scaled": (lambda m: m.scaled, lambda x: 3 * x * jnp.abs(x), (X,)),
    "pair": (lambda m: m.pair, lambda x, y: [x + y, x * y], (X, Y)),
    "inplace": (lambda m: m.inplace_mul, lambda x, y: x * y, (X, Y)),
}


@pytest.fixture(params=CASES)
def case(request, ops):
    """A function of C++, the same in jax.numpy, and arguments."""
    pick, twin, arguments = CASES[request.param]
    return pick(ops), twin, arguments


def loss(function):
    """Returns a scalar function in which every output has a cotangent of its own."""

    def total(*args):
        leaves = jax.tree.leaves(function(*args))
        return sum((leaf * (i + 1.5) * jnp.arange(1.0, 4.0)).sum() for i, leaf in enumerate(leaves))

    return total


def assert_same(ours, theirs):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), ours, theirs)


def all_positions(arguments):
    return tuple(range(len(arguments)))


def test_eager_and_jit(case):
    function, twin, arguments = case
    assert_same(function(*arguments), twin(*arguments))
    assert_same(jax.jit(function)(*arguments), twin(*arguments))


def test_grad_and_jit_of_grad(case):
    function, twin, arguments = case
    positions = all_positions(arguments)
    expected = jax.grad(loss(twin), positions)(*arguments)
    assert_same(jax.grad(loss(function), positions)(*arguments), expected)
    assert_same(jax.jit(jax.grad(loss(function), positions))(*arguments), expected)
    assert_same(jax.grad(jax.jit(loss(function)), positions)(*arguments), expected)


def test_vmap_and_vmap_of_grad(case):
    function, twin, arguments = case
    batch = [jnp.stack([a, a + 1, -a]) for a in arguments]
    assert_same(jax.vmap(function)(*batch), jax.vmap(twin)(*batch))
    ours, theirs = (jax.grad(loss(f), all_positions(arguments)) for f in (function, twin))
    assert_same(jax.jit(jax.vmap(ours))(*batch), jax.vmap(theirs)(*batch))
    axes = (1,) + (None,) * (len(batch) - 1)
    given = (batch[0], *arguments[1:])
    assert_same(jax.vmap(function, axes)(*given), jax.vmap(twin, axes)(*given))


def test_gradients_agree_with_finite_differences(ops):
    with jax.enable_x64(True):
        x, y = X.astype(jnp.float64), Y.astype(jnp.float64)
        check_grads(ops.mul, (x, y), order=1, modes=["rev"])
        check_grads(ops.exp, (x,), order=1, modes=["rev"])


@pytest.mark.parametrize("compile", [lambda f: f, jax.jit])
def test_second_derivatives(ops, compile):
    def hessian(function):
        return jax.grad(lambda x: jax.grad(loss(function))(x, Y).sum())

    assert_same(compile(hessian(lambda x, y: ops.mul(ops.mul(x, y), x)))(X), 2 * Y * 1.5 * W)
    assert_same(
        compile(jax.grad(lambda x: jax.grad(lambda x: ops.exp(x).sum())(x).sum()))(X), np.exp(X)
    )


W = np.arange(1.0, 4.0, dtype=np.float32)


def test_second_derivative_through_a_tensor_that_forward_made_is_refused(ops):
    with pytest.raises(GradientTypeError, match="depends on a tensor that Forward made and saved"):
        jax.grad(lambda x: jax.grad(lambda x: ops.scaled(x).sum())(x).sum())(X)


def test_under_scan_and_checkpoint(ops):
    def total(x, multiply):
        def step(carry, y):
            return multiply(carry, y), carry

        last, seen = jax.lax.scan(jax.checkpoint(step), x, jnp.stack([Y, X]))
        return (last + seen.sum(0)).sum()

    expected = jax.grad(total)(X, jnp.multiply)
    assert_same(jax.grad(lambda x: total(x, ops.mul))(X), expected)


def test_backward_is_asked_only_for_what_is_differentiated(ops):
    for positions, bits in (((0,), 1), ((1,), 2), ((0, 1), 3)):
        jax.grad(lambda x, y: ops.mul(x, y).sum(), positions)(X, Y)
        assert ops.asked() == bits
        jax.jit(jax.grad(lambda x, y: ops.mul(x, y).sum(), positions))(X, Y)
        assert ops.asked() == bits


def test_an_integer_argument_is_not_differentiated(ops):
    # exp(x) of an int is refused by aclnn's dtypes, so it never reaches Backward.
    x = jnp.arange(3)
    gradient = jax.grad(lambda f: (ops.mul(x, x) * f).sum())(1.0)
    assert gradient == 5.0


def test_gradients_are_materialized_as_asked(ops):
    # Only the second output is used, so the first has no gradient.
    expected = jax.grad(lambda x, y: (x * y).sum(), (0, 1))(X, Y)
    for materialize in (True, False):
        ours = jax.grad(lambda x, y: ops.pair(x, y, materialize)[1].sum(), (0, 1))  # noqa: B023
        assert_same(ours(X, Y), expected)


def test_an_output_marked_non_differentiable_has_no_gradient(ops):
    ours = jax.grad(lambda x, y: sum(ops.pair(x, y, constant=True)).sum(), (0, 1))
    assert_same(ours(X, Y), (jnp.ones(3), jnp.ones(3)))
    assert_same(sum(ops.pair(X, Y, constant=True)), X + Y + X * Y)


def test_an_input_that_is_returned(ops):
    # Its Backward squares the gradient, so it is seen to be called, or not.
    assert_same(jax.grad(lambda x: (3 * ops.same(x, False)).sum())(X), 9 * jnp.ones(3))
    assert_same(jax.grad(lambda x: (3 * ops.same(x, True)).sum())(X), jnp.zeros(3))
    assert_same(ops.same(X, True), X)


def test_lists_and_optionals_are_not_differentiated(ops):
    def total(x, y, last):
        return ops.listed(x, [y, y], last).sum()

    assert_same(ops.listed(X, [Y, Y], None), X + 2 * Y)
    assert_same(ops.listed(X, [], Y), X + Y)
    ours = jax.jit(jax.grad(total, (0, 1, 2)))(X, Y, X)
    assert_same(ours, (jnp.ones(3), jnp.zeros(3), jnp.zeros(3)))


def test_in_place_changes_reach_tensors_and_leave_arrays(ops):
    x = jnp.array(X)
    assert_same(ops.inplace_mul(x, Y), X * Y)
    assert_same(x, X)
    t = ms.Tensor(np.asarray(X))
    assert ops.inplace_mul(t, ms.Tensor(np.asarray(Y))) is t
    assert_same(t.asnumpy(), X * Y)

    def twice(x, y):
        t = ms.Tensor(x)
        ops.inplace_mul(t, y)
        ops.inplace_mul(t, y)
        return t.value

    assert_same(jax.jit(twice)(X, Y), X * Y * Y)
    expected = jax.grad(lambda x, y: (x * y * y).sum(), (0, 1))(X, Y)
    assert_same(jax.grad(lambda x, y: twice(x, y).sum(), (0, 1))(X, Y), expected)


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_a_cell_has_gradients_of_inputs_and_of_parameters(ops, mode):
    class Scaled(ms.nn.Cell):
        def __init__(self):
            super().__init__()
            self.scale = ms.Parameter(ms.Tensor(2.0, ms.float32), name="scale")

        def construct(self, x, y):
            return ops.mul(ops.mul(x, y), self.scale)

    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        cell = Scaled()
        both = ms.value_and_grad(cell, (0, 1), cell.trainable_params())
        out, (inputs, weights) = both(ms.Tensor(2.0, ms.float32), ms.Tensor(3.0, ms.float32))
    finally:
        ms.set_context(mode=before)
    assert out.asnumpy() == 12
    assert [gradient.asnumpy() for gradient in (*inputs, *weights)] == [6, 4, 6]


def test_an_in_place_change_of_a_leaf_is_refused(ops):
    y = ms.Tensor(np.asarray(Y))
    x = ms.Tensor(np.asarray(X))
    with pytest.raises(GradientRuntimeError, match="leaf tensor that needs a gradient"):
        ms.grad(lambda x: ops.inplace_mul(x, y))(x)
    p = ms.Parameter(x, name="p")
    with pytest.raises(GradientRuntimeError, match="leaf tensor that needs a gradient"):
        ms.grad(lambda y: ops.inplace_mul(p, y), None, [p])(y)
    # What is computed from a leaf may be changed, and so may what is not differentiated.
    assert_same(ms.grad(lambda x: ops.inplace_mul(x + 0, y))(x).asnumpy(), Y)
    assert_same(ms.grad(lambda x, y: ops.inplace_mul(x, y), 1)(x, y).asnumpy(), X)


def test_an_unmarked_in_place_change_is_refused(ops):
    with pytest.raises(ArgumentTypeError, match="changed tensor argument 0 in place"):
        jax.jit(lambda x, y: ops.inplace_mul(x, y, mark=False))(X, Y)


@pytest.mark.parametrize(
    ("what", "kind", "text"),
    [
        (
            1,
            GradientRuntimeError,
            r"Wrong\]: returned an incorrect number of gradients \(expected 2, got 1\)",
        ),
        (
            2,
            GradientRuntimeError,
            "returned a gradient at position 1, where the argument of Forward is no",
        ),
        (
            3,
            GradientRuntimeError,
            r"expected for argument 0 a gradient of shape \(3,\).*got shape \(7,\)",
        ),
        (4, IndexError, "tensor index out of range: 1 of 1"),
    ],
)
def test_a_wrong_backward_is_explained(ops, what, kind, text):
    with pytest.raises(kind, match=text):
        jax.grad(lambda x: ops.wrong(x, what)[0].sum())(X)


@pytest.mark.parametrize(
    ("what", "kind", "text"),
    [
        (0, RuntimeError, "The output list must not be empty"),
        (5, RuntimeError, "given to MarkDirty is not an output"),
        (6, ValueError, "refused 6"),
    ],
)
def test_a_wrong_forward_is_explained(ops, what, kind, text):
    with pytest.raises(kind, match=text):
        ops.wrong(X, what)
    with pytest.raises(kind, match=text):
        jax.jit(lambda x: ops.wrong(x, what))(X)


def test_arguments_that_are_no_tensors_are_refused(ops):
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ops.mul(X, "y")
    with pytest.raises(TypeError, match="a tensor argument is None"):
        ops.mul(X, None)


def test_several_threads_trace_and_run(ops):
    compiled = jax.jit(jax.grad(lambda x, y: ops.mul(ops.exp(x), y).sum(), (0, 1)))
    failures = []

    def work(seed):
        try:
            x = X + seed
            gradient = jax.grad(lambda x: ops.scaled(x).sum())
            for _ in range(5):
                assert_same(compiled(x, Y), (jnp.exp(x) * Y, jnp.exp(x)))
                assert_same(jax.jit(gradient)(x), 6 * jnp.abs(x))
                t = ms.Tensor(np.asarray(x))
                ops.inplace_mul(t, t)
                assert_same(t.asnumpy(), x * x)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_64_bit_arrays_need_the_flag_or_tensors(ops):
    wide = np.array([1.0, 2.0])
    with pytest.raises(TypeError, match="64-bit types are off"):
        ops.mul(wide, wide)
    result = ops.mul(ms.Tensor(wide), ms.Tensor(wide))
    assert result.dtype == ms.float64


def test_an_operator_that_is_unknown_lists_near_names():
    ops = extension("tensors", "Ascend")
    with pytest.raises(ArgumentValueError, match="aclnnMul"):
        ops.launch("aclnnMull", [X, Y])
