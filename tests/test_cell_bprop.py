"""`Cell.bprop`: a gradient of the author's own, in both modes, as MindSpore takes it.

Expected values follow from the rules by hand; those where MindSpore's choice is not obvious (the
gradient of Parameters, gradients of gradients, casts) were seen with MindSpore 2.7.2.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from face_namespace import ms

from msops.errors import GradientTypeError, GradientValueError

Tensor, Parameter, Cell = ms.Tensor, ms.Parameter, ms.nn.Cell


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"], autouse=True)
def mode(request):
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


def x():
    return Tensor([1.0, 2.0, 3.0])


def make(construct, bprop, **attributes):
    """Returns a Cell with such methods and attributes."""
    net = type("Net", (Cell,), {"construct": construct, "bprop": bprop})()
    for name, value in attributes.items():
        setattr(net, name, value)
    return net


def tens():
    return make(lambda self, x: x * x, lambda self, x, out, dout: (10 * dout,))


class Around(Cell):
    """Another Cell inside one without a bprop."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.weight = Parameter(Tensor(2.0), name="weight")

    def construct(self, x):
        return self.inner(x * self.weight) * 3


def test_bprop_is_the_gradient():
    assert ms.grad(tens())(x()).tolist() == [10, 10, 10]
    assert tens()(x()).tolist() == [1, 4, 9]


def test_bprop_of_a_nested_cell_is_one_link_of_the_chain():
    net = Around(tens())
    by_input, by_weight = ms.grad(net, 0, net.weight)(x())
    assert by_input.tolist() == [60, 60, 60]
    assert by_weight.item() == 30 * (1 + 2 + 3)


def test_a_base_class_may_define_it():
    class Derived(type(tens())):
        def construct(self, x):
            return x * 7

    assert ms.grad(Derived())(x()).tolist() == [10, 10, 10]


def test_it_gets_inputs_the_result_and_its_gradient():
    net = make(
        lambda self, x, y: (x * y, x + y),
        lambda self, x, y, out, dout: (out[0] * dout[0] * x, out[1] * dout[1]),
    )
    y = Tensor([4.0, 5.0, 6.0])
    gradients = ms.ops.GradOperation(get_all=True, sens_param=True)(net)(
        x(), y, (Tensor([1.0, 1.0, 2.0]), Tensor([1.0, 3.0, 1.0]))
    )
    assert [gradient.tolist() for gradient in gradients] == [[4, 20, 108], [5, 21, 9]]


@pytest.mark.parametrize("value", [2, 0.5, True, "two", None, (1, 2)])
def test_what_is_no_tensor_reaches_it_as_it_is(value):
    seen = []

    def bprop(self, x, value, out, dout):
        seen.append(value)
        return dout * 100, 0

    net = make(lambda self, x, value: x, bprop)
    assert ms.grad(net)(x(), value).tolist() == [100, 100, 100]
    assert [type(entry) for entry in seen] == [type(value)]
    assert seen == [value]


def test_an_int_may_bound_a_slice():
    net = make(
        lambda self, x, pad: ms.Tensor(jnp.pad(x.value, pad)),
        lambda self, x, pad, out, dout: (dout[pad:-pad], 0),
    )
    assert ms.grad(net)(x(), 1).tolist() == [1, 1, 1]


def test_named_inputs_come_by_position_and_absent_ones_not_at_all():
    net = make(
        lambda self, x, k=2.0: x * k,
        lambda self, *given: (given[-1] * 100 * len(given),) * (len(given) - 2),
    )

    def by_name(x):
        return net(x, k=3.0)

    assert ms.grad(net)(x()).tolist() == [300, 300, 300]
    assert ms.grad(by_name)(x()).tolist() == [400, 400, 400]


def test_lists_of_tensors_have_lists_of_gradients():
    net = make(
        lambda self, xs, y: xs[0] * xs[1] * y,
        lambda self, xs, y, out, dout: ((dout * 5, dout * xs[0]), dout * 7),
    )
    (first, second), third = ms.grad(net, (0, 1))((x(), x()), x())
    assert first.tolist() == [5, 5, 5]
    assert second.tolist() == [1, 2, 3]
    assert third.tolist() == [7, 7, 7]


def test_parameters_read_inside_have_no_gradient():
    net = make(
        lambda self, x: x * self.weight,
        lambda self, x, out, dout: (dout * self.weight * 100,),
        weight=Parameter(Tensor(3.0), name="weight"),
    )
    by_input, by_weight = ms.grad(net, 0, net.weight)(x())
    assert by_input.tolist() == [300, 300, 300]
    assert by_weight.item() == 0
    net.weight.set_data(Tensor(4.0))
    assert ms.grad(net)(x()).tolist() == [400, 400, 400]
    compiled = ms.jit(net)
    assert ms.grad(compiled)(x()).tolist() == [400, 400, 400]
    net.weight.set_data(Tensor(5.0))
    assert ms.grad(compiled)(x()).tolist() == [500, 500, 500]


def test_a_parameter_that_is_an_input_has_the_gradient_of_that_input():
    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(Tensor(3.0), name="weight")
            self.scale = make(
                lambda self, x, w: x * w, lambda self, x, w, out, dout: (dout, 50 * w * dout.sum())
            )

        def construct(self, x):
            return self.scale(x, self.weight)

    net = Net()
    by_input, by_weight = ms.grad(net, 0, net.weight)(x())
    assert by_input.tolist() == [1, 1, 1]
    assert by_weight.item() == 450


def test_assigned_parameters_come_back_out_and_bprop_sees_them():
    def construct(self, x):
        self.count = self.count + 1
        return x * self.count

    net = make(
        construct,
        lambda self, x, out, dout: (dout * self.count,),
        count=Parameter(Tensor(0.0), name="count", requires_grad=False),
    )
    assert ms.grad(net)(x()).tolist() == [1, 1, 1]
    assert net(x()).tolist() == [2, 4, 6]
    assert ms.grad(net)(x()).tolist() == [3, 3, 3]
    assert net.count.item() == 3


def test_gradients_of_gradients_go_through_bprop():
    net = make(lambda self, x: x * x, lambda self, x, out, dout: (dout * x * out,))
    assert ms.grad(ms.grad(net))(x()).tolist() == [2, 20, 90]


def test_jit_inside_and_around():
    net = tens()
    assert ms.grad(ms.jit(net))(x()).tolist() == [10, 10, 10]
    assert ms.grad(ms.jit(lambda x: net(x) * 2))(x()).tolist() == [20, 20, 20]
    assert ms.jit(ms.grad(net))(x()).tolist() == [10, 10, 10]


def test_arrays_and_transformations_of_jax():
    net = make(lambda self, x, w: x * w, lambda self, x, w, out, dout: (dout * 10, dout * w))
    value, w = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    loss = lambda x, w: net(x, w).sum()  # noqa: E731
    by_x, by_w = jax.jit(jax.grad(loss, (0, 1)))(value, w)
    np.testing.assert_array_equal(by_x, [10, 10])
    np.testing.assert_array_equal(by_w, [3, 4])
    batched = jax.vmap(jax.grad(loss), (0, None))(jnp.ones((3, 2)), w)
    np.testing.assert_array_equal(batched, np.full((3, 2), 10))
    with pytest.raises(GradientTypeError, match=r"Cell 'Net': forward mode .* reverse mode"):
        jax.jvp(loss, (value, w), (value, w))


def test_integer_results_and_inputs():
    net = make(
        lambda self, x, i: (x[i], i + 1),
        lambda self, x, i, out, dout: (ms.ops.zeros_like(x) + dout[0].sum() + dout[1].sum(), i),
    )
    assert ms.grad(lambda x, i: net(x, i)[0])(x(), Tensor([0, 1])).tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    "bprop",
    [
        lambda self, x, out, dout: dout * 9,
        lambda self, x, out, dout: (dout * 9, dout),
        lambda self, x, out, dout: (dout.astype(ms.float64) * 9,),
        lambda self, x, out, dout: [9 * np.ones(3)],
    ],
    ids=["bare", "more", "wider", "numpy"],
)
def test_a_gradient_is_fitted_to_its_input(bprop):
    gradient = ms.grad(make(lambda self, x: x * x, bprop))(x())
    assert gradient.tolist() == [9, 9, 9]
    assert gradient.dtype == ms.float32


def test_none_is_a_zero_gradient():
    net = make(lambda self, x, y: x * y, lambda self, x, y, out, dout: (None, dout * 2))
    gradients = ms.grad(net, (0, 1))(x(), x())
    assert [gradient.tolist() for gradient in gradients] == [[0, 0, 0], [2, 2, 2]]


@pytest.mark.parametrize(
    ("bprop", "error", "text"),
    [
        (
            lambda self, x, y, out, dout: (dout,),
            GradientValueError,
            r"bprop of Cell 'Net': expected 2 gradient\(s\), one per input; got 1",
        ),
        (
            lambda self, x, y, out, dout: dout,
            GradientTypeError,
            "bprop of Cell 'Net': expected a tuple of 2 gradients, one per input; got Tensor",
        ),
        (
            lambda self, x, y, out, dout: (dout[:2], dout),
            GradientValueError,
            r"bprop of Cell 'Net': expected a gradient of shape \(3,\), as the input has; "
            r"got \(2,\)",
        ),
        (
            lambda self, x, y, out, dout: ((dout, dout), dout),
            GradientValueError,
            r"bprop of Cell 'Net': expected 1 gradient\(s\) for input 0, as many as it has entries;"
            " got 2",
        ),
        (
            lambda self, x, y, out, dout: ("dout", dout),
            GradientValueError,
            "as the input has; got str",
        ),
    ],
)
def test_what_cannot_be_a_gradient_is_explained(bprop, error, text):
    net = make(lambda self, x, y: x * y, bprop)
    with pytest.raises(error, match=text):
        ms.grad(net)(x(), x())
