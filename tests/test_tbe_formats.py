"""Ascend's data formats against loops over their definitions, and kernels that get them."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quick_cases import in_turn, one_in
from tbe_ops import op_info

import msops
from msops import tbe
from msops.errors import ArgumentTypeError, ArgumentValueError


def blocks(size: int, block: int) -> int:
    return (size + block - 1) // block


def laid_out(x: np.ndarray, format: str) -> np.ndarray:
    """Returns a tensor in a format, element by element."""
    c0 = 32 if x.dtype.itemsize == 1 and x.dtype.kind in "iu" else 16
    if format == "FRACTAL_NZ":
        *lead, m, n = x.shape
        out = np.zeros((*lead, blocks(n, c0), blocks(m, 16), 16, c0), x.dtype)
        for *at, i, j in np.ndindex(*x.shape):
            out[(*at, j // c0, i // 16, i % 16, j % c0)] = x[(*at, i, j)]
        return out
    if x.ndim == 5:
        n, c, d, h, w = x.shape
        c1, n1 = blocks(c, c0), blocks(n, 16)
        shapes = {
            "NDC1HWC0": (n, d, c1, h, w, c0),
            "FRACTAL_Z_3D": (d * c1 * h * w, n1, 16, c0),
            "NDHWC": (n, d, h, w, c),
            "DHWCN": (d, h, w, c, n),
        }
        out = np.zeros(shapes[format], x.dtype)
        for b, k, z, i, j in np.ndindex(*x.shape):
            place = {
                "NDC1HWC0": (b, z, k // c0, i, j, k % c0),
                "FRACTAL_Z_3D": (((z * c1 + k // c0) * h + i) * w + j, b // 16, b % 16, k % c0),
                "NDHWC": (b, z, i, j, k),
                "DHWCN": (z, i, j, k, b),
            }[format]
            out[place] = x[b, k, z, i, j]
        return out
    n, c, h, w = x.shape
    c1, n1 = blocks(c, c0), blocks(n, 16)
    shapes = {
        "NC1HWC0": (n, c1, h, w, c0),
        "C1HWNCoC0": (c1, h, w, n, c0, c0),
        "FRACTAL_Z": (c1 * h * w, n1, 16, c0),
        "NHWC": (n, h, w, c),
        "HWCN": (h, w, c, n),
    }
    out = np.zeros(shapes[format], x.dtype)
    for b, k, i, j in np.ndindex(*x.shape):
        place = {
            "NC1HWC0": (b, k // c0, i, j, k % c0),
            "C1HWNCoC0": (k // c0, i, j, b, k % c0, k % c0),
            "FRACTAL_Z": ((k // c0 * h + i) * w + j, b // 16, b % 16, k % c0),
            "NHWC": (b, i, j, k),
            "HWCN": (i, j, k, b),
        }[format]
        out[place] = x[b, k, i, j]
    return out


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (np.arange(np.prod(shape)) % 119 + 1).reshape(shape).astype(dtype)


OF_NCHW = itertools.starmap(
    pytest.param,
    itertools.product(
        ("NC1HWC0", "FRACTAL_Z", "C1HWNCoC0", "NHWC", "HWCN"),
        ((2, 20, 3, 2), (17, 32, 1, 2), (1, 1, 1, 1)),
    ),
)
OF_MATRICES = (pytest.param("FRACTAL_NZ", shape) for shape in ((5, 7), (16, 32), (2, 3, 33, 17)))
CASES = [
    *in_turn(OF_NCHW, ("float32", "int8")),
    *in_turn(OF_MATRICES, ("float16", "uint8")),
    *itertools.product(
        ("NDC1HWC0", "FRACTAL_Z_3D", "NDHWC", "DHWCN"), ((17, 18, 2, 1, 3),), ("float32",)
    ),
]


@pytest.mark.parametrize(("format", "shape", "dtype"), one_in(4, CASES))
def test_a_format_is_what_its_definition_says_and_leads_back(format, shape, dtype):
    x = numbers(shape, dtype)
    expected = laid_out(x, format)
    assert tbe.format_shape(shape, format, dtype) == expected.shape
    there = tbe.to_format(jnp.asarray(x), format)
    np.testing.assert_array_equal(there, expected)
    back = tbe.from_format(jnp.asarray(expected), format, shape)
    np.testing.assert_array_equal(back, x)
    assert back.dtype == dtype


@pytest.mark.parametrize(
    ("format", "dtype"),
    in_turn(["NC1HWC0", "FRACTAL_NZ", "C1HWNCoC0", "ND"], ["float32", "float64", "int8"]),
)
def test_a_tensor_gives_a_tensor_and_an_array_an_array(format, dtype):
    x = numbers((2, 20, 3, 2), dtype)
    expected = x if format == "ND" else laid_out(x, format)
    there = tbe.to_format(msops.Tensor(x), format)
    back = tbe.from_format(there, format, x.shape)
    for tensor, wanted in ((there, expected), (back, x)):
        assert isinstance(tensor, msops.Tensor)
        np.testing.assert_array_equal(tensor.asnumpy(), wanted, strict=True)
    assert isinstance(tbe.to_format(jnp.ones((2, 3)), format), jax.Array)


def test_a_parameter_in_a_format_is_differentiated():
    weight = msops.Parameter(msops.Tensor(numbers((17, 20, 1, 2), "float32")), name="weight")
    scale = msops.Tensor(np.float32(3))

    def loss(scale):
        return (tbe.to_format(weight * scale, "FRACTAL_Z") ** 2).sum()

    gradient = msops.grad(loss, None, weights=weight)(scale)
    np.testing.assert_allclose(gradient.asnumpy(), 18 * weight.asnumpy(), rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "full"),
    [
        ((), (1, 1, 1, 1)),
        ((20,), (1, 20, 1, 1)),
        ((2, 20), (2, 20, 1, 1)),
        ((2, 3, 4), (2, 3, 4, 1)),
    ],
)
def test_fewer_axes_count_as_nchw(shape, full):
    x = numbers(shape, "float32")
    got = tbe.to_format(jnp.asarray(x), "NC1HWC0")
    np.testing.assert_array_equal(got, laid_out(x.reshape(full), "NC1HWC0"))
    np.testing.assert_array_equal(tbe.from_format(got, "NC1HWC0", shape), x)


@pytest.mark.parametrize("format", ["DefaultFormat", "ND", "NCHW", ""])
def test_plain_formats_leave_a_tensor_alone(format):
    x = jnp.arange(6.0).reshape(2, 3)
    assert tbe.to_format(x, format) is x
    assert tbe.from_format(x, format, (2, 3)) is x


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tbe.format_shape((2, 3), "NC1HWC1"), "data format: expected one of Default"),
        (
            lambda: tbe.format_shape((1,) * 5, "NC1HWC0"),
            "expected a tensor of 4 dimensions at most",
        ),
        (lambda: tbe.format_shape((3,), "FRACTAL_NZ"), "expected a tensor of two dimensions or mo"),
        (lambda: tbe.format_shape((3, 3), "NDC1HWC0"), "expected a tensor of 5 dimensions; got"),
        (
            lambda: tbe.from_format(jnp.ones((1, 1, 2, 2, 16)), "NC1HWC0", (1, 17, 2, 2)),
            "from_format: expected shape (1, 2, 2, 2, 16), that of (1, 17, 2, 2) in NC1HWC0; "
            "got (1, 1, 2, 2, 16)",
        ),
    ],
)
def test_what_has_no_such_format_is_refused(call, message):
    with pytest.raises(ArgumentValueError) as caught:
        call()
    assert message in str(caught.value)


def test_conversions_are_differentiated_and_batched():
    x = jnp.asarray(numbers((2, 20, 3, 2), "float32"))
    weights = jnp.asarray(np.random.default_rng(0).normal(size=(2, 2, 3, 2, 16)), jnp.float32)
    gradient = jax.grad(lambda x: (tbe.to_format(x, "NC1HWC0") * weights).sum())(x)
    np.testing.assert_array_equal(gradient, tbe.from_format(weights, "NC1HWC0", x.shape))
    batched = jax.vmap(lambda x: tbe.to_format(x, "FRACTAL_Z"))(jnp.stack([x, 2 * x]))
    np.testing.assert_array_equal(batched[1], 2 * laid_out(np.asarray(x), "FRACTAL_Z"))


SEEN: list[dict[str, Any]] = []


def first_channels(x, y, kernel_name):
    """Doubles the first channel of each block, so that the layout shows."""
    import te.lang.cce
    from te import tvm

    SEEN.append(x)
    data = tvm.placeholder(x["shape"], name="x", dtype=x["dtype"])
    if len(x["shape"]) == 5:
        result = tvm.compute(
            data.shape,
            lambda n, c1, h, w, c0: tvm.if_then_else(
                c0 == 0, data[n, c1, h, w, c0] * 2.0, data[n, c1, h, w, c0]
            ),
        )
    else:
        result = te.lang.cce.vadds(data, 0.0)
    sch = te.lang.cce.auto_schedule(result)
    te.lang.cce.cce_build_code(sch, {"name": kernel_name, "tensor_list": [data, result]})


def op_in(*rows: tuple[str, str]) -> msops.Custom:
    info = op_info(1, rows=[[row, row] for row in rows])
    return msops.Custom(first_channels, lambda x: x, lambda x: x, func_type="tbe", reg_info=info)


def test_a_kernel_for_blocks_gets_blocks():
    x = numbers((2, 20, 3, 2), "float32")
    op = op_in(("float32", "NC1HWC0"))
    expected = x.copy()
    expected[:, [0, 16]] *= 2
    np.testing.assert_array_equal(op(jnp.asarray(x)), expected)
    told = SEEN[-1]
    assert told["shape"] == [2, 2, 3, 2, 16]
    assert told["ori_shape"] == [2, 20, 3, 2]
    assert (told["format"], told["ori_format"]) == ("NC1HWC0", "NCHW")
    # XLA fuses the conversions with the kernel: nothing is stored in blocks.
    program = op.lower_text(jnp.asarray(x), stage="hlo")
    assert "f32[2,2,3,2,16]" not in program[program.index("ENTRY") :]


def test_the_row_without_conversions_is_taken():
    x = jnp.asarray(numbers((2, 20, 3, 2), "float32"))
    op = op_in(("float32", "NC1HWC0"), ("float32", "DefaultFormat"), ("float16", "NC1HWC0"))
    np.testing.assert_array_equal(op(x), x)
    assert SEEN[-1]["format"] == "NCHW"
    op(x.astype(jnp.float16))
    assert SEEN[-1]["format"] == "NC1HWC0"


def test_gradients_and_batches_pass_through_blocks():
    x = numbers((2, 20, 3, 2), "float32")
    op = op_in(("float32", "NC1HWC0"))
    slope = np.ones_like(x)
    slope[:, [0, 16]] = 2
    gradient = jax.jit(jax.grad(lambda x: (op(x) ** 2).sum()))(jnp.asarray(x))
    np.testing.assert_allclose(gradient, 2 * x * slope**2)
    batched = jax.vmap(op, in_axes=1, out_axes=1)(jnp.stack([x, x + 1], 1))
    np.testing.assert_array_equal(batched[:, 1], (x + 1) * slope)


def test_a_format_that_is_not_known_names_the_row():
    with pytest.raises(ArgumentValueError, match="got 'FRACTAL_ZN_LSTM'"):
        op_in(("float32", "FRACTAL_ZN_LSTM"))(jnp.ones((2, 3)))


@pytest.mark.parametrize(
    ("use", "family", "said"),
    [
        (
            lambda: tbe.to_format([1, 2], "NC1HWC0"),
            ArgumentTypeError,
            "expected an array; got list",
        ),
        (lambda: tbe.from_format([1, 2], "ND", (2,)), ArgumentTypeError, "an array; got list"),
        (lambda: tbe.format_shape((2, -3), "ND"), ArgumentValueError, r"got shape \(2, -3\)"),
        (lambda: tbe.format_shape((-1, 3, 2, 2), "NC1HWC0"), ArgumentValueError, "0 or more"),
        (lambda: tbe.format_shape((2, 3), "ND", "floaty"), ArgumentTypeError, "got 'floaty'"),
        (lambda: tbe.format_shape((2.5, 3), "ND"), ArgumentTypeError, r"got \(2.5, 3\)"),
        (lambda: tbe.format_shape(3, "ND"), ArgumentTypeError, "expected a shape; got 3"),
        (lambda: tbe.format_shape((3,), ["ND"]), ArgumentValueError, r"got \['ND'\]"),
        (lambda: tbe.from_format(np.ones(2), "ND", 2), ArgumentTypeError, "expected a shape"),
    ],
)
def test_what_is_no_tensor_shape_or_dtype_is_refused(use, family, said):
    with pytest.raises(family, match=said):
        use()
