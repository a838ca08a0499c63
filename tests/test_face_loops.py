"""akg and hybrid ops as scripts for MindSpore use them: on Tensors, in Cells, in both modes."""
# Loop kernels use names that mean something only inside them.
# ruff: noqa: F821

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from custom_ops import first, horner, matmul, solve_lower, sum_and_max

import msops as ms
from msops import Tensor, nn, ops
from msops.ops import CustomRegOp, DataType

X = np.array([1.0, 2.0, 3.0], np.float32)


@pytest.fixture(params=["GRAPH_MODE", "PYNATIVE_MODE"])
def mode(request):
    ms.set_context(mode=getattr(ms, request.param))
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Wrapped(nn.Cell):
    """A Cell around an op, as the documents write it."""

    def __init__(self, op: Any) -> None:
        super().__init__()
        self.op = op

    def construct(self, *args: Any) -> Any:
        return self.op(*args)


def akg(func: Any, **options: Any) -> ops.Custom:
    return ops.Custom(func, func_type="akg", **options)


@pytest.mark.usefixtures("mode")
def test_akg_with_infer_functions():
    op = akg(matmul, out_shape=lambda a, b: (a[0], b[1]), out_dtype=lambda a, b: a)
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    out = Wrapped(op)(Tensor(a), Tensor(b))
    assert isinstance(out, Tensor)
    assert out.dtype == ms.float64
    np.testing.assert_allclose(out.asnumpy(), a @ b)


@pytest.mark.usefixtures("mode")
def test_hybrid_with_several_outputs_infers_them():
    both = Wrapped(ops.Custom(sum_and_max))(Tensor(X), Tensor(X[::-1].copy()))
    assert isinstance(both, tuple)
    np.testing.assert_array_equal(both[0].asnumpy(), X + X[::-1])
    np.testing.assert_array_equal(both[1].asnumpy(), np.maximum(X, X[::-1]))


@ops.kernel
def doubled_in_place(a, b):
    for i in range(a.shape[0]):
        a[i] = a[i] + b[i]
    return a


@pytest.mark.usefixtures("mode")
def test_an_in_place_kernel_returns_the_new_value_and_leaves_the_tensor():
    a = Tensor(X)
    out = Wrapped(ops.Custom(doubled_in_place))(a, Tensor(X))
    np.testing.assert_array_equal(out.asnumpy(), 2 * X)
    np.testing.assert_array_equal(a.asnumpy(), X)


def info_of(name: str, *attributes: str) -> dict[str, Any]:
    info = CustomRegOp(name).input(0, "x").output(0, "y")
    for attribute in attributes:
        info = info.attr(attribute, "required", "float")
    return info.dtype_format(DataType.F32_Default, DataType.F32_Default).target("CPU").get_op_info()


def powers(x, base, shift):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = power(base, x[i]) + shift
    return y


def powers_in_tvm(x, base, shift):
    return tvm.compute(x.shape, lambda i: tvm.power(tvm.const(base, "float32"), x[i]) + shift)


def powers_by_builder(inputs, attrs):
    (x,) = inputs

    def body(ins, outs):
        ib = tvm.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, x.shape[0], name="i") as i:
            base = tvm.const(attrs["base"], "float32")
            target[i] = tvm.power(base, source[i]) + tvm.const(attrs["shift"], "float32")
        return ib.get()

    return tvm.extern(x.shape, [x], body, name="y", dtype=x.dtype)


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("func", [powers, powers_in_tvm, powers_by_builder])
def test_attributes_of_op_info_reach_every_kind_of_kernel(func):
    info = info_of(func.__name__, "base", "shift")
    net = Wrapped(akg(func, out_shape=first, out_dtype=first, reg_info=info))
    np.testing.assert_allclose(net(Tensor(X), 2.0, 0.5).asnumpy(), 2.0**X + 0.5, rtol=1e-6)
    np.testing.assert_allclose(net(Tensor(X), 3.0, 0.0).asnumpy(), 3.0**X, rtol=1e-6)
    with pytest.raises(TypeError, match="match no row of its op info"):
        net(Tensor(X.astype(np.int32)), 2.0, 0.5)


@pytest.mark.usefixtures("mode")
def test_gradients_by_every_function_of_the_face():
    a = np.tril(np.full((3, 3), 0.5, np.float32), -1)
    # The solution is linear in b: the gradient is a solution of the transposed system.
    expected = np.linalg.solve((a + np.eye(3)).T, np.ones(3))
    net = Wrapped(akg(solve_lower))
    by_grad = ms.grad(net, grad_position=1)(Tensor(a), Tensor(X))
    np.testing.assert_allclose(by_grad.asnumpy(), expected, rtol=1e-6)
    value, by_value_and_grad = ms.value_and_grad(net, grad_position=1)(Tensor(a), Tensor(X))
    np.testing.assert_allclose(by_value_and_grad.asnumpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(value.asnumpy(), np.linalg.solve(a + np.eye(3), X), rtol=1e-6)
    sens = np.array([1.0, 0.0, 2.0], np.float32)
    both = ops.GradOperation(get_all=True, sens_param=True)(net)(Tensor(a), Tensor(X), Tensor(sens))
    np.testing.assert_allclose(
        both[1].asnumpy(), np.linalg.solve((a + np.eye(3)).T, sens), rtol=1e-6
    )


@pytest.mark.usefixtures("mode")
def test_a_gradient_with_an_attribute_between():
    net = Wrapped(akg(horner, reg_info=info_of("horner", "at")))
    gradient = ms.grad(net)(Tensor(X), 2.0)
    np.testing.assert_allclose(gradient.asnumpy(), [4.0, 2.0, 1.0])


@pytest.mark.usefixtures("mode")
def test_a_cell_of_akg_ops_learns():
    class Layer(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = ms.Parameter(Tensor(np.zeros((3, 1), np.float32)), name="weight")
            self.matmul = akg(matmul)

        def construct(self, x: Any, y: Any) -> Any:
            error = self.matmul(x, self.weight) - y
            return (error * error).sum()

    net = Layer()
    x = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    truth = np.array([[1.0], [-2.0], [0.5]], np.float32)
    step = ms.value_and_grad(net, grad_position=None, weights=[net.weight])
    for _ in range(80):
        _, (gradient,) = step(Tensor(x), Tensor(x @ truth))
        net.weight.set_data(net.weight - 0.05 * gradient)
    np.testing.assert_allclose(net.weight.asnumpy(), truth, atol=1e-3)
