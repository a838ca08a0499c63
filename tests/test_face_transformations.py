"""MindSpore's transformations on both faces and in both modes, beside those of JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import msops as ms
from msops.common._grad_function import _Function
from msops.errors import ArgumentTypeError, ArgumentValueError, GradientTypeError

X = jnp.array([0.5, -1.5, 2.0], jnp.float32)
Y = jnp.array([3.0, 0.25, -1.0], jnp.float32)


def pair(x, y):
    return x * x * y, x + y


# The call on MindSpore's face, and JAX's.
CASES = {
    "vmap": (
        lambda x, y: ms.vmap(pair, (0, None))(x, y),
        lambda x, y: jax.vmap(pair, (0, None))(x, y),
    ),
    "jvp": (
        lambda x, y: ms.jvp(pair, (x, y), (y, x)),
        lambda x, y: jax.jvp(pair, (x, y), (y, x)),
    ),
    "vjp": (
        lambda x, y: ms.vjp(pair, x, y)[1](y, x),
        lambda x, y: jax.vjp(pair, x, y)[1]((y, x)),
    ),
    "jacrev": (lambda x, y: ms.jacrev(pair, (0, 1))(x, y), jax.jacrev(pair, (0, 1))),
    "jacfwd": (lambda x, y: ms.jacfwd(pair, (0, 1))(x, y), jax.jacfwd(pair, (0, 1))),
    "recompute": (
        lambda x, y: ms.recompute(pair, x, y, use_reentrant=False),
        jax.checkpoint(pair),
    ),
}


def is_tensor(leaf):
    return isinstance(leaf, ms.Tensor)


@pytest.mark.parametrize("name", CASES)
def test_arrays_and_tensors_are_transformed_as_by_jax(name):
    ours, theirs = CASES[name]
    expected = theirs(X, Y)
    for answer in (ours(X, Y), jax.jit(ours)(X, Y)):
        jax.tree.map(np.testing.assert_array_equal, answer, expected)
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        try:
            answer = ours(ms.Tensor(X), ms.Tensor(Y))
            compiled = ms.jit(ours)(ms.Tensor(X), ms.Tensor(Y))
        finally:
            ms.set_context(mode=ms.PYNATIVE_MODE)
        for tree in (answer, compiled):
            leaves = jax.tree.leaves(tree, is_leaf=is_tensor)
            assert all(map(is_tensor, leaves))
            wanted = jax.tree.leaves(expected)
            for leaf, array in zip(leaves, wanted, strict=True):
                np.testing.assert_allclose(leaf.asnumpy(), array, rtol=1e-6)


def test_64_bit_tensors_keep_their_width():
    x = ms.Tensor([1.0, 2.0], ms.float64)
    for name, (ours, _) in CASES.items():
        leaves = jax.tree.leaves(ours(x, x), is_leaf=is_tensor)
        assert {str(leaf.dtype) for leaf in leaves} == {"Float64"}, name


def test_recompute_saves_its_inputs_alone():
    class Sines(ms.nn.Cell):
        def construct(self, x):
            for _ in range(5):
                x = ms.ops.sin(x)
            return x

    net = Sines()

    def kept(function):
        return len(jax.tree.leaves(jax.vjp(lambda x: function(ms.Tensor(x)).value, X)[1]))

    assert kept(lambda x: ms.recompute(net, x)) < kept(net)


def test_recompute_returns_what_was_assigned_to_parameters():
    class Counts(ms.nn.Cell):
        def __init__(self):
            super().__init__()
            self.count = ms.Parameter(ms.Tensor(0.0))

        def construct(self, x):
            self.count += 1
            return x * self.count

    net = Counts()
    x = ms.Tensor([2.0])
    assert ms.grad(lambda x: ms.recompute(net, x))(x).asnumpy() == [1.0]
    assert net.count.asnumpy() == 1.0


def test_vmap_refuses_a_function_that_assigns():
    weight = ms.Parameter(ms.Tensor(0.0))

    def assigns(x):
        weight.set_data(x)
        return x

    with pytest.raises(ArgumentValueError, match="assigns to a Parameter"):
        ms.vmap(assigns)(ms.Tensor([1.0, 2.0]))
    assert weight.asnumpy() == 0.0


def test_an_error_of_the_function_passes_vmap_as_it_is():
    def fails(x):
        raise ValueError("here")

    with pytest.raises(ValueError, match=r"^here\n"):
        ms.vmap(fails)(ms.Tensor([1.0, 2.0]))


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_gradients_take_their_cotangent_by_keyword(mode):
    ms.set_context(mode=mode)
    try:
        x = ms.Tensor([1.0, 2.0])
        gradient = ms.grad(lambda x: x * x, sens_param=True, return_ids=True)
        position, value = gradient(x, sens=ms.Tensor([1.0, 10.0]))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert position == 0
    assert value.asnumpy().tolist() == [2.0, 40.0]


def test_forward_mode_of_an_operator_with_a_bprop_alone():
    op = ms.Custom(
        np.sin, lambda x: x, lambda x: x, bprop=lambda x, out, dout: (jnp.cos(x) * dout,)
    )
    value, slope, aux = ms.jvp(lambda x: (op(x), x), X, Y, has_aux=True)
    np.testing.assert_allclose(slope, jnp.cos(X) * Y, rtol=1e-6)
    np.testing.assert_allclose(ms.jacfwd(op)(X), jnp.diag(jnp.cos(X)), rtol=1e-6)
    assert value.shape == aux.shape == X.shape
    without = ms.Custom(np.sin, lambda x: x, lambda x: x)
    with pytest.raises(GradientTypeError, match="it is being differentiated, and has no bprop"):
        ms.jvp(without, X, Y)


class Cube(_Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, dout):
        return 3 * ctx.saved_tensors[0] ** 2 * dout


def hooked_cube(x):
    y = x**3
    y.register_hook(lambda dy: None)
    return y


@pytest.mark.parametrize("function", [Cube.apply, hooked_cube])
def test_forward_mode_of_a_function_with_a_backward_alone(function):
    x = ms.Tensor(X)
    value, derivative = ms.jvp(function, x, ms.Tensor(2 * X))
    np.testing.assert_allclose(value.asnumpy(), X**3, rtol=1e-6)
    np.testing.assert_allclose(derivative.asnumpy(), 6 * X**3, rtol=1e-6)
    np.testing.assert_allclose(ms.jacfwd(function)(x).asnumpy(), np.diag(3 * X**2), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda f, x: ms.jvp(f, x, x[:2]), ArgumentValueError),
        (lambda f, x: ms.jvp(f, x, x.astype(ms.float16)), ArgumentTypeError),
        (lambda f, x: ms.jvp(f, ms.Tensor([1, 2]), ms.Tensor([1, 2])), GradientTypeError),
        (lambda f, x: ms.jacrev(f)(ms.Tensor([1, 2])), GradientTypeError),
        (lambda f, x: ms.jacfwd(f)(ms.Tensor([1, 2])), GradientTypeError),
        (lambda f, x: ms.jacrev(f, ())(x), ArgumentValueError),
    ],
)
def test_what_has_no_derivative(call, kind):
    with pytest.raises(kind, match="expected"):
        call(lambda x: x * x, ms.Tensor(X))
