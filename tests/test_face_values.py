"""Values of MindSpore's face at edges: ties, bounds, zeros, negative operands, what does not fit.

The values are those of MindSpore 2.10.0 on a CPU, unless a test says that they differ.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from face_namespace import ms

import msops
from msops import ops
from msops.errors import ArgumentValueError, KernelError

pytestmark = pytest.mark.usefixtures("as_users_compile")

Tensor = ms.Tensor
MODES = [
    pytest.param(ms.PYNATIVE_MODE, id="pynative"),
    pytest.param(ms.GRAPH_MODE, id="graph"),
]


@pytest.fixture(params=MODES)
def mode(request):
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


def f32(*values):
    return Tensor(list(values), ms.float32)


def i32(*values):
    return Tensor(list(values), ms.int32)


class Net(ms.nn.Cell):
    """A function as a Cell, which GRAPH_MODE compiles."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def construct(self, *inputs):
        return self.function(*inputs)


def same(found: ms.Tensor, dtype: str, expected: list) -> None:
    """Compares dtype and values, zeros by their sign, too."""
    assert str(found.dtype) == dtype
    # As text: -0.0 is not 0.0 there.
    assert str(found.asnumpy().tolist()) == str(expected)


COMPUTED = {
    "Mod of floats": (ops.Mod(), (f32(-7, 7, -7, 5.5), f32(3, -3, -3, -2))),
    "Mod of integers": (ops.Mod(), (i32(-7, 7, -7, 5), i32(3, -3, -3, -2))),
    "FloorMod": (ops.FloorMod(), (f32(-7, -6, 6, -0.0), f32(3, 3, -3, 2))),
    "FloorDiv by 0": (ops.FloorDiv(), (i32(7, -7, 0), i32(0, 0, 0))),
    "FloorDiv of UInt8 by 0": (
        ops.FloorDiv(),
        (Tensor([7, 0], ms.uint8), Tensor([0, 0], ms.uint8)),
    ),
    "where of a scalar": (ops.where, (Tensor(True), 1.5, i32(1, 2))),
    "where of scalars": (ops.where, (Tensor([True, False]), 1, 2.5)),
    "where of ints": (ops.where, (Tensor([True, False]), Tensor([True, False]), 2)),
    "where that wraps": (ops.where, (Tensor([True, False]), Tensor([1, 2], ms.int8), 300)),
    "select": (ops.select, (Tensor([True, False]), i32(1, 2), 3.5)),
    "Int8 * 300": (lambda x: x * 300, (Tensor([1], ms.int8),)),
    "300 - UInt8": (lambda x: 300 - x, (Tensor([1], ms.uint8),)),
    "UInt8 * -1": (lambda x: x * -1, (Tensor([1], ms.uint8),)),
    "Int8 == 300": (lambda x: x == 300, (Tensor([44], ms.int8),)),
    "Int32 * (2**40 + 5)": (lambda x: x * (2**40 + 5), (i32(1),)),
    "maximum that wraps": (ops.maximum, (Tensor([1], ms.int8), 300)),
    "clamp": (ops.clamp, (f32(0.0, -0.0, 5, -5), 0.0, 1.0)),
    "clamp below -0.0": (ops.clamp, (f32(0.0, -0.0, -5), -1.0, -0.0)),
    "clamp of integers": (ops.clamp, (i32(0, 5, -5), 0.5, 1.5)),
    "clamp without an interval": (ops.clamp, (f32(0, 5, -5), 3.0, 1.0)),
    "clip_by_value": (ops.clip_by_value, (i32(0, 5, -5), 0.5, 1.5)),
    "clip_by_value of one bound": (ops.clip_by_value, (i32(0, 5, -5), None, 3)),
}
RECORDED = {
    "Mod of floats": ("Float32", [-1.0, 1.0, -1.0, 1.5]),
    "Mod of integers": ("Int32", [-1, 1, -1, 1]),
    "FloorMod": ("Float32", [2.0, 0.0, 0.0, 0.0]),
    "FloorDiv by 0": ("Int32", [2147483647, -2147483648, 0]),
    "FloorDiv of UInt8 by 0": ("UInt8", [255, 0]),
    "where of a scalar": ("Float32", [1.5, 1.5]),
    "where of scalars": ("Float32", [1.0, 2.5]),
    "where of ints": ("Int64", [1, 2]),
    "where that wraps": ("Int8", [1, 44]),
    "select": ("Float32", [1.0, 3.5]),
    "Int8 * 300": ("Int8", [44]),
    "300 - UInt8": ("UInt8", [43]),
    "UInt8 * -1": ("UInt8", [255]),
    "Int8 == 300": ("Bool", [True]),
    "Int32 * (2**40 + 5)": ("Int32", [5]),
    "maximum that wraps": ("Int8", [44]),
    "clamp": ("Float32", [0.0, 0.0, 1.0, 0.0]),
    "clamp below -0.0": ("Float32", [-0.0, -0.0, -1.0]),
    "clamp of integers": ("Float32", [0.5, 1.5, 0.5]),
    "clamp without an interval": ("Float32", [1.0, 1.0, 1.0]),
    "clip_by_value": ("Int32", [0, 1, 0]),
    "clip_by_value of one bound": ("Int32", [0, 3, -5]),
}


@pytest.mark.parametrize("case", COMPUTED)
def test_values_are_mindspores(case, mode):
    function, inputs = COMPUTED[case]
    same(Net(function)(*inputs), *RECORDED[case])


SLOPES = {
    "abs": (ops.abs, f32(0.0, -0.0, -1, 2), [0.0, 0.0, -1.0, 1.0]),
    "Tensor.abs": (lambda x: x.abs(), f32(0.0, -1), [0.0, -1.0]),
    "abs()": (lambda x: abs(x), f32(0.0, -1), [0.0, -1.0]),
    "clamp": (lambda x: ops.clamp(x, 0.0, 1.0), f32(0, 1, -1, 2, 0.5), [1.0, 1.0, 0.0, 0.0, 1.0]),
    "Tensor.clip": (lambda x: x.clip(0.0, 1.0), f32(0, 1, -1, 2), [1.0, 1.0, 0.0, 0.0]),
    "clip_by_value": (
        lambda x: ops.clip_by_value(x, 0.0, 1.0),
        f32(0, 1, -1, 2, 0.5),
        [0.5, 0.5, 0.0, 0.0, 1.0],
    ),
    "clamp without an interval": (lambda x: ops.clamp(x, 3.0, 1.0), f32(0, 5, 3, 1, 2), [0.0] * 5),
    "maximum": (lambda x: ops.maximum(x, 1.0), f32(0, 1, 2), [0.0, 0.5, 1.0]),
}


@pytest.mark.parametrize("case", SLOPES)
def test_slopes_at_ties_are_mindspores(case, mode):
    function, x, expected = SLOPES[case]
    same(ms.grad(function)(x), "Float32", expected)


def test_the_slope_of_clamp_belongs_to_the_bound_beyond_it():
    x, low, high = f32(0, 1, -1, 2), f32(0, 0, 0, 0), f32(1, 1, 1, 1)
    found = ms.grad(ops.clamp, (0, 1, 2))(x, low, high)
    for slope, expected in zip(
        found, ([1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]), strict=True
    ):
        same(slope, "Float32", expected)


def test_values_pass_through_transformations_of_jax():
    x = jnp.array([0.0, -1.0, 2.0])
    slopes = jax.jit(jax.vmap(jax.grad(lambda v: ops.abs(v) + ops.clamp(v, 0.0, 2.0))))(x)
    assert slopes.tolist() == [1.0, -1.0, 2.0]
    assert jax.hessian(lambda v: (ops.abs(v) * v).sum())(x)[1, 1] == -2.0


@pytest.mark.parametrize("exponent", [-1, -2, i32(-1, -1, -1, -1, -1)])
def test_negative_powers_of_integers_are_quotients_truncated(exponent, mode):
    """MindSpore has the least integer for 0 ** -1; the loop language, and msops, 0."""
    even = exponent == -2 if isinstance(exponent, int) else False
    expected = [0, 1 if even else -1, 0, 1, 0]
    same(Net(ops.pow)(i32(-2, -1, 0, 1, 2), exponent), "Int32", expected)


def test_powers_of_integers_wrap(mode):
    same(Net(ops.pow)(Tensor([2, 3], ms.int8), Tensor([9, 7], ms.int8)), "Int8", [0, -117])


def test_remainders_by_0_of_integers_are_0(mode):
    """As in the loop language; MindSpore casts a NaN."""
    same(Net(ops.Mod())(i32(7, -7), i32(0, 0)), "Int32", [0, 0])
    same(Net(ops.FloorMod())(i32(7, -7), i32(0, 0)), "Int32", [0, 0])


def test_nan_passes_through_clamp(mode):
    """MindSpore has the lower bound, as its comparisons come out."""
    same(Net(ops.clamp)(f32(np.nan, 0.5), 0.0, 1.0), "Float32", [np.nan, 0.5])


def test_an_int_that_no_dtype_holds_is_refused():
    with pytest.raises(ArgumentValueError, match="from -2\\*\\*63 to 2\\*\\*64 - 1"):
        Tensor([1], ms.int64) * 2**70


@pytest.mark.parametrize(
    ("indices", "outside"), [(i32(5), 5), (i32(0, -4), -4), (Tensor([2**40], ms.int64), 2**40)]
)
def test_gather_of_an_index_out_of_range_is_an_error(indices, outside):
    for function in (ops.gather, ops.Gather(), ms.grad(ops.gather)):
        with pytest.raises(KernelError, match=f"from -3 to 2 along axis 0; got {outside}"):
            function(f32(1, 2, 3), indices, 0)
    assert issubclass(KernelError, RuntimeError)
    with pytest.raises(KernelError, match=f"got {outside}"):
        ops.gather(jnp.arange(3.0), np.asarray(indices.asnumpy()), 0)


@pytest.mark.parametrize(
    "function",
    [lambda x, i: ops.gather(x, i, 0), lambda x, i: x[i], lambda x, i: x.__setitem__(i, 1.0)],
)
def test_an_index_of_an_axis_without_elements_is_an_error(function):
    empty = Tensor(np.zeros((0, 2), np.float32))
    for call in (function, ms.jit(function)):
        with pytest.raises((IndexError, KernelError), match=r"extent (is )?0|from 0 to -1"):
            call(empty, i32(0, 1))


def test_false_times_infinity_is_nan_in_programs_too(mode):
    flags, numbers = Tensor([False, True]), f32(np.inf, np.inf)
    for product in (lambda b, x: b * x, lambda b, x: x * b, lambda b, x: (x < 1) * x):
        assert np.isnan(Net(product)(flags, numbers).asnumpy()[0])
    same(Net(lambda b: b / 0)(flags), "Float32", [np.nan, np.inf])


def set_at(x, index):
    y = x + 0
    y[index] = 9.0
    return y


TAKERS = {
    "gather": (lambda x, i: ops.gather(x, i, 0), "ops.gather"),
    "item": (lambda x, i: x[i], "Tensor index"),
    "rows": (lambda x, i: x.expand_dims(0)[:, i], "Tensor index"),
    "assignment": (set_at, "Tensor index"),
}


@pytest.mark.parametrize("taker", TAKERS)
def test_compiled_programs_end_at_an_index_out_of_range(taker, mode):
    take, who = TAKERS[taker]
    x = f32(1, 2, 3)
    for compiled in (Net(take), ms.jit(take)):
        expected = take(x, i32(-3, 2)).asnumpy()
        assert (compiled(x, i32(-3, 2)).asnumpy() == expected).all()
        for outside in -4, 3, 2**31 - 1:
            with pytest.raises((KernelError, IndexError), match=f"{who}: .*{outside}"):
                compiled(x, i32(2, outside)).asnumpy()
    gradient = ms.grad(Net(lambda x, i: take(x, i).sum()))
    assert gradient(x, i32(-3, 2)).shape == (3,)
    with pytest.raises((KernelError, IndexError), match="100"):
        gradient(x, i32(1, 100)).asnumpy()


@pytest.mark.parametrize("dtype", [ms.int8, ms.int64, ms.uint8, ms.uint64], ids=str)
@pytest.mark.parametrize("extent", [1, 100, 128, 300])
def test_compiled_programs_compare_indices_of_every_width(dtype, extent):
    take = ms.jit(TAKERS["gather"][0])
    x = Tensor(np.arange(extent), ms.int32)
    limits = np.iinfo(str(dtype).lower())
    for index in {limits.min, -extent - 1, -extent, -1, 0, extent - 1, extent, limits.max}:
        if not limits.min <= index <= limits.max:
            continue
        indices = Tensor(np.array([0] * 20 + [index], limits.dtype))
        if -extent <= index < extent:
            for taken in take(x, indices), x[indices]:
                assert taken.asnumpy()[-1] == index % extent
        else:
            with pytest.raises(KernelError, match=f"from {-extent} to .*got {index}\\."):
                take(x, indices).asnumpy()


def test_elements_of_vmap_and_indices_of_nothing(mode):
    take = jax.vmap(TAKERS["gather"][0], in_axes=(None, 0))
    rows = np.array([[0, 1], [2, 3]], np.int32)
    assert take(f32(1, 2, 3, 4), Tensor(rows)).asnumpy().tolist() == [[1, 2], [3, 4]]
    with pytest.raises(KernelError, match=r"ops\.gather: expected .*got 3"):
        take(f32(1, 2, 3), Tensor(rows)).asnumpy()
    same(Net(TAKERS["gather"][0])(f32(1, 2), Tensor(np.zeros(0, np.int32))), "Float32", [])


def test_exported_programs_do_not_compare_indices():
    def take(x, i):
        return ops.gather(x, i, 0)

    exported = jax.export.export(jax.jit(take))(jnp.arange(3.0), jnp.array([5]))
    assert np.isnan(exported.call(jnp.arange(3.0), jnp.array([5]))).all()


def test_gather_counts_negative_indices_from_the_end_and_takes_none():
    same(ops.gather(f32(1, 2, 3), i32(-1, 0), 0), "Float32", [3.0, 1.0])
    same(ops.gather(f32(1, 2, 3), Tensor(np.zeros(0, np.int32)), 0), "Float32", [])


@pytest.mark.parametrize("index", [i32(5), [0, 5], np.array([-4]), (i32(5),)])
def test_an_array_of_indices_out_of_range_is_an_error(index):
    x = f32(1, 2, 3)
    with pytest.raises(IndexError, match="out of range for axis 0 of extent 3"):
        x[index]
    with pytest.raises(IndexError, match="out of range for axis 0 of extent 3"):
        x[index] = 1.0


def total(x):
    return x.sum()


@pytest.mark.parametrize("out_shape", [(), lambda x: ()], ids=["value", "function"])
def test_the_empty_tuple_as_out_shape_means_one_entry(out_shape, mode):
    op = msops.Custom(total, out_shape, lambda x: x)
    assert op(f32(1, 2, 3)).shape == (1,)
    assert Net(op)(f32(1, 2, 3)).shape == (1,)
    assert op(jnp.arange(3.0)).shape == ()


@pytest.mark.parametrize("out_shape", [[], lambda x: []], ids=["value", "function"])
def test_the_empty_list_as_out_shape_means_no_axes(out_shape, mode):
    assert msops.Custom(total, out_shape, ms.float32)(f32(1, 2, 3)).shape == ()
    assert msops.Custom(np.sin, lambda x: x, lambda x: x)(Tensor(3.0)).shape == ()
