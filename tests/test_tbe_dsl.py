"""Every function of TBE's DSL against numpy, its casts, and what it refuses."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import scipy.special
from tbe_ops import convolved, kernel_of, op_info, run

from msops import Custom
from msops.errors import BuildError, MsopsError

pytestmark = pytest.mark.usefixtures("as_users_compile")

rng = np.random.default_rng(5)
X = rng.normal(size=(3, 4, 8)).astype("f4")
Y = rng.normal(size=(3, 4, 8)).astype("f4")
Z = rng.normal(size=(3, 4, 8)).astype("f4")
P = np.abs(X) + np.float32(0.5)
IDS = [2, 0, -3, 2, 4, 0]
ROWS = rng.normal(size=(6, 5)).astype("f4")
A = rng.integers(-(2**15), 2**15, size=(6, 7)).astype("i2")
B = rng.integers(-(2**15), 2**15, size=(6, 7)).astype("i2")

# By name: the kernel, its inputs, and the same in numpy.
FLOAT_CASES: dict[str, tuple[Any, tuple[Any, ...], Any]] = {
    "cos": (lambda te, x: te.cos(x), (X,), np.cos),
    "cosh": (lambda te, x: te.cosh(x), (X,), np.cosh),
    "sin": (lambda te, x: te.sin(x), (X,), np.sin),
    "sinh": (lambda te, x: te.sinh(x), (X,), np.sinh),
    "vabs": (lambda te, x: te.vabs(x), (X,), np.abs),
    "vexp": (lambda te, x: te.vexp(x), (X,), np.exp),
    "vlog": (lambda te, x: te.vlog(x), (P,), np.log),
    "vrec": (lambda te, x: te.vrec(x), (P,), lambda x: 1 / x),
    "vrelu": (lambda te, x: te.vrelu(x), (X,), lambda x: np.maximum(x, 0)),
    "vsqrt": (lambda te, x: te.vsqrt(x), (P,), np.sqrt),
    "vrsqrt": (lambda te, x: te.vrsqrt(x), (P,), lambda x: x**-0.5),
    "vlrelu": (lambda te, x: te.vlrelu(x, 0.1), (X,), lambda x: np.where(x > 0, x, 0.1 * x)),
    "vadd": (lambda te, x, y: te.vadd(x, y), (X, Y), np.add),
    "vsub": (lambda te, x, y: te.vsub(x, y), (X, Y), np.subtract),
    "vmul": (lambda te, x, y: te.vmul(x, y), (X, Y), np.multiply),
    "vdiv": (lambda te, x, y: te.vdiv(x, y), (X, P), np.divide),
    "vmax": (lambda te, x, y: te.vmax(x, y), (X, Y), np.maximum),
    "vmin": (lambda te, x, y: te.vmin(x, y), (X, Y), np.minimum),
    "vmod": (lambda te, x, y: te.vmod(x, y), (X, P), np.mod),
    "vadds": (lambda te, x: te.vadds(x, 1.5), (X,), lambda x: x + 1.5),
    "vmuls": (lambda te, x: te.vmuls(x, -2.5), (X,), lambda x: x * -2.5),
    "vmaxs": (lambda te, x: te.vmaxs(x, 0), (X,), lambda x: np.maximum(x, 0)),
    "vmins": (lambda te, x: te.vmins(x, 0.25), (X,), lambda x: np.minimum(x, 0.25)),
    "vmadd": (lambda te, x, y, z: te.vmadd(x, y, z), (X, Y, Z), lambda x, y, z: x * z + y),
    "vmla": (lambda te, x, y, z: te.vmla(x, y, z), (X, Y, Z), lambda x, y, z: x * y + z),
    "vmaddrelu": (
        lambda te, x, y, z: te.vmaddrelu(x, y, z),
        (X, Y, Z),
        lambda x, y, z: np.maximum(x * z + y, 0),
    ),
    "vaxpy": (lambda te, x, y: te.vaxpy(x, y, 3.0), (X, Y), lambda x, y: 3 * x + y),
    # The upper bound comes first.
    "round_to": (lambda te, x: te.round_to(x, 1.0, -0.5), (X,), lambda x: np.clip(x, -0.5, 1)),
    "round_to crossed": (lambda te, x: te.round_to(x, -0.5, 1.0), (X,), lambda x: 0 * x - 0.5),
    "vcmpsel": (
        lambda te, x, y, z: te.vcmpsel(x, y, "ge", z, 7.0),
        (X, Y, Z),
        lambda x, y, z: np.where(x >= y, z, 7),
    ),
    "vcmpsel of numbers": (
        lambda te, x: te.vcmpsel(x, 0.5, "lt", 1.0, -1.0),
        (X,),
        lambda x: np.where(x < 0.5, 1, -1),
    ),
    "vcmpsel with what it takes itself": (
        lambda te, x: te.vcmpsel(te.vmuls(x, 3.0)),
        (X,),
        lambda x: np.where(3 * x < 2, 3 * x, 0),
    ),
    "vsel": (
        lambda te, x, y: te.vsel(te.vcmp(x, y, "gt"), x, y),
        (X, Y),
        np.maximum,
    ),
    "vsel by bits": (
        lambda te, x, y: te.vsel(te.vcmp(x, 0.5, "le", "bit"), y, 2.0),
        (X, Y),
        lambda x, y: np.where(x <= 0.5, y, 2),
    ),
    "vlogic": (
        lambda te, x, y, z: te.vsel(
            te.vlogic(
                te.vlogic(te.vcmp(x, y, "lt"), te.vcmp(y, z, "lt"), "logic_or"),
                operation="logic_not",
            ),
            x,
            z,
        ),
        (X, Y, Z),
        lambda x, y, z: np.where(~((x < y) | (y < z)), x, z),
    ),
    "broadcast": (
        lambda te, x: te.vadd(te.broadcast(x, (3, 2, 8)), te.broadcast(1.5, (3, 2, 8), "float32")),
        (X[:1, :1],),
        lambda x: np.broadcast_to(x, (3, 2, 8)) + 1.5,
    ),
    "broadcast adds axes": (
        lambda te, x: te.broadcast(x, (2, 4, 8)),
        (X[0],),
        lambda x: np.broadcast_to(x, (2, 4, 8)),
    ),
    "concat": (
        lambda te, x, y: te.concat([x, y], 1),
        (X, Y[:, :2]),
        lambda x, y: np.concatenate([x, y], 1),
    ),
    "sum": (lambda te, x: te.sum(x, -2), (X,), lambda x: x.sum(1)),
    "sum keeps": (
        lambda te, x: te.sum(x, [0, 2], keepdims=True),
        (X,),
        lambda x: x.sum((0, 2), keepdims=True),
    ),
    # TBE has no tensors without dimensions.
    "sum of all": (lambda te, x: te.reduce_sum(x, (0, 1, 2)), (X,), lambda x: x.sum()[None]),
    "sum of no axis": (lambda te, x: te.sum(x, []), (X,), lambda x: x),
    "reduce_min": (lambda te, x: te.reduce_min(x, axis=[1]), (X,), lambda x: x.min(1)),
    "reduce_max": (lambda te, x: te.reduce_max(x, axis=2), (X,), lambda x: x.max(2)),
    "reduce_prod": (lambda te, x: te.reduce_prod(x, 0), (X,), lambda x: x.prod(0)),
    **{
        f"unsorted_segment_{kind}": (
            lambda te, x, kind=kind: getattr(te, f"unsorted_segment_{kind}")(x, IDS, 5, 9.0),
            (ROWS,),
            lambda x, reduce=reduce: np.stack(
                [
                    reduce(x[[i for i, one in enumerate(IDS) if one == segment]], axis=0)
                    if segment in IDS
                    else np.full(5, 9.0)
                    for segment in range(5)
                ]
            ),
        )
        for kind, reduce in (
            ("sum", np.sum),
            ("mean", np.mean),
            ("prod", np.prod),
            ("min", np.min),
            ("max", np.max),
        )
    },
    "matmul": (lambda te, a, b: te.matmul(a, b), (X[0], Y[0].T.copy()), np.matmul),
    "matmul transposed": (
        lambda te, a, b, bias: te.matmul(
            a, b, trans_a=True, trans_b=True, alpha_num=2.0, tensor_bias=bias
        ),
        (X[0], rng.normal(size=(5, 4)).astype("f4"), Z[0, 0, :5]),
        lambda a, b, bias: 2 * a.T @ b.T + bias,
    ),
    "matmul of batches": (
        lambda te, a, b: te.matmul(a, b, trans_b=True),
        (X, Y),
        lambda a, b: a @ b.transpose(0, 2, 1),
    ),
}


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float16", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FLOAT_CASES)
def test_a_function_is_what_numpy_makes(name, dtype):
    compute, inputs, expected = FLOAT_CASES[name]
    arrays = [array.astype(dtype) for array in inputs]
    wanted = expected(*(array.astype("f8") for array in arrays))
    got = run(compute, *arrays, like=wanted.astype(dtype))
    limit = 2e-5 if dtype == "float32" else 2e-2
    np.testing.assert_allclose(got.astype("f8"), wanted, rtol=limit, atol=limit)


HALVES = np.float32([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.4, -0.6, 7.0, -1e-3])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("floor", np.floor),
        ("ceil", np.ceil),
        ("trunc", np.trunc),
        ("round", np.rint),
        ("round_half_up", lambda x: np.floor(x + 0.5)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_rounding_gives_int32(name, expected, dtype):
    x = HALVES.astype(dtype)
    got = run(lambda te, x: getattr(te, name)(x), x, like=x.astype("i4"))
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, expected(x).astype("i4"))


def test_a_rounded_tensor_is_a_float_again_in_the_next_function():
    got = run(lambda te, x: te.vdiv(te.floor(te.vadds(x, 0.5)), te.vexp(x)), X)
    np.testing.assert_allclose(got, np.floor(X + 0.5) / np.exp(X), rtol=1e-5)


def test_a_rounded_tensor_that_is_a_float_again_is_not_cut():
    x = np.float32([3e10, -2.5, 1e-3])
    got = run(lambda te, x: te.vadd(te.floor(x), te.vmuls(x, 0.0)), x)
    np.testing.assert_array_equal(got, np.floor(x))
    whole = run(lambda te, x: te.floor(x), x, like=np.zeros(3, "i4"))
    np.testing.assert_array_equal(whole, [2**31 - 1, -3, 0])


def test_a_rounded_result_becomes_the_dtype_of_the_first_operand():
    got = run(lambda te, x: te.floor(x), X)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, np.floor(X))


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("float32", "int32", np.trunc),
        ("float16", "int32", np.trunc),
        ("float32", "float16", lambda x: x),
        ("float16", "float32", lambda x: x),
        ("float32", "int8", np.trunc),
        ("int32", "float32", lambda x: x),
        ("int32", "float16", lambda x: x),
        ("int8", "float32", lambda x: x),
        ("uint8", "int32", lambda x: x),
    ],
)
def test_cast_to_truncates(source, target, expected):
    x = (np.abs(HALVES) if source.startswith("u") else HALVES).astype(source)
    got = run(lambda te, x: te.cast_to(x, target), x, like=x.astype(target))
    assert got.dtype == target
    np.testing.assert_array_equal(got, expected(x.astype("f8")).astype(target))


def test_different_dtypes_meet_in_float32():
    x, y = X.astype("f2"), Y
    got = run(lambda te, x, y: te.vsub(x, y), x, y, like=Y)
    np.testing.assert_array_equal(got, x.astype("f4") - y)


def test_small_integers_are_computed_in_float16_and_come_back():
    x, y = (rng.integers(-50, 50, size=(4, 4)).astype("i1") for _ in range(2))
    got = run(lambda te, x, y: te.vadd(x, te.vabs(y)), x, y)
    np.testing.assert_array_equal(got, x + np.abs(y))


def test_integers_beside_a_fraction_are_float32():
    x = np.int32([-5, 2, 7])
    like = x.astype("f4")
    got = run(lambda te, x: te.vmuls(te.vadds(x, 1), 0.25), x, like=like)
    np.testing.assert_array_equal(got, (x + 1) * np.float32(0.25))
    got = run(lambda te, x: te.vcmpsel(x, 2.5, "gt", x, 0.5), x, like=like)
    np.testing.assert_array_equal(got, np.where(x > 2.5, x, 0.5))
    got = run(lambda te, x: te.vcmp(x, 2.5, "lt"), x, like=x < 2.5)
    np.testing.assert_array_equal(got, x < 2.5)
    # The result takes the dtype of the first operand, where the op says so.
    got = run(lambda te, x: te.vmuls(x, 0.5), x)
    np.testing.assert_array_equal(got, np.trunc(x / 2))


def test_integers_wrap_as_int32():
    x = np.int32([2**31 - 1, -(2**31), 5])
    got = run(lambda te, x: te.vadds(x, 1), x)
    np.testing.assert_array_equal(got, np.int32([-(2**31), -(2**31) + 1, 6]))


@pytest.mark.parametrize("dtype", ["int16", "uint16"])
@pytest.mark.parametrize(
    ("name", "expected"), [("vand", np.bitwise_and), ("vor", np.bitwise_or), ("vnot", np.invert)]
)
def test_bits(name, expected, dtype):
    inputs = [A.astype(dtype), B.astype(dtype)][: expected.nin]
    got = run(lambda te, *xs: getattr(te, name)(*xs), *inputs)
    np.testing.assert_array_equal(got, expected(*inputs))


@pytest.mark.parametrize("operation", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons(operation):
    x, y = (rng.integers(0, 3, size=(4, 16)).astype("f4") for _ in range(2))
    compare = {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }[operation]
    truth = compare(x, y)
    got = run(lambda te, x, y: te.vcmp(x, y, operation), x, y, like=truth)
    np.testing.assert_array_equal(got, truth)
    packed = np.packbits(truth, axis=-1, bitorder="little")
    got = run(lambda te, x, y: te.vcmp(x, y, operation, "bit"), x, y, like=packed)
    np.testing.assert_array_equal(got, packed)
    got = run(lambda te, x: te.vcmp(x, 1, operation), x, like=truth)
    np.testing.assert_array_equal(got, compare(x, 1))


def test_bools_are_bytes():
    flags = np.array([[True, False, True]])
    seen = []

    def compute(te, x):
        seen.append(x.dtype)
        return te.vcmp(x, 0, "eq")

    np.testing.assert_array_equal(run(compute, flags), ~flags)
    assert seen == ["int8"]


def test_a_tensor_keeps_one_dimension():
    shapes = []

    def compute(te, x):
        whole = te.sum(x, [0, 1, 2])
        shapes.append(te.util.shape_to_list(whole.shape))
        shapes.append(te.util.shape_to_list(te.sum(x, [1, 2]).shape))
        return te.broadcast(whole, x.shape)

    np.testing.assert_allclose(run(compute, X), np.full(X.shape, X.sum()), rtol=1e-4)
    assert shapes == [[1], [3]]


def test_tuple_sum():
    likes = [X.sum((0, 2), keepdims=True)] * 2
    got = run(lambda te, x, y: te.tuple_sum([x, y], [0, 2], True), X, Y, like=likes, several=True)
    np.testing.assert_allclose(got[0], X.sum((0, 2), keepdims=True), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(got[1], Y.sum((0, 2), keepdims=True), rtol=1e-5, atol=1e-5)


def test_segments_by_a_tensor():
    ids = np.int32(IDS)
    got = run(
        lambda te, x, i: te.unsorted_segment_sum(x, i, 5), ROWS, ids, like=np.zeros((5, 5), "f4")
    )
    expected = np.zeros((5, 5))
    np.add.at(expected, ids[ids >= 0], ROWS[ids >= 0])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["sum", "mean", "prod", "min", "max"])
def test_segments_have_a_gradient(kind):
    reduce = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "min": np.min, "max": np.max}[kind]
    op = Custom(
        kernel_of(lambda te, x: getattr(te, f"unsorted_segment_{kind}")(x, [0, 1, 0, 1], 2), 1),
        [2, 3],
        np.float32,
        func_type="tbe",
        reg_info=op_info(1),
    )
    x = rng.normal(size=(4, 3))

    def total(x):
        return reduce(x[::2], axis=0) @ [1, 2, 3] + reduce(x[1::2], axis=0) @ [4, 5, 6]

    weights = np.float32([[1, 2, 3], [4, 5, 6]])
    got = jax.grad(lambda x: (op(x) * weights).sum())(x.astype("f4"))
    steps = 1e-6 * np.eye(12).reshape(12, 4, 3)
    expected = [(total(x + step) - total(x - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(got.ravel(), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("stride", "pad", "dilation"), [(1, 0, 1), (2, 1, 1), (1, 2, 2)])
def test_conv_of_plain_images(stride, pad, dilation):
    x, w = rng.normal(size=(2, 3, 7, 6)).astype("f4"), rng.normal(size=(4, 3, 3, 2)).astype("f4")
    parameters = {
        "pad_h": pad,
        "pad_w": pad,
        "stride_h": stride,
        "stride_w": stride,
        "dilate_h": dilation,
        "dilate_w": dilation,
    }
    expected = convolved(x.astype("f8"), w.astype("f8"), stride, pad, dilation)
    got = run(lambda te, x, w: te.conv(x, w, parameters), x, w, like=expected.astype("f4"))
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def test_scaling_by_steps_does_not_overflow():
    # Kernels make a sign so: the products of the steps' factors overflow, the steps do not.
    for dtype, step, tiny in (("float16", 2.0**12, 2.0**-24), ("float32", 2.0**100, 2.0**-126)):
        x = np.array([3.0, -0.5, 0.0], dtype)
        factors = [step, step] if dtype == "float16" else [step, 2.0**26]

        def sign(te, x, factors=factors, tiny=tiny):
            x = te.vmins(te.vmaxs(x, -tiny), tiny)
            for factor in factors:
                x = te.vmuls(x, factor)
            return x

        np.testing.assert_array_equal(run(sign, x), np.sign(x))


def test_loops_and_the_dsl_mix():
    def compute(te, x, y):
        from te import tvm

        scaled = te.vmuls(x, 2.0)
        k = tvm.reduce_axis((0, 8), "k")
        rows = tvm.compute((3, 4), lambda i, j: tvm.sum(scaled[i, j, k] * y[i, j, k], axis=k))
        whole = tvm.compute((3, 4, 8), lambda i, j, n: rows[i, j] + tvm.exp(x[i, j, n]))
        total = te.broadcast(te.sum(rows, [0, 1], True), (1, 4, 8))
        return te.vadd(te.vadd(whole, scaled), te.broadcast(total, (3, 4, 8)))

    expected = (2 * X * Y).sum(2, keepdims=True) + np.exp(X) + 2 * X + (2 * X * Y).sum()
    np.testing.assert_allclose(run(compute, X, Y), expected, rtol=1e-5, atol=1e-4)


def test_a_long_polynomial_agrees_with_scipy():
    # Chebyshev series of Cephes for exp(-x) I0(x), x >= 0, of which scipy's is another version.
    small = np.polynomial.chebyshev.chebinterpolate(lambda t: scipy.special.i0e((t + 1) * 4), 24)

    def i0e(te, x):
        y = te.vadds(te.vmuls(te.vabs(x), 0.25), -1.0)
        shape = x.shape
        b0 = te.broadcast(float(small[-1]), shape, "float32")
        b1 = te.broadcast(0.0, shape, "float32")
        for c in small[-2:0:-1]:
            b0, b1 = te.vsub(te.vadds(te.vmuls(te.vmul(y, b0), 2.0), float(c)), b1), b0
        return te.vsub(te.vadds(te.vmul(y, b0), float(small[0])), b1)

    x = np.linspace(-8, 8, 65, dtype="f4")
    np.testing.assert_allclose(run(i0e, x), scipy.special.i0e(x), rtol=2e-5)


REFUSED: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "ranks": (
        lambda te, x, y: te.vadd(x, y),
        (X, Y[0]),
        "vadd: The lhs shape ndim 3 must be equal to the rhs 2",
    ),
    "shapes": (
        lambda te, x, y: te.vmul(x, y),
        (X, Y[:1]),
        "vmul: The lhs shape must be equal to the rhs",
    ),
    "three shapes": (lambda te, x, y: te.vmla(x, x, y), (X, Y[:1]), "vmla: The lhs shape"),
    "a number for a tensor": (lambda te, x: te.vadd(x, 1.0), (X,), "vadd: expected a tensor"),
    "a tensor for a number": (
        lambda te, x, y: te.vadds(x, y),
        (X, Y),
        "vadds: expected a number; got Tensor",
    ),
    "a number too large": (
        lambda te, x: te.vadds(x, 70000.0),
        (X.astype("f2"),),
        "vadds: expected a number of float16, the dtype of the tensor; got 70000.0",
    ),
    "a number too large for an integer": (
        lambda te, x: te.vmaxs(x, 2**31),
        (X.astype("i4"),),
        "vmaxs: expected a number of int32, the dtype of the tensor; got 2147483648",
    ),
    "broadcast to another extent": (
        lambda te, x: te.broadcast(x, (3, 4, 9)),
        (X,),
        "broadcast: For tensor broadcasting, shape must be the same",
    ),
    "broadcast to fewer axes": (
        lambda te, x: te.broadcast(x, (4, 8)),
        (X,),
        "broadcast: Length of shape of input must be less than or equal to output",
    ),
    "concat of dtypes": (
        lambda te, x, y: te.concat([x, y], 0),
        (X, Y.astype("f2")),
        "concat: dtype must be the same",
    ),
    "concat of shapes": (
        lambda te, x, y: te.concat([x, y], 0),
        (X, Y[:, :2]),
        "concat: concat input shape len must be the same",
    ),
    "concat axis": (
        lambda te, x, y: te.concat([x, y], -1),
        (X, Y),
        "concat: concat axis must be in 0-2, actual is -1",
    ),
    "reduction axis": (
        lambda te, x: te.sum(x, 3),
        (X,),
        "sum: wrong axis: expected -3 to 2; got 3",
    ),
    "bits of floats": (
        lambda te, x: te.vnot(x),
        (X,),
        "vnot: expected int16, uint16; got float32",
    ),
    "logic of floats": (
        lambda te, x, y: te.vlogic(x, y),
        (X, Y),
        "vlogic: expected bool; got float32",
    ),
    "an unknown comparison": (
        lambda te, x, y: te.vcmp(x, y, "less"),
        (X, Y),
        "vcmp: expected operation to be one of 'eq', 'ge', 'gt', 'le', 'lt', 'ne'; got 'less'",
    ),
    "odd bits": (
        lambda te, x: te.vcmp(x, 0.0, "lt", "bit"),
        (X[..., :5],),
        "vcmp: in mode 'bit' the last axis must be a multiple of 8",
    ),
    "casts there are none of": (
        lambda te, x: te.cast_to(x, "int64"),
        (X,),
        "cast_to: Unsupported cast type: float32 to int64",
    ),
    "segments of another length": (
        lambda te, x: te.unsorted_segment_sum(x, [0, 1], 5),
        (ROWS,),
        "unsorted_segment_sum: expected segment_ids to have one int32 below num_segments (5) "
        "for each of the 6 rows; got [0, 1]",
    ),
    "a segment too many": (
        lambda te, x: te.unsorted_segment_sum(x, IDS, 4),
        (ROWS,),
        "below num_segments (4)",
    ),
    "inner axes of a product": (
        lambda te, a, b: te.matmul(a, b),
        (X[0], Y[0]),
        "matmul: reduce axis not same: a is 4 by 8, b is 4 by 8",
    ),
    "channels of a convolution": (
        lambda te, x, w: te.conv(x, w, {}),
        (X[None], Y[None, :1]),
        "conv: data has 3 channels, the filters take 1",
    ),
    "a name the DSL does not have": (
        lambda te, x: te.vfoo(x),
        (X,),
        "te.lang.cce.vfoo: there is no such name",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_tbe_refuses_is_refused(name):
    compute, inputs, message = REFUSED[name]
    with pytest.raises(MsopsError) as caught:
        run(compute, *inputs)
    text = str(caught.value)
    assert isinstance(caught.value, RuntimeError)
    assert text.startswith("Custom 'entry' on CPU: ")
    assert message in text
    # The line of the kernel that made the call is shown.
    assert "test_tbe_dsl.py:" in text
    assert "^^^" in text


@pytest.mark.parametrize("kind", [RuntimeError, ValueError, SystemExit])
def test_errors_of_the_kernels_own_keep_their_text(kind):
    def compute(te, x):
        raise kind("Un supported data format")

    message = f"its kernel raised {kind.__name__}: Un supported data format"
    with pytest.raises(BuildError, match=message) as caught:
        run(compute, X)
    assert "test_tbe_dsl.py:" in str(caught.value)
