"""Tensor.register_hook: a function that a gradient passes through."""

from __future__ import annotations

import numpy as np
import pytest
from extension_modules import extension

import msops as ms
from msops.errors import ArgumentTypeError, GradientTypeError, GradientValueError


@pytest.fixture(params=["PYNATIVE_MODE", "GRAPH_MODE"])
def mode(request):
    ms.set_context(mode=getattr(ms, request.param))
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


def test_a_hook_inside_sees_the_gradient_from_there_on(mode):
    seen = []

    def function(x):
        y = x * x
        before = y * 3
        y.register_hook(lambda dy: seen.append(dy.shape) or dy * 10)
        return before + y * 5

    # d(3 x^2) is not hooked, d(5 x^2) is.
    gradient = ms.grad(function)(ms.Tensor([2.0, 3.0]))
    np.testing.assert_allclose(gradient.asnumpy(), [(6 + 100) * 2.0, (6 + 100) * 3.0])
    assert set(seen) == {(2,)}


def test_hooks_apply_in_order_and_none_leaves_the_gradient():
    def function(x):
        y = x * 1
        y.register_hook(lambda dy: dy + 1)
        y.register_hook(lambda dy: dy * 2)
        y.register_hook(lambda dy: None)
        return y

    # MindSpore 2.7.2 answers the same.
    assert ms.grad(function)(ms.Tensor(1.0)) == 4.0


def test_a_hook_on_a_parameter(mode):
    class Net(ms.nn.Cell):
        def __init__(self):
            super().__init__()
            self.p = ms.Parameter(ms.Tensor([1.0, 2.0]), name="p")

        def construct(self, x):
            return self.p * x

    net = Net()
    handle = net.p.register_hook(lambda dp: dp * 10)
    x = ms.Tensor([3.0, 4.0])
    _, (dx, (dp,)) = ms.value_and_grad(net, 0, net.trainable_params())(x)
    np.testing.assert_allclose(dp.asnumpy(), [30.0, 40.0])
    np.testing.assert_allclose(dx.asnumpy(), [1.0, 2.0])
    handle.remove()
    if mode == "PYNATIVE_MODE":
        dp = ms.grad(net, None, net.p)(x)
        np.testing.assert_allclose(dp.asnumpy(), [3.0, 4.0])


def test_a_hook_on_an_argument():
    x = ms.Tensor([1.0, 2.0])
    x.register_hook(lambda dx: -dx)
    np.testing.assert_allclose(ms.grad(lambda x: x * x)(x).asnumpy(), [-2.0, -4.0])
    x.register_hook(lambda dx: dx + 1)
    np.testing.assert_allclose(ms.grad(lambda x: x * x)(x).asnumpy(), [-1.0, -3.0])


@pytest.mark.slow
def test_a_hook_on_what_a_module_of_c_returns():
    ops = extension("functions")

    def function(x):
        y = ops.exp(x)
        y.register_hook(lambda dy: dy * 2)
        return y

    x = ms.Tensor([0.5])
    np.testing.assert_allclose(ms.grad(function)(x).asnumpy(), 2 * np.exp([0.5]), rtol=1e-6)


def test_what_cannot_be_hooked():
    with pytest.raises(ArgumentTypeError, match="expected a callable hook; got int"):
        ms.Tensor(1.0).register_hook(3)
    with pytest.raises(ArgumentTypeError, match="expected a Tensor of floats; got Int64"):
        ms.Tensor(1).register_hook(lambda dx: dx)


@pytest.mark.parametrize(
    ("hook", "kind"),
    [
        (lambda dy: dy[:2], GradientValueError),
        (lambda dy: dy.sum(), GradientValueError),
        (lambda dy: 2.0, GradientTypeError),
        (lambda dy: (dy,), GradientTypeError),
        (lambda dy: np.ones(3, np.float32), GradientTypeError),
    ],
)
def test_what_a_hook_may_not_return(hook, kind):
    def function(x):
        y = x * 2
        y.register_hook(hook)
        return y

    with pytest.raises(kind, match="expected"):
        ms.grad(function)(ms.Tensor([1.0, 2.0, 3.0]))
