"""Graph operators of op_def: infer functions and kernels in C++, eagerly and in programs."""

from __future__ import annotations

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from extension_modules import SOURCES, graph_extension
from jax.sharding import PartitionSpec as P

import msops as ms
from msops.errors import GradientTypeError, KernelError
from msops.ops._grad_experimental.grad_base import bprop_getters

X = jnp.array([1.0, 2.0, 3.0], jnp.float32)
Y = jnp.array([4.0, 5.0, 6.0], jnp.float32)


@pytest.fixture(scope="module")
def cpu():
    return graph_extension("graph_operators", SOURCES.parent / "scripts")


@pytest.fixture(scope="module")
def ops():
    return graph_extension("graph_memory", doc=True)


def same(ours, theirs):
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


def test_eager_jit_vmap_and_scan(cpu):
    same(cpu.scale(X), 2 * X)
    same(cpu.scale(X, times=2, factor=3.0), 9 * X)
    same(jax.jit(lambda x: cpu.scale(cpu.scale(x), 0.5, 3))(X), X / 4)
    batch = jnp.stack([X, Y])
    same(jax.vmap(cpu.scale)(batch), 2 * batch)
    same(jax.jit(jax.vmap(cpu.scale, 1, 1))(batch.T), 2 * batch.T)
    same(jax.lax.scan(lambda c, x: (cpu.scale(c), x), X, batch)[0], 4 * X)
    same(cpu.scale(np.asarray(X)), 2 * X)


def test_inside_shard_map(cpu):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    local = jax.shard_map(cpu.scale, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    same(local(X), 2 * X)
    same(jax.jit(local)(X), 2 * X)


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_every_mode_of_mindspore(cpu, mode):
    class Net(ms.nn.Cell):
        def construct(self, x):
            return cpu.scale(x, times=3)

    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        x = ms.Tensor([1.0, 2.0])
        for function in (Net(), cpu.scale, ms.jit(lambda x: cpu.scale(x, times=3))):
            assert isinstance(function(x), ms.Tensor)
        same(Net()(x).asnumpy(), [8.0, 16.0])
        same(ms.jit(cpu.scale)(x).asnumpy(), [2.0, 4.0])
    finally:
        ms.set_context(mode=before)


def test_a_result_in_place_is_the_argument(cpu):
    for wrap in (lambda f: f, ms.jit):
        t, u = ms.Tensor([1.0, 2.0]), ms.Tensor([10.0, 20.0])

        def twice(t, u):
            cpu.accumulate(t, u)
            return cpu.accumulate(t, u) + t

        same(wrap(twice)(t, u).asnumpy(), [42.0, 84.0])
        same(u.asnumpy(), [10.0, 20.0])
    t = ms.Tensor([1.0, 2.0])
    assert cpu.accumulate(t, u) is t
    same(t.asnumpy(), [11.0, 22.0])
    x = jnp.array(X)
    same(cpu.accumulate(x, Y), X + Y)
    same(jax.jit(cpu.accumulate)(x, Y), X + Y)
    same(jax.vmap(cpu.accumulate, (0, None))(jnp.stack([x, Y]), Y), jnp.stack([X + Y, 2 * Y]))
    same(x, X)


def test_a_compiled_function_changes_its_arguments(cpu, ops):
    class Net(ms.nn.Cell):
        def construct(self, tensors, x):
            cpu.accumulate(tensors[1], x)
            ops.fill(x, x)
            return tensors[0]

    def inner(x, y):
        y = y + 0
        cpu.accumulate(y, x)
        return cpu.accumulate(x, y)

    before = ms.get_context("mode")
    for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
        ms.set_context(mode=mode)
        try:
            x, y, z = (ms.Tensor([value]) for value in (1.0, 10.0, 100.0))
            same(Net()((x, y), z).asnumpy(), [1.0])
            same([x.asnumpy(), y.asnumpy(), z.asnumpy()], [[1.0], [110.0], [200.0]])
            outer = ms.jit(lambda x, y: ms.jit(inner)(x, y))
            for _ in range(2):
                y = ms.Tensor([10.0])
                same(outer(z, y).asnumpy(), z.asnumpy())
                same(y.asnumpy(), [10.0])
        finally:
            ms.set_context(mode=before)
    same(z.asnumpy(), [4 * 200.0 + 10 + 20])


def test_an_argument_that_is_written_without_being_a_result(ops):
    cache = ms.Tensor([1.0, 2.0])
    assert ops.fill(cache, ms.Tensor([5.0, 5.0])).shape == (1,)
    same(cache.asnumpy(), [6.0, 7.0])

    @ms.jit
    def twice(cache, x):
        ops.fill(cache, x)
        ops.fill(cache, x)
        return cache * 1

    same(twice(ms.Tensor([1.0]), ms.Tensor([5.0])).asnumpy(), [11.0])


def test_optional_arguments(ops):
    function = jax.jit(lambda x, b: ops.add_bias(x, b))
    same(function(X, Y), X + Y)
    same(function(X, None), X)
    same(jax.jit(ops.add_bias)(X, bias=Y), X + Y)


def test_the_modules_own_function_serves_calls_outside_of_graphs(ops):
    same(ops.no_kernel(X), X)
    same(ops.also_bound(X), X)
    with pytest.raises(
        RuntimeError, match=r"Custom_no_kernel: no kernel is registered .*MS_CUSTOM"
    ):
        ms.jit(lambda x: ops.no_kernel(x))(ms.Tensor(X))


def test_tuples_of_tensors_and_of_numbers(ops):
    for wrap in (lambda f: f, jax.jit):
        same(wrap(lambda x, y: ops.weighted_sum((x, y), (1, -2)))(X, Y), X - 2 * Y)
        same(wrap(lambda x, y: ops.weighted_sum([x, y], (1, np.int32(3))))(X, Y), X + 3 * Y)
    same(ops.weighted_sum(X, (4,)), 4 * X)
    with pytest.raises(ValueError, match="Custom_weigh: one weight per tensor"):
        ops.weighted_sum((X, Y), (1,))


def test_several_results_text_and_workspaces(ops):
    for wrap in (lambda f: f, jax.jit):
        same(wrap(ops.extremes)(jnp.array([3.0, -1.0, 2.0])), [-1.0, 3.0])
        same(wrap(lambda x: ops.extremes(x, "down"))(jnp.array([3.0, -1.0])), [3.0, -1.0])
    low, high = jax.vmap(ops.extremes)(jnp.stack([X, Y]))
    same(low, [1.0, 4.0])
    same(high, [3.0, 6.0])
    same(ops.extremes(X, "up", jnp.array([10.0])), [11.0, 13.0])
    with pytest.raises(
        ValueError, match=r"as a number, or a tensor without axes; got shape \(3,\)"
    ):
        ops.extremes(X, shift=X)
    with pytest.raises(ValueError, match="Custom_extremes: mode is up or down, got flat"):
        ops.extremes(X, mode="flat")


def test_a_shape_that_depends_on_a_tensors_value(ops):
    same(ops.tile(X, jnp.array([2])), [*X, *X])
    same(jax.jit(lambda x: ops.tile(x, np.array([3], np.int32)))(X), [*X, *X, *X])
    same(ops.tile(X, 2), [*X, *X])
    with pytest.raises(ValueError, match=r"InferShape returned \(-1\) for result 0: every extent"):
        jax.jit(ops.tile)(X, jnp.array([2]))


def test_a_dtype_group_is_converted(ops, cpu):
    half = X.astype(jnp.float16)
    same(jax.jit(lambda x, b: ops.add_bias(x, b))(half, Y), half.astype(jnp.float32) + Y)
    with pytest.raises(TypeError, match="'x' is changed in place, and its dtype float16"):
        cpu.accumulate(half, Y)
    same(cpu.accumulate(X, half), 2 * X)


def test_a_gradient_needs_a_bprop(cpu, ops):
    with pytest.raises(GradientTypeError, match=r'bprop_getters.register\("Custom_accumulate"\)'):
        jax.grad(lambda x: cpu.accumulate(x, Y).sum())(X)

    @bprop_getters.register("Custom_scale")
    def get_bprop(self):
        assert self.name == "Custom_scale"

        def bprop(x, factor, times, out, dout):
            return cpu.scale(dout, factor, times), None, None

        return bprop

    def cubed(x):
        return cpu.scale(x, 3.0, 3)

    for wrap in (lambda f: f, jax.jit):
        same(wrap(jax.grad(lambda x: (cubed(x) * Y).sum()))(X), 27 * Y)
        same(
            wrap(jax.vmap(jax.grad(lambda x: cubed(x).sum())))(jnp.stack([X, Y])),
            np.full((2, 3), 27),
        )
    slope = jax.jit(jax.grad(lambda x, y: (cubed(x) * y).sum()))
    same(jax.grad(lambda y: slope(X, y).sum())(Y), np.full(3, 27))
    t = ms.Tensor([1.0, 2.0])
    same(ms.grad(cubed)(t).asnumpy(), [27.0, 27.0])
    same(ms.grad(ms.jit(cubed))(t).asnumpy(), [27.0, 27.0])
    with pytest.raises(GradientTypeError, match="forward mode"):
        jax.jvp(cubed, (X,), (X,))


def test_a_gradient_of_several_results_and_of_results_in_place(cpu, ops):
    @bprop_getters.register("Custom_extremes")
    def get_bprop(self):
        def bprop(x, mode, shift, out, dout):
            return dout[0] * (x == out[0]) + dout[1] * (x == out[1]), None, None

        return bprop

    def spread(x):
        low, high = ops.extremes(x)
        return 2 * high - low

    same(jax.jit(jax.grad(spread))(X), [-1.0, 0.0, 2.0])

    @bprop_getters.register("Custom_accumulate")
    def get_sum_bprop(self):
        return lambda x, y, out, dout: (dout, dout)

    def total(x, y):
        t = x * 2
        assert cpu.accumulate(t, y) is t
        return (t * t).sum()

    t, u = ms.Tensor([1.0, 2.0]), ms.Tensor([10.0, 20.0])
    same(ms.grad(total, (0, 1))(t, u)[0].asnumpy(), [48.0, 96.0])
    same(ms.grad(total, (0, 1))(t, u)[1].asnumpy(), [24.0, 48.0])


def test_a_bprop_for_an_argument_that_is_written_without_being_a_result(ops):
    @bprop_getters.register("Custom_fill_twin")
    def get_bprop(self):
        return lambda cache, x, out, dout: (None, None)

    with pytest.raises(GradientTypeError, match=r"'cache' is changed in place and is no result"):
        ops.fill_twin(X, Y)


@pytest.mark.parametrize(
    ("how", "kind", "text"),
    [
        ("type", TypeError, "of infer"),
        ("none", ValueError, "GetShape: expected a tensor or a number; argument absent is None"),
        ("kind", ValueError, "argument how is text"),
        ("count", ValueError, "op_def names 1 result.s., InferShape returned 0 shape.s."),
        ("rank", ValueError, r"Custom_fail: InferShape returned \(-2\) for result 0"),
        ("init", RuntimeError, "Custom_fail: Init of its kernel returned false"),
        ("resize", RuntimeError, "Resize of its kernel returned 1, not KRET_OK"),
        ("launch", KernelError, "Launch of its kernel returned false"),
        ("throw", KernelError, "of launch"),
    ],
)
def test_what_fails_in_cpp(ops, how, kind, text):
    with pytest.raises(kind, match=text):
        ops.fail(X, how)
    expected = jax.errors.JaxRuntimeError if kind is KernelError else kind
    with pytest.raises(expected, match=text):
        jax.block_until_ready(jax.jit(lambda x: ops.fail(x, how))(X))


def test_dtypes_outside_of_the_kernels_rows(cpu):
    with pytest.raises(TypeError, match=r"Custom_scale: the dtypes \(Int32, Float32, Int64\)"):
        cpu.scale(X.astype(jnp.int32))


@pytest.mark.parametrize(
    ("arguments", "keywords", "kind", "text"),
    [
        ((X, 3), {}, TypeError, "'factor' float; got int 3"),
        ((X, True), {}, TypeError, "'factor' float; got bool True"),
        ((X, 1.0, 1.0), {}, TypeError, "'times' int; got float 1.0"),
        ((X, 1.0, True), {}, TypeError, "'times' int; got bool True"),
        ((X, jnp.int32(3)), {}, TypeError, "'factor' float; got int 3"),
        ((X, jnp.ones(1)), {}, ValueError, r"a tensor without axes; got shape \(1,\)"),
        ((X, None), {}, TypeError, "'factor' float; got NoneType None"),
        ((None,), {}, TypeError, "'x' tensor; got NoneType None"),
        ((1.0,), {}, TypeError, "'x' tensor; got float 1.0"),
        (([1.0],), {}, TypeError, r"'x' tensor; got list\[float\]"),
        (("a",), {}, TypeError, "'x' tensor; got str 'a'"),
        ((X, 1.0, 2**63), {}, ValueError, "'times' below 2..63; got 9223372036854775808"),
        ((X, 1.0, 1, 1), {}, TypeError, "too many positional arguments"),
        ((X,), {"fac": 1.0}, TypeError, "got an unexpected keyword argument 'fac'"),
        ((), {}, TypeError, "missing a required argument: 'x'"),
    ],
)
def test_arguments_of_another_kind(cpu, arguments, keywords, kind, text):
    with pytest.raises(kind, match=text):
        cpu.scale(*arguments, **keywords)


def test_a_tensor_without_axes_is_a_number(cpu):
    same(cpu.scale(X, jnp.float32(3), np.int64(2)), 9 * X)
    same(cpu.scale(ms.Tensor(X), ms.Tensor(3.0)).asnumpy(), 3 * X)
    with pytest.raises(TypeError, match="'factor' is being traced"):
        jax.jit(cpu.scale)(X, 3.0)


ACCEPTED = [
    *({"n": True}, {"n": 1.5}, {"s": "b"}, {"ti": ()}, {"lf": [1.0]}, {"tt": (X, X)}, {"o": X}),
    *({"c": 1}, {"t": ms.float16}, {"p": 3}, {"p": (3, 4, 5)}),
]
REFUSED = [
    *({"i": True}, {"i": 1.0}, {"b": 1}, {"n": "a"}, {"s": 1}, {"ti": [1]}, {"ti": 1}),
    *({"ti": (1.0,)}, {"ti": (True,)}, {"lf": (1.0,)}, {"lf": [1]}, {"tt": [X]}, {"tt": X}),
    *({"o": 1}, {"t": None}, {"t": 1}, {"p": "a"}),
]


@pytest.mark.parametrize("keywords", ACCEPTED, ids=str)
def test_what_mindspore_accepts(cpu, keywords):
    """In 2.10.0 these calls get as far as the choice of a kernel; here the row refuses them."""
    with pytest.raises(TypeError, match="Custom_kinds: the dtypes"):
        cpu.kinds(X, **keywords)


@pytest.mark.parametrize("keywords", REFUSED, ids=str)
def test_what_mindspore_refuses(cpu, keywords):
    kind = ValueError if keywords == {"p": "a"} else TypeError
    with pytest.raises(
        kind, match="Custom_kinds of extension module 'tests_graph_operators': expected"
    ):
        cpu.kinds(X, **keywords)


def test_the_function_and_the_module(ops, cpu):
    assert str(inspect.signature(cpu.scale)) == "(x, factor=2.0, times=1)"
    assert ops.add_bias.__doc__ == "Adds a bias, if there is one.\n"
    assert (ops.add_bias.__name__, ops.weighted_sum.__name__) == ("add_bias", "weighted_sum")
    assert {"add_bias", "weighted_sum", "also_bound"} <= set(dir(ops))
    with pytest.raises(
        AttributeError, match=r"no operator 'scales': it is neither .* Did you mean sc"
    ):
        cpu.scales  # noqa: B018
    assert graph_extension.__wrapped__("graph_memory", doc=True) is ops


def test_bprop_getters_takes_names_of_graph_operators():
    for name, kind in ((1, TypeError), (ms.nn.Cell, TypeError), ("Abs", ValueError)):
        with pytest.raises(kind, match=r"bprop_getters.register: expected"):
            bprop_getters.register(name)
    with pytest.raises(TypeError, match="expected a function"):
        bprop_getters.register("Custom_x")(1)
