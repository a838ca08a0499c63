"""Names that operator scripts import: primitives of their own, PyFunc, _checkparam, caches."""

from __future__ import annotations

import numpy as np
import pytest
from face_namespace import ms

import msops
from msops import _checkparam as checks
from msops.errors import ArgumentTypeError, ArgumentValueError
from msops.ops import AddN, PrimitiveWithInfer, PyFunc, operations, prim_attr_register
from msops.ops._primitive_cache import _get_cache_prim


class Scaled(PrimitiveWithInfer):
    @prim_attr_register
    def __init__(self, factor, axis=0):
        self.init_prim_io_names(inputs=["x"], outputs=["y"])
        self.op = msops.Custom(lambda x: x * np.float32(factor), lambda x: x, lambda x: x)

    def infer_shape(self, shape):
        return shape

    def __call__(self, x):
        return self.op(x)


class Bare(PrimitiveWithInfer):
    @prim_attr_register
    def __init__(self):
        pass


def test_an_operator_of_a_script_runs_its_custom():
    scaled = Scaled(3.0)
    assert scaled(ms.Tensor([1.0, 2.0])).asnumpy().tolist() == [3.0, 6.0]
    assert (scaled.name, scaled.factor, scaled.axis) == ("Scaled", 3.0, 0)
    assert scaled.init_attrs == {"factor": 3.0, "axis": 0}
    assert scaled.attrs["input_names"] == ["x"]
    assert repr(scaled) == "Prim[Scaled]"
    with pytest.raises(ArgumentTypeError, match=r"Make an ops\.Custom in __init__"):
        Bare()(ms.Tensor([1.0]))


class Doubled(msops.Custom):
    def __init__(self, factor):
        self.factor = factor
        super().__init__(self.run, self.infer_shape, self.infer_dtype, "pyfunc", self.gradient)

    def run(self, x):
        return x * np.float32(self.factor)

    def infer_shape(self, x):
        return x

    def infer_dtype(self, x):
        return x

    def gradient(self, x, out, dout):
        return (dout * self.factor,)


def test_a_subclass_of_custom_infers_by_its_own_methods():
    x = ms.Tensor([1.0, 2.0])
    for factor in (2, 3):
        op = Doubled(factor)
        assert op(x).asnumpy().tolist() == [factor, 2 * factor]
        assert op(x).asnumpy().tolist() == [factor, 2 * factor]
        assert ms.grad(op)(x).asnumpy().tolist() == [factor, factor]


def test_py_func_takes_its_types_and_shapes():
    both = PyFunc(
        lambda x: (x + 1, x > 1), [ms.float32], [(2,)], [ms.float32, ms.bool_], [(2,)] * 2
    )
    total, is_large = both(ms.Tensor([1.0, 2.0]))
    assert total.asnumpy().tolist() == [2.0, 3.0]
    assert is_large.asnumpy().tolist() == [False, True]
    add = PyFunc(np.add, [ms.float32] * 2, [(2,)] * 2, [ms.float32], [(2,)])
    x, y = ms.Tensor([1.0, 2.0]), ms.Tensor([10.0, 20.0])
    for inputs in ((x, y), ((x, y),), ([x, y],)):
        assert add(*inputs)[0].asnumpy().tolist() == [11.0, 22.0]
    with pytest.raises(ArgumentTypeError, match="expected as many out_types as out_shapes; got 1"):
        PyFunc(np.negative, [ms.float32], [(2,)], [ms.float32], [])


def test_a_primitive_is_made_once_for_its_settings():
    make = _get_cache_prim(operations.ReduceSum)
    assert make(True) is make(True)
    assert make(True) is not make(1)
    assert _get_cache_prim(operations.ReduceSum)(keep_dims=True) is make(keep_dims=True)


# What MindSpore 2.7.2's functions of these names take, and the class of their error.
ACCEPTED = [
    (checks.check_int, (3, 3, checks.EQ), 3),
    (checks.check_positive_int, (1, "k", "Op"), 1),
    (checks.check_non_negative_int, (0,), 0),
    (checks.check_int_range, (3, 0, 3, checks.INC_BOTH), 3),
    (checks.check_float_range, (0.5, 0.0, 1.0, checks.INC_NEITHER), 0.5),
    (checks.check_positive_float, (0.5,), 0.5),
    (checks.check_bool, (True,), True),
    (checks.check_string, ("a", ["a", "b"]), "a"),
    (checks.check_value_type, ("x", True, [int, bool]), True),
    (checks.check_value_type, ("x", 2, int), 2),
    (checks.check, ("a", 1, "b", 2, checks.LT), 1),
    (checks.check_tensor_dtype_valid, ("x", ms.float32, [ms.float32], "Op"), ms.float32),
]
REFUSED = [
    (checks.check_int, (True, 1, checks.EQ, "n", "Op"), ArgumentTypeError, "Op: expected n to be"),
    (
        checks.check_positive_int,
        (0, "k", "Op"),
        ArgumentValueError,
        "k to be greater than 0; got 0",
    ),
    (checks.check_int_range, (3, 0, 3, checks.INC_LEFT), ArgumentValueError, r"in \[0, 3\); got 3"),
    (checks.check_float_range, (0.0, 0.0, 1.0, checks.INC_RIGHT), ArgumentValueError, "got 0.0"),
    (checks.check_is_float, (float("nan"),), ArgumentValueError, "a finite float; got nan"),
    (checks.check_bool, (1, "b", "Op"), ArgumentTypeError, "b to be a bool; got 1"),
    (checks.check_string, ("z", ["a", "b"], "m"), ArgumentValueError, "one of 'a', 'b'; got 'z'"),
    (checks.check_value_type, ("x", True, [int]), ArgumentTypeError, "of type int; got True"),
    (checks.check_value_type, ("x", 1.5, [int, bool]), ArgumentTypeError, "int or bool; got 1.5"),
    (checks.check, ("a", 1, "b", 2), ArgumentValueError, "a to be equal to b, 2; got 1"),
    (
        checks.check_tensors_dtypes_same_and_valid,
        ({"x": ms.float32, "y": ms.int32}, [ms.float32, ms.int32], "Op"),
        ArgumentTypeError,
        "y to be Float32, as the others; got",
    ),
]


@pytest.mark.parametrize(("function", "arguments", "value"), ACCEPTED)
def test_a_check_returns_what_it_accepts(function, arguments, value):
    assert function(*arguments) == value


@pytest.mark.parametrize(("function", "arguments", "error", "text"), REFUSED)
def test_a_check_refuses_as_mindspore_does(function, arguments, error, text):
    with pytest.raises(error, match=text):
        function(*arguments)


def test_parts_and_paddings_that_no_array_has():
    x = ms.Tensor([[1.0, 2.0]])
    with pytest.raises(ArgumentValueError, match=r"shape \(1, 2\); got begin \(0, 1\) and size"):
        ms.ops.slice(x, (0, 1), (1, 2))
    with pytest.raises(ArgumentValueError, match="paddings of 0 or more"):
        operations.Pad(((0, -1), (0, 0)))(x)


@pytest.mark.parametrize("axes", [(2, -1), (0, 2), (-3, 1), (1, 0)])
def test_flatten_refuses_axes_that_are_not_there(axes):
    with pytest.raises(ArgumentValueError, match="expected start_dim and end_dim to be axes"):
        ms.ops.flatten(ms.Tensor(np.zeros((2, 3))), start_dim=axes[0], end_dim=axes[1])


def test_flatten_takes_arrays_without_elements():
    empty = ms.Tensor(np.zeros((0, 2, 3)))
    assert ms.ops.flatten(empty).shape == (0, 6)
    assert ms.ops.flatten(empty, start_dim=0, end_dim=1).shape == (0, 3)


@pytest.mark.parametrize("k", [-1, 4])
def test_topk_refuses_a_number_that_is_not_there(k):
    with pytest.raises(ArgumentValueError, match="expected k from 0 to 3"):
        ms.ops.topk(ms.Tensor([1.0, 2.0, 3.0]), k)


@pytest.mark.parametrize("kind", [float, np.float32, ms.Tensor])
def test_arange_of_floats_of_any_kind_is_of_floats(kind):
    got = ms.ops.arange(kind(0.0), kind(1.0), kind(0.25))
    assert got.dtype == ms.float32
    assert got.tolist() == [0, 0.25, 0.5, 0.75]


@operations._ms_pyfunc(infer_func=lambda pair, factor: (pair[0], pair[1]))
def scaled(pair, factor):
    assert isinstance(pair[0], ms.Tensor)
    return AddN()(pair) * factor, pair[1] + factor


@pytest.mark.parametrize("factor", [2, 2.0, True])
@pytest.mark.parametrize("kind", [tuple, list])
def test_a_function_of_tensors_is_an_operator(factor, kind):
    x, y = ms.Tensor([1.0, 2.0], ms.float16), ms.Tensor([3.0, 5.0], ms.float16)
    for call in (scaled, ms.jit(lambda *args: scaled(*args))):
        total, shifted = call(kind((x, y)), factor)
        assert total.dtype == ms.float16
        np.testing.assert_array_equal(total.asnumpy(), np.array([4.0, 7.0]) * factor)
        np.testing.assert_array_equal(shifted.asnumpy(), np.array([3.0, 5.0]) + factor)
