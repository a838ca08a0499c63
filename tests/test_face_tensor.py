"""Tensor: construction, conversion, indexing, and its place between numpy, JAX and pickles."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from face_namespace import ms
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from random_examples import examples

import msops
from msops import ops
from msops.errors import ArgumentTypeError, ArgumentValueError, MsopsError

Tensor = ms.Tensor


@settings(deadline=None, max_examples=examples(60))
@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64, np.int8, np.int64, np.uint16, np.bool_]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    )
)
def test_a_numpy_array_survives_the_round_trip(array):
    tensor = Tensor(array)
    assert tensor.shape == array.shape
    assert tensor.dtype == array.dtype
    np.testing.assert_array_equal(tensor.asnumpy(), array)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(tensor)).asnumpy(), array)


@settings(deadline=None, max_examples=examples(60))
@given(data=st.data())
def test_indexing_agrees_with_numpy(data):
    array = np.arange(24.0).reshape(2, 3, 4)
    index = data.draw(hnp.basic_indices(array.shape, allow_newaxis=True))
    np.testing.assert_array_equal(Tensor(array)[index].asnumpy(), array[index])


@settings(deadline=None, max_examples=examples(40))
@given(data=st.data())
def test_item_assignment_agrees_with_numpy(data):
    array = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    index = data.draw(hnp.basic_indices(array.shape, allow_newaxis=False))
    tensor = Tensor(array)
    tensor[index] = 7.9
    array[index] = 7
    np.testing.assert_array_equal(tensor.asnumpy(), array)


def test_item_assignment_leaves_other_handles_alone():
    x = Tensor([1.0, 2.0, 3.0])
    other = x.copy()
    x[Tensor([0, 2])] = Tensor([5.0, 6.0])
    x[x > 5] = 0.0
    assert x.tolist() == [5.0, 2.0, 0.0]
    assert other.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("add_", (1.0,), [2.5, -1.0]),
        ("sub_", (ms.Tensor([1.0, 2.0]),), [0.5, -4.0]),
        ("mul_", (2,), [3.0, -4.0]),
        ("div_", (2,), [0.75, -1.0]),
        ("floor_divide_", (2.0,), [0.0, -1.0]),
        ("remainder_", (2.0,), [1.5, 0.0]),
        ("exp_", (), np.exp([1.5, -2.0])),
        ("log_", (), [np.log(1.5), np.nan]),
        ("sigmoid_", (), 1 / (1 + np.exp([-1.5, 2.0]))),
        ("tanh_", (), np.tanh([1.5, -2.0])),
        ("floor_", (), [1.0, -2.0]),
        ("sign_", (), [1.0, -1.0]),
        ("clamp_", (-1.0, 1.0), [1.0, -1.0]),
        ("masked_fill_", (ms.Tensor([True, False]), 9), [9.0, -2.0]),
        ("fill_", (3,), [3.0, 3.0]),
        ("zero_", (), [0.0, 0.0]),
        ("copy_", (ms.Tensor([7, 8]),), [7.0, 8.0]),
    ],
)
def test_methods_with_an_underscore_change_the_tensor(name, args, expected):
    x = ms.Tensor([1.5, -2.0])
    other = x.copy()
    assert getattr(x, name)(*args) is x
    assert x.dtype == ms.float32
    np.testing.assert_allclose(x.asnumpy(), expected, rtol=1e-6)
    np.testing.assert_array_equal(other.asnumpy(), [1.5, -2.0])


def test_a_tensor_that_changes_keeps_its_shape_and_dtype():
    wide = ms.Tensor([1, 2])
    assert wide.add_(ms.Tensor([3], ms.int32)).dtype == ms.int64
    with pytest.raises(TypeError, match="Int64 holds in place; got float32"):
        wide.div_(2)
    with pytest.raises(ValueError, match=r"shape \(2,\) in place; got \(2, 2\)"):
        wide.mul_(ms.Tensor([[1], [2]]))
    assert wide.tolist() == [4, 5]


@pytest.mark.parametrize("given", [(None,), ("a",), ({},), ([1.0, 2.0],), (), (1, 2, 3)])
def test_a_method_with_an_underscore_says_what_it_takes(given):
    x = ms.Tensor([1.0, 2.0])
    with pytest.raises(ArgumentTypeError) as caught:
        x.add_(*given)
    names = ", ".join(type(value).__name__ for value in given)
    head, _, advice = str(caught.value).splitlines()
    assert head == f"Tensor.add_: expected Tensors or numbers that fit it; got ({names}):"
    assert advice == "Make Tensors of what it should compute with."
    assert x.clamp_(None, 1.5).tolist() == [1.0, 1.5]


ESCAPES = {
    "add_": lambda y, x: y.add_(x),
    "index": lambda y, x: y.__setitem__(0, x[1]),
    "set_": lambda y, x: y.set_(x),
}
USES = {
    "add": lambda y: y + 1,
    "negative": lambda y: -y,
    "asnumpy": lambda y: y.asnumpy(),
    "sin": ops.sin,
    "op": msops.Custom(np.tanh, lambda x: x, lambda x: x),
    "jit": lambda y: msops.jit(lambda x: x * y)(ms.Tensor([1.0, 2.0])),
    "grad": lambda y: msops.grad(lambda x: (x * y).sum())(ms.Tensor([1.0, 2.0])),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("transform", [msops.jit, msops.grad, msops.value_and_grad])
@pytest.mark.parametrize("change", ESCAPES.values(), ids=ESCAPES)
def test_a_tensor_that_a_function_changed_outside_of_it_says_so(change, transform, use):
    y = ms.Tensor([1.0, 2.0])

    def function(x):
        change(y, x)
        return x.sum()

    transform(function)(ms.Tensor([3.0, 4.0]))
    with pytest.raises(ArgumentTypeError) as caught:
        use(y)
    assert str(caught.value) == (
        "Tensor: it was changed or made in a function that is compiled or differentiated, and its "
        "value is known only there.\n"
        "Return the value from that function, or assign it to a Parameter, which keeps it."
    )
    y.set_(ms.Tensor([5.0, 6.0]))
    assert use(y) is not None


@pytest.mark.parametrize("transform", [msops.jit, msops.grad])
def test_a_parameter_keeps_what_a_function_adds_to_it(transform):
    y = ms.Parameter(ms.Tensor([1.0, 2.0]))

    def function(x):
        y.add_(x)
        return x.sum()

    for _ in range(2):
        transform(function)(ms.Tensor([3.0, 4.0]))
    assert y.asnumpy().tolist() == [7, 10]


def test_numpy_data_is_copied_in_and_out():
    # Large: jnp.array returns before it has read 32 MB, and then sees what is written meanwhile.
    array = np.ones(1 << 23, np.float32)
    tensor = Tensor(array)
    array[:] = 7
    out = tensor.asnumpy()
    assert (out == 1).all()
    out[:] = 9
    assert (tensor.asnumpy() == 1).all()


def test_big_endian_and_strided_numpy_arrays():
    array = np.arange(12, dtype=">i4").reshape(3, 4)[::2, ::-1]
    tensor = Tensor(array)
    assert str(tensor.dtype) == "Int32"
    np.testing.assert_array_equal(tensor.asnumpy(), array)


def test_64_bit_tensors_keep_their_width_and_jax_its_flag():
    assert str(Tensor(1).dtype) == "Int64"
    assert str((Tensor(1.0, ms.float64) + 1).dtype) == "Float64"
    assert int(Tensor(2**40)) == 2**40
    assert Tensor(2**40).item() == 2**40
    assert [2**40 + 1][Tensor(0)] == int(Tensor(2**40) + 1)
    assert bool(Tensor(2**40))
    assert float(Tensor(1 / 3, ms.float64)) == 1 / 3
    assert ops.add(Tensor(2**40), 1).item() == 2**40 + 1
    assert Tensor([2**40])[0].item() == 2**40
    assert not jax.config.jax_enable_x64
    assert jnp.asarray(1).dtype == jnp.int32


def test_both_faces_work_in_one_process():
    array = jnp.ones(3)
    assert isinstance(ops.add(array, 1.0), jax.Array)
    assert ops.add(array, 1.0).dtype == jnp.float32
    assert isinstance(ops.add(Tensor([1.0]), array), Tensor)
    assert isinstance(Tensor([1.0]) + array, Tensor)
    assert isinstance(ops.add(1, 2), Tensor)
    assert isinstance(ops.ReduceSum()(array), jax.Array)
    assert isinstance(jnp.sin(Tensor([1.0])), jax.Array)


def test_tensors_are_pytree_nodes():
    doubled = jax.jit(lambda tree: {"y": tree["x"] * 2})({"x": Tensor([1.0, 2.0])})
    assert isinstance(doubled["y"], Tensor)
    assert doubled["y"].tolist() == [2.0, 4.0]
    p = ms.Parameter(Tensor([1.0]), name="p")
    moved = jax.tree.map(lambda v: v + 1, p)
    assert isinstance(moved, ms.Parameter)
    assert (moved.name, moved.tolist()) == ("p", [2.0])


def test_tensors_inside_lists_are_arrays_to_a_kernel_and_come_back_as_tensors():
    kinds = []

    def kernel(x, pair):
        kinds.append([type(array) for array in (x, *pair)])
        return x + pair[0], pair[1]

    op = msops.Custom(kernel, lambda x, pair: (x, pair[1]), lambda x, pair: (x, pair[1]))
    results = op(Tensor([1.0]), [Tensor([2.0]), Tensor(3)])
    assert [result.tolist() for result in results] == [[3.0], 3]
    assert {type(result) for result in results} == {Tensor}
    assert kinds == [[np.ndarray] * 3]


def test_tensor_beside_numpy():
    x = Tensor([1.0, 2.0])
    assert isinstance(np.ones(2, np.float32) + x, Tensor)
    np.testing.assert_allclose(np.sin(x), np.sin([1.0, 2.0]), rtol=1e-6)
    assert np.asarray(x).dtype == np.float32
    assert np.array(x, dtype=np.float64).dtype == np.float64
    assert (x + np.float64(1.0)).dtype == ms.float32


def test_copies_are_equal_and_separate():
    x = Tensor([1.0, 2.0])
    for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), Tensor(x)):
        other[0] = 5.0
        assert x.tolist() == [1.0, 2.0]
    bfloat = Tensor([1.5], ms.bfloat16)
    assert repr(pickle.loads(pickle.dumps(bfloat))) == repr(bfloat)


def test_is_a_key_by_identity():
    x, same = Tensor([1.0, 2.0]), Tensor([1.0, 2.0])
    assert {x: 1}[x] == 1
    assert len({x, same}) == 2
    assert (x == same).tolist() == [True, True]


def test_formats_one_entry_with_a_spec():
    assert f"{Tensor(2.0):.3f} {Tensor([1, 2])}" == "2.000 [1 2]"


def test_a_shape_alone_is_a_placeholder():
    x = Tensor(shape=[4, None], dtype=ms.float32)
    assert x.shape == (4, None)
    assert x.dtype is ms.float32
    assert repr(x) == "Tensor(shape=[4, None], dtype=Float32, value= )"
    for use in (lambda: x + 1, lambda: x.asnumpy(), lambda: x[0], lambda: ops.exp(x)):
        with pytest.raises(ArgumentValueError, match=r"placeholder of shape \[4, None\]"):
            use()


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Tensor("abc"), TypeError, "got str"),
        (lambda: Tensor(), TypeError, "got NoneType"),
        (lambda: Tensor(["a"]), TypeError, "expected one of bool, int8"),
        (lambda: Tensor([[1, 2], [3]]), TypeError, "same length"),
        (lambda: Tensor(np.array([None])), TypeError, "expected one of bool, int8"),
        (lambda: Tensor(2**70), TypeError, "expected one of bool, int8"),
        (lambda: Tensor(1, "float33"), TypeError, "float33"),
        (lambda: Tensor(init=1), ValueError, "expected no init"),
        (lambda: Tensor(shape=["a"], dtype=ms.int8), ValueError, "ints or None"),
        (lambda: Tensor([1.0, 2.0]).item(), ValueError, "expected one entry; got 2"),
        (lambda: bool(Tensor([1.0, 2.0])), ValueError, "ambiguous"),
        (lambda: int(Tensor([1.0, 2.0])), ValueError, "expected one entry; got 2"),
        (lambda: len(Tensor(1.0)), TypeError, "no length"),
        (lambda: list(Tensor(1.0)), TypeError, "cannot be iterated"),
        (lambda: [0][Tensor(0.0)], TypeError, "integer Tensor of one entry"),
        (lambda: Tensor([1.0]).astype("nope"), TypeError, "nope"),
        (lambda: ops.ReduceSum(1, 2), TypeError, r"settings \(keep_dims\)"),
        (lambda: ops.ReduceSum(keepdims=True), TypeError, r"settings \(keep_dims\)"),
        (lambda: ops.BroadcastTo(), TypeError, r"settings \(shape\)"),
    ],
)
def test_bad_input_is_explained(make, error, text):
    with pytest.raises(error, match=text) as caught:
        make()
    assert isinstance(caught.value, MsopsError)


@pytest.mark.parametrize("index", [5, -3, (0, 3), (..., 3), (None, 2), (slice(None), -4)])
def test_an_index_out_of_range_raises(index):
    with pytest.raises(IndexError, match="out of range for axis"):
        Tensor(np.zeros((2, 3)))[index]


@pytest.mark.parametrize("index", ["a", 1.5])
def test_what_is_no_index_raises(index):
    with pytest.raises(IndexError, match="expected int, slice"):
        Tensor([1.0, 2.0])[index]


@pytest.mark.parametrize("other", [None, "a", object()])
def test_an_operator_refuses_what_is_no_number(other):
    with pytest.raises(TypeError, match="unsupported operand"):
        Tensor([1.0]) + other


def test_parameters_change_by_assignment():
    p = ms.Parameter(Tensor([1.0, 2.0]), name="p")
    assert p.set_data(Tensor([5, 6])) is p
    assert (p.dtype, p.tolist()) == (ms.float32, [5.0, 6.0])
    assert p.assign_value(Tensor([7.0, 8.0, 9.0])).shape == (3,)
    p[0] = 1.0
    assert p.tolist() == [1.0, 8.0, 9.0]
    assert type(p + 1) is Tensor
    assert ops.assign(p, 2.0).tolist() == 2.0
    clone = p.clone()
    clone.set_data(3.0)
    assert (p.item(), clone.item(), clone.name) == (2.0, 3.0, "p")
    for other in (copy.copy(p), copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert repr(other) == repr(p)
        assert other is not p


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ms.Parameter(1.0, name=3), "expected name str or None"),
        (lambda: ms.Parameter("x"), "got str"),
        (lambda: ms.Parameter(1.0).set_data(np.ones(2)), "got ndarray"),
        (lambda: ms.ParameterTuple([1]), "expected Parameters; got int"),
        (lambda: ops.assign(Tensor(1.0), 2.0), "expected a Parameter"),
    ],
)
def test_bad_parameters_are_explained(make, text):
    with pytest.raises(ArgumentTypeError, match=text):
        make()


def test_pieces_and_repeats_are_mindspores():
    """Values are those of MindSpore 2.10.0, but of `repeat`, which it has on an Ascend only."""
    x = ms.Tensor(np.arange(10, dtype=np.float32).reshape(2, 5))
    array = x.asnumpy()
    pieces = x.chunk(2, -1)
    assert isinstance(pieces, tuple)
    for piece, expected in zip(pieces, (array[:, :3], array[:, 3:]), strict=True):
        np.testing.assert_array_equal(piece.asnumpy(), expected)
    assert len(x.chunk(7, 1)) == 5
    index = ms.Tensor([1, 0, 1], ms.int32)
    for selected in (x.index_select(0, index), x.index_select(dim=0, index=index)):
        np.testing.assert_array_equal(selected.asnumpy(), array[[1, 0, 1]])
    np.testing.assert_array_equal(x.repeat((1, 2)).asnumpy(), np.tile(array, (1, 2)))
    np.testing.assert_array_equal(x.repeat(2, 1, 1).asnumpy(), np.tile(array, (2, 1, 1)))
    np.testing.assert_array_equal(x.repeat_interleave(2).asnumpy(), np.repeat(array, 2))
    counts = ms.Tensor([1, 2], ms.int32)
    np.testing.assert_array_equal(
        x.repeat_interleave(counts, 0).asnumpy(), np.repeat(array, [1, 2], 0)
    )
    assert x.flatten(start_dim=1).shape == (2, 5)
    for wrong in (
        lambda: x.chunk(0),
        lambda: x.chunk(2, 2),
        lambda: x.repeat(2),
        lambda: x.repeat_interleave(-1, 0),
    ):
        with pytest.raises(ValueError, match=r"Tensor\..*: expected"):
            wrong()


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_a_quotient_of_16_bits_is_rounded_down_once(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-100, 100, 5000).astype(dtype)
    y = rng.uniform(0.01, 1, 5000).astype(dtype)
    got = ops.floor_div(ms.Tensor(x), ms.Tensor(y)).asnumpy()
    np.testing.assert_array_equal(got.astype(np.float64), (x // y).astype(np.float64))
