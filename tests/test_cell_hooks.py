"""Hooks of Cells in both modes, under JAX's transformations, and when they change."""

from __future__ import annotations

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import msops as ms
from msops import nn

X = np.array([1.0, 2.0], np.float32)


class Weighted(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(ms.Tensor([2.0, 4.0]), name="w")

    def construct(self, x):
        return x * self.w


class Outer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inner = Weighted()

    def construct(self, x):
        return 3 * self.inner(x)


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def mode(request):
    """Runs a test in both execution modes."""
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


def add_hooks(cell):
    """Adds a hook of each kind; they change values, so that a lost one is seen."""
    return [
        cell.register_forward_pre_hook(lambda cell, args: args[0] + 1),
        cell.register_forward_hook(lambda cell, args, out: out * 10),
        cell.register_backward_pre_hook(lambda cell, grads: grads[0] + 1),
        cell.register_backward_hook(lambda cell, grads, _: grads[0] * 100),
    ]


def test_hooks_change_values_and_gradients(mode):
    net, x = Outer(), ms.Tensor(X)
    gradient = ms.value_and_grad(net, 0, net.trainable_params())
    assert net(x).asnumpy().tolist() == [6.0, 24.0]
    gradient(x)
    handles = add_hooks(net.inner)
    assert net(x).asnumpy().tolist() == [120.0, 360.0]
    value, (by_input, (by_weight,)) = gradient(x)
    assert value.asnumpy().tolist() == [120.0, 360.0]
    # The gradient of the result is 3; 4 arrives, of ten times x + 1 by w.
    assert by_input.asnumpy().tolist() == [8000.0, 16000.0]
    assert by_weight.asnumpy().tolist() == [80.0, 120.0]
    for handle in handles:
        handle.remove()
    assert net(x).asnumpy().tolist() == [6.0, 24.0]
    assert gradient(x)[1][0].asnumpy().tolist() == [6.0, 12.0]


def test_hooks_under_the_transformations_of_jax():
    net = Outer()
    add_hooks(net.inner)

    def loss(x):
        return net(ms.Tensor(x)).value.sum()

    expected = [8000.0, 16000.0]
    assert jax.jit(jax.grad(loss))(X).tolist() == expected
    assert jax.grad(jax.jit(loss))(X).tolist() == expected
    assert jax.vmap(jax.grad(loss))(jnp.stack([X, X])).tolist() == [expected, expected]
    assert jax.grad(jax.checkpoint(loss))(X).tolist() == expected


def test_arrays_pass_hooks_as_arrays():
    class Square(nn.Cell):
        def construct(self, x):
            return x * x

    seen = []
    net = Square()
    net.register_backward_hook(lambda cell, *grads: seen.append(grads))
    assert jax.grad(lambda x: net(x).sum())(X).tolist() == [2.0, 4.0]
    assert all(isinstance(grad, jax.Array) for pair in seen for (grad,) in pair)


def test_a_copy_of_a_cell_has_its_hooks():
    net = Weighted()
    handle = net.register_forward_hook(_plus_one)
    twins = [copy.deepcopy(net), pickle.loads(pickle.dumps(net))]
    handle.remove()
    assert net(ms.Tensor(X)).asnumpy().tolist() == [2.0, 8.0]
    for twin in twins:
        assert twin(ms.Tensor(X)).asnumpy().tolist() == [3.0, 9.0]


def _plus_one(cell, args, out):
    return out + 1


def test_a_hook_that_fails_after_construct_warns():
    class Fails(nn.Cell):
        def construct(self, x):
            raise KeyError("construct")

    def fails(cell, args, out):
        raise ValueError("hook")

    net = Fails()
    net.register_forward_hook(fails, always_call=True)
    with (
        pytest.warns(UserWarning, match="so did a forward hook with always_call: hook"),
        pytest.raises(KeyError, match="construct"),
    ):
        net(ms.Tensor(X))
