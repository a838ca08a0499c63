"""grad, value_and_grad and GradOperation beyond what the oracle covers: numbers and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from face_namespace import ms
from quick_cases import in_turn, one_in

from msops import ops
from msops.errors import GradientTypeError, GradientValueError, MsopsError

Tensor = ms.Tensor
G = ops.GradOperation


MODES = [
    pytest.param(ms.PYNATIVE_MODE, id="pynative"),
    pytest.param(ms.GRAPH_MODE, id="graph"),
]


@pytest.fixture(params=MODES, autouse=True)
def mode(request):
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


FUNCTIONS = {
    "exp": lambda x: ops.exp(x),
    "log": lambda x: ops.log(x),
    "sqrt": lambda x: ops.sqrt(x),
    "tanh": lambda x: ops.tanh(x),
    "sigmoid": lambda x: ops.sigmoid(x),
    "pow": lambda x: x**2.5 + 2**x,
    "div": lambda x: 1 / x + x / 3,
    "matmul": lambda x: x.reshape(2, 2) @ x.reshape(2, 2),
    "mean": lambda x: (x * x).mean(),
    "var": lambda x: x.var(),
    "softmax": lambda x: ops.softmax(x) ** 2,
    "max": lambda x: x.max() * x[1],
    "index": lambda x: x[1:] * x[Tensor([0, 0, 2])],
    "concat": lambda x: ops.concat((x, x * x))[2:6],
    "transpose": lambda x: x.reshape(2, 2).T @ x.reshape(2, 2),
    "split": lambda x: ops.split(x, 2)[1] * x[:2],
    "where": lambda x: ops.where(x > 1, x * x, x),
}


NAMES = [pytest.param(name, id=name) for name in FUNCTIONS]


@pytest.mark.parametrize(("name", "mode"), one_in(2, in_turn(NAMES, MODES)), indirect=["mode"])
def test_agrees_with_finite_differences(name):
    f = FUNCTIONS[name]
    x = np.array([0.3, 0.8, 1.7, 2.2])
    h = 1e-6

    def total(v):
        return f(Tensor(v)).asnumpy().sum()

    expected = [(total(x + h * e) - total(x - h * e)) / (2 * h) for e in np.eye(4)]
    gradient = ms.grad(f)(Tensor(x))
    assert gradient.dtype is ms.float64
    np.testing.assert_allclose(gradient.asnumpy(), expected, rtol=1e-6, atol=1e-8)


def test_integer_arguments_have_no_gradient():
    index, x = Tensor([0, 1, 1]), Tensor([1.0, 2.0])

    def take(a, i):
        return a[i]

    assert ms.grad(take)(x, index).tolist() == [1.0, 2.0]
    by_x, by_index = G(get_all=True)(take)(x, index)
    assert by_x.tolist() == [1.0, 2.0]
    assert (by_index.dtype, by_index.tolist()) == (ms.int64, [0, 0, 0])
    with pytest.raises(GradientTypeError, match=r"argument 1 has no gradient.*got Int64"):
        ms.grad(take, 1)(x, index)


def test_integer_outputs_pass_no_gradient_back():
    x = Tensor([1.0, 2.0])
    assert ms.grad(lambda a: (a * a, a.astype(ms.int32)))(x).tolist() == [2.0, 4.0]


def test_trees_of_tensors_are_differentiated():
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    by_pair = ms.grad(lambda pair: pair[0] * pair[1])((x, y))
    assert [g.tolist() for g in by_pair] == [[3.0, 4.0], [1.0, 2.0]]


def test_data_can_be_read_while_differentiated_eagerly(mode):
    if mode == ms.GRAPH_MODE:
        pytest.skip("compiled code has no data to read")
    seen = []

    def f(a):
        seen.append(a.asnumpy().tolist())
        return a * a if float(a[0]) > 0 else a

    assert ms.grad(f)(Tensor([3.0])).tolist() == [6.0]
    assert seen == [[3.0]]


def test_gradients_of_jax_arrays_are_jax_arrays():
    import jax
    import jax.numpy as jnp

    gradient = ms.grad(lambda a: a * a)(jnp.array([1.0, 3.0]))
    assert isinstance(gradient, jax.Array)
    assert gradient.tolist() == [2.0, 6.0]


def double(a):
    return a * 2


x = Tensor([1.0, 2.0])


@pytest.mark.parametrize(
    ("do", "error", "text"),
    [
        (lambda: ms.grad(3), TypeError, "expected a function or Cell; got int"),
        (lambda: ms.grad(double, None), ValueError, "are both None"),
        (lambda: ms.grad(double, [0]), TypeError, r"got \[0\]"),
        (lambda: ms.grad(double, True), TypeError, "got True"),
        (lambda: ms.grad(double, -1), ValueError, "got -1"),
        (lambda: ms.grad(double, 5)(x), RuntimeError, "grad_position 5 was asked for"),
        (lambda: ms.grad(double, (0, 0)), ValueError, "expected each position once"),
        (lambda: ms.value_and_grad(double, (0, 0)), ValueError, "expected each position once"),
        (lambda: ms.grad(double, 0, [1]), TypeError, "expected weights Parameter"),
        (lambda: ms.grad(double)(2.0), GradientTypeError, "got float"),
        (lambda: ms.grad(double, has_aux=True)(x), GradientValueError, "two outputs or more"),
        (lambda: G(get_by_list=True)(double), TypeError, "expected weights Parameter"),
        (lambda: G(sens_param=True)(double)(), ValueError, "expected sens"),
        (
            lambda: G(sens_param=True)(double)(x, Tensor([1.0, 2.0, 3.0])),
            GradientValueError,
            r"sens of output 0 expected shape \(2,\); got \(3,\)",
        ),
        (
            lambda: G(sens_param=True)(lambda a: (a, a))(x, x),
            GradientValueError,
            r"sens expected 2 Tensor\(s\), one per output; got 1",
        ),
    ],
)
def test_bad_input_is_explained(do, error, text):
    with pytest.raises(error, match=text) as caught:
        do()
    assert isinstance(caught.value, MsopsError)


def test_gradient_of_a_cell_in_a_loop_compiles_once(mode):
    traced = []

    class Net(ms.nn.Cell):
        def construct(self, x):
            traced.append(1)
            return x * x

    net = Net()
    for step in range(4):
        got = ms.grad(net)(ms.Tensor([float(step)]))
        np.testing.assert_array_equal(got.asnumpy(), [2.0 * step])
    assert len(traced) == (1 if mode == ms.GRAPH_MODE else 4)
    value, gradient = ms.value_and_grad(net)(ms.Tensor([3.0]))
    assert (float(value), float(gradient)) == (9.0, 6.0)
