"""`_Function` under the transformations of JAX, and of MindSpore."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import msops as ms
from msops.common._grad_function import _Function
from msops.errors import ArgumentTypeError, GradientTypeError

X = jnp.array([0.5, -1.5, 2.0], jnp.float32)
Y = jnp.array([3.0, 0.25, -1.0], jnp.float32)


class Product(_Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, dout):
        x, y = ctx.saved_tensors
        return Product.apply(y, dout), Product.apply(x, dout)


class Exp(_Function):
    @staticmethod
    def forward(ctx, x):
        ctx.result = jnp.exp(getattr(x, "value", x))
        return ms.ops.exp(x)

    @staticmethod
    def backward(ctx, dout):
        return ms.ops.mul(dout, ctx.result)


class Cube(_Function):
    """One output is saved, one attribute is an input, one a number."""

    @staticmethod
    def forward(x, power=3):
        return x**power, x + power

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.x, ctx.power = inputs
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx, d_cube, d_sum):
        x = ctx.saved_tensors[0] - ctx.power
        return ctx.power * ctx.x * x * d_cube + d_sum, None


CASES = {
    "product": (Product.apply, lambda x, y: x * y, (X, Y)),
    "cube": (Cube.apply, lambda x: (x**3, x + 3), (X,)),
}


@pytest.fixture(params=CASES)
def case(request):
    """A function, the same in jax.numpy, and arguments."""
    return CASES[request.param]


def loss(function):
    """Returns a scalar function in which every output has a cotangent of its own."""

    def total(*args):
        leaves = jax.tree.leaves(function(*args))
        return sum((leaf * (i + 1.5) * jnp.arange(1.0, 4.0)).sum() for i, leaf in enumerate(leaves))

    return total


def assert_same(ours, theirs):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), ours, theirs)


def test_eager_and_jit(case):
    function, twin, arguments = case
    assert_same(function(*arguments), twin(*arguments))
    assert_same(jax.jit(function)(*arguments), twin(*arguments))


def test_grad_and_jit_of_grad(case):
    function, twin, arguments = case
    positions = tuple(range(len(arguments)))
    expected = jax.grad(loss(twin), positions)(*arguments)
    assert_same(jax.grad(loss(function), positions)(*arguments), expected)
    assert_same(jax.jit(jax.grad(loss(function), positions))(*arguments), expected)
    assert_same(jax.grad(jax.jit(loss(function)), positions)(*arguments), expected)


@pytest.mark.parametrize("compile", [lambda f: f, jax.jit])
def test_second_derivatives(case, compile):
    function, twin, arguments = case

    def hessian(function):
        return jax.grad(lambda *args: jax.grad(loss(function))(*args).sum())

    assert_same(compile(hessian(function))(*arguments), hessian(twin)(*arguments))


def test_vmap_and_vmap_of_grad(case):
    function, twin, arguments = case
    batch = [jnp.stack([a, a + 1, -a]) for a in arguments]
    assert_same(jax.vmap(function)(*batch), jax.vmap(twin)(*batch))
    ours, theirs = jax.grad(loss(function)), jax.grad(loss(twin))
    assert_same(jax.jit(jax.vmap(ours))(*batch), jax.vmap(theirs)(*batch))


def test_under_scan_and_checkpoint():
    def total(x, multiply):
        def step(carry, y):
            return multiply(carry, y), carry

        last, seen = jax.lax.scan(jax.checkpoint(step), x, jnp.stack([Y, X]))
        return (last + seen.sum(0)).sum()

    expected = jax.grad(total)(X, jnp.multiply)
    assert_same(jax.grad(lambda x: total(x, Product.apply))(X), expected)


def test_gradients_agree_with_finite_differences():
    with jax.enable_x64(True):
        x, y = X.astype(jnp.float64), Y.astype(jnp.float64)
        check_grads(Product.apply, (x, y), order=2, modes=["rev"])


def test_second_derivative_through_a_tensor_that_forward_made_is_refused():
    with pytest.raises(GradientTypeError, match="depends on a tensor that Forward made and saved"):
        jax.grad(lambda x: jax.grad(lambda x: Exp.apply(x).sum())(x).sum())(X)


def test_backward_is_asked_only_for_what_is_differentiated():
    asked = []

    class Asks(Product):
        @staticmethod
        def backward(ctx, dout):
            asked.append(ctx.needs_input_grad)
            return dout, dout

    jax.grad(lambda y: Asks.apply(X, y).sum())(Y)
    jax.grad(lambda x, y: Asks.apply(x, y).sum(), (0, 1))(X, Y)
    assert asked == [(False, True), (True, True)]


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_cell_has_gradients_of_inputs_and_of_parameters(mode):
    class Net(ms.nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = ms.Parameter(ms.Tensor(Y))

        def construct(self, x):
            return Product.apply(x, self.w)

    ms.set_context(mode=mode)
    try:
        net = Net()
        by_input, by_weight = ms.grad(net, 0, net.trainable_params())(ms.Tensor(X))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert_same([by_input.asnumpy(), by_weight[0].asnumpy()], [Y, X])


def test_64_bit_tensors_keep_their_width():
    x = ms.Tensor([1.0, 2.0], ms.float64)
    assert ms.grad(Product.apply)(x, x).dtype == ms.float64


def test_an_unmarked_in_place_change_is_refused():
    class Changes(_Function):
        @staticmethod
        def forward(ctx, x):
            x[:] = x + 1
            return x * 1

        @staticmethod
        def backward(ctx, dout):
            return dout

    with pytest.raises(ArgumentTypeError, match="changed tensor argument 0 in place"):
        ms.grad(lambda x: Changes.apply(x * 2))(ms.Tensor(X))


def test_a_tensor_from_around_forward_is_refused_while_it_is_differentiated():
    def function(x):
        outer = x * 3

        class Takes(_Function):
            @staticmethod
            def forward(ctx, x):
                return x * outer

            @staticmethod
            def backward(ctx, dout):
                return dout

        return Takes.apply(x)

    assert_same(ms.jit(function)(ms.Tensor(X)).asnumpy(), X * X * 3)
    with pytest.raises(ArgumentTypeError, match="forward uses a Tensor from around it"):
        ms.grad(function)(ms.Tensor(X))

    def late(x):
        class Takes(_Function):
            @staticmethod
            def forward(ctx, y):
                return y * 1

            @staticmethod
            def backward(ctx, dout):
                return dout * x

        return Takes.apply(x * 2)

    with pytest.raises(ArgumentTypeError, match="backward uses a Tensor from around it"):
        ms.grad(late)(ms.Tensor(X))


def test_more_gradients_than_arguments_are_refused():
    # MindSpore reads past its own list there, and raises RuntimeError or nothing.
    class Many(Product):
        @staticmethod
        def backward(ctx, dout):
            return dout, dout, dout

    with pytest.raises(RuntimeError, match=r"expected 2, got 3"):
        jax.grad(lambda x: Many.apply(x, Y).sum())(X)


def test_it_is_where_mindspore_has_it():
    assert ms._Function is ms.common._Function is ms.common._grad_function._Function is _Function
