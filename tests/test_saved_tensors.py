"""saved_tensors_hooks on arrays, under JAX's transformations, and where it is refused.

What it does in MindSpore is in the small cases (tests/oracle/small_cases/transformations.py).
"""

from __future__ import annotations

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import msops as ms
from msops import nn, ops
from msops.common._grad_function import _Function

X = jnp.array([0.5, 1.0, 2.0])


class Hooks:
    """Hooks that note what passes, and hand on a copy of the array, or the Tensor itself."""

    def __init__(self, by_value=True):
        self.packed = []
        self.unpacked = 0
        self.by_value = by_value

    def pack(self, tensor):
        self.packed.append(tensor)
        return tensor.asnumpy() if self.by_value else tensor

    def unpack(self, packed):
        self.unpacked += 1
        return ms.Tensor(packed)

    def block(self):
        return ms.saved_tensors_hooks(self.pack, self.unpack)

    def around(self, function):
        def call(*args):
            with self.block():
                return function(*args)

        return call


def chain(x):
    """Gradients through custom_jvp, jit, control flow, an integer result and unused parts."""
    y = jax.nn.softplus(jnp.sin(x)) * x
    y = jax.lax.cond(y.sum() > 0, jnp.cos, jnp.sin, y)
    y = jax.lax.scan(lambda c, _: (jnp.sin(c) * x, c.sum()), y, None, 3)[0]
    best = jnp.argmax(y)
    return jnp.linalg.norm(jnp.outer(y, x)[:, ::-1] @ x) * y[best]


def test_the_gradient_is_what_it_is_without_hooks():
    hooks = Hooks()
    found = jax.grad(hooks.around(chain))(X)
    np.testing.assert_allclose(found, jax.grad(chain)(X), rtol=1e-6)
    assert hooks.unpacked == len(hooks.packed) > 5


def test_what_does_not_depend_on_the_input_has_no_gradient():
    """An operator without a gradient runs on it, as without hooks."""
    twice = ms.pyfunc(lambda x: 2 * x, out=lambda x: x)

    def product(x):
        return (x * twice(jax.lax.stop_gradient(x))).sum()

    np.testing.assert_array_equal(jax.grad(Hooks().around(product))(X), 2 * X)


def test_references_and_shard_map_are_left_to_jax():
    mesh = jax.make_mesh((1,), ("i",), axis_types=(AxisType.Auto,))
    mapped = jax.shard_map(lambda x: jnp.sin(x) * x, mesh=mesh, in_specs=P("i"), out_specs=P("i"))

    def total(x):
        ref = jax.new_ref(jnp.zeros_like(x))
        ref[...] = 2 * mapped(x)
        return (ref[...] * x).sum()

    hooks = Hooks()
    np.testing.assert_allclose(jax.grad(hooks.around(total))(X), jax.grad(total)(X), rtol=1e-6)
    assert hooks.unpacked == len(hooks.packed) > 0


def test_what_unpack_returns_is_what_the_gradient_uses():
    def zeroed(x):
        with ms.saved_tensors_hooks(lambda t: None, lambda _: ms.Tensor(jnp.zeros(3))):
            return jnp.sin(x).sum()

    np.testing.assert_array_equal(jax.grad(zeroed)(X), jnp.zeros(3))


@pytest.mark.parametrize(
    "transformation",
    [
        lambda f: jax.vmap(jax.grad(lambda x: f(x).sum())),
        lambda f: jax.hessian(lambda x: f(x).sum()),
        lambda f: jax.jacrev(jax.jacrev(f)),
        lambda f: lambda x: jax.jvp(f, (x,), (x,)),
    ],
    ids=["vmap of grad", "hessian", "jacrev twice", "jvp"],
)
def test_gradients_inside_of_other_transformations(transformation):
    hooks = Hooks(by_value=False)
    found = transformation(hooks.around(jnp.sin))(X)
    expected = transformation(jnp.sin)(X)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), found, expected)


@pytest.mark.parametrize(
    "transformation",
    [
        lambda f: jax.jacfwd(jax.grad(f)),
        lambda f: jax.jacrev(jax.grad(f)),
        lambda f: jax.jacrev(jax.jacfwd(jax.grad(f))),
    ],
    ids=["forward", "reverse", "three times"],
)
def test_what_hooks_keep_as_numpy_arrays_is_differentiated_again(transformation):
    def total(x):
        return jax.jit(lambda x: jnp.exp(x) * x)(x).sum()

    found = transformation(Hooks().around(total))(X)
    np.testing.assert_allclose(found, transformation(total)(X), rtol=1e-5)


@pytest.mark.parametrize(
    "transformation",
    [
        lambda f: jax.grad(lambda x: jax.jit(f)(x).sum()),
        lambda f: jax.jit(jax.grad(lambda x: f(x).sum())),
        lambda f: jax.grad(lambda x: jax.vmap(f)(x).sum()),
        lambda f: jax.grad(lambda x: jax.jvp(f, (x,), (x,))[1].sum()),
        lambda f: jax.grad(lambda x: jax.checkpoint(f)(x).sum()),
    ],
    ids=["jit in grad", "grad in jit", "vmap in grad", "jvp in grad", "checkpoint in grad"],
)
def test_blocks_in_compiled_functions_are_refused(transformation):
    with pytest.raises(ms.errors.GradientTypeError) as caught:
        transformation(Hooks().around(jnp.sin))(X)
    first, advice = str(caught.value).splitlines()
    assert first.startswith("saved_tensors_hooks: the block is inside of a function")
    assert "jax.checkpoint: its policy" in advice


def test_in_graph_mode_it_is_refused():
    hooks = Hooks(by_value=False)
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        for gradient in (ms.grad(hooks.around(lambda x: x * x)), hooks.around(ms.grad(ops.sin))):
            with pytest.raises(TypeError, match="compiled"):
                gradient(ms.Tensor([1.0]))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert hooks.packed == []


def test_compiled_parts_of_a_block_keep_their_values_through_hooks():
    hooks = Hooks()
    found = jax.grad(hooks.around(lambda x: jax.jit(lambda x: jnp.sin(x) * x)(x).sum()))(X)
    np.testing.assert_allclose(found, jnp.sin(X) + X * jnp.cos(X), rtol=1e-6)
    assert hooks.unpacked == len(hooks.packed) == 2 + 1


def test_operators_hooks_of_cells_and_parameters():
    product = ms.pyfunc(np.multiply, out=lambda x, y: x, bprop=lambda x, y, out, d: (y * d, x * d))

    class Scale(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = ms.Parameter(ms.Tensor([2.0, 3.0]), name="w")

        def construct(self, x):
            y = product(x * self.w, x)
            y.register_hook(lambda dy: dy * 10)
            return y * y

    net, x = Scale(), ms.Tensor([1.0, 2.0])
    plain = ms.grad(net, 0, net.w)(x)
    hooks = Hooks()
    by_input, by_weight = ms.grad(hooks.around(net), 0, net.w)(x)
    np.testing.assert_array_equal(by_input.asnumpy(), plain[0].asnumpy())
    np.testing.assert_array_equal(by_weight.asnumpy(), plain[1].asnumpy())
    assert hooks.unpacked == len(hooks.packed) > 4


class Square(_Function):
    @staticmethod
    def forward(ctx, x):
        made = x * 2
        ctx.save_for_backward(made, None, x)
        return x * x

    @staticmethod
    def backward(ctx, dout):
        made, nothing, x = ctx.saved_tensors
        assert nothing is None
        return made * dout + 0 * x


def test_a_function_hands_what_it_saved_and_nothing_else():
    hooks = Hooks()
    found = ms.grad(hooks.around(Square.apply))(ms.Tensor([1.0, 2.0]))
    np.testing.assert_array_equal(found.asnumpy(), [2.0, 4.0])
    packed = [tensor.asnumpy().tolist() for tensor in hooks.packed]
    assert packed == [[2.0, 4.0], [1.0, 2.0]]
    assert hooks.unpacked == 2


class Plain(_Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dout):
        return 2 * ctx.saved_tensors[0] * dout


def test_a_function_is_differentiated_twice_with_hooks():
    hooks = Hooks(by_value=False)
    cube = hooks.around(lambda x: ms.grad(lambda x: Plain.apply(x) * x)(x))
    np.testing.assert_array_equal(ms.grad(cube)(ms.Tensor([2.0])).asnumpy(), [12.0])


def test_hooks_are_of_their_thread_and_end_with_their_block():
    hooks, found = Hooks(), []
    work = threading.Thread(target=lambda: found.append(jax.grad(jnp.sin)(0.0)))
    with hooks.block():
        work.start()
        work.join()
    with pytest.raises(KeyError), hooks.block():
        raise KeyError
    assert found == [1.0]
    assert jax.grad(jnp.sin)(0.0) == 1.0
    assert hooks.packed == []


def test_one_object_may_be_entered_again():
    hooks = Hooks()
    block = hooks.block()

    def cube(x):
        with block:
            with block:
                y = x * x
            return y * x

    np.testing.assert_array_equal(ms.grad(cube)(ms.Tensor([2.0])).asnumpy(), [12.0])
    assert len(hooks.packed) == 4
