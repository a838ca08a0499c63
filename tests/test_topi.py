"""Every function of topi against numpy, over shapes and dtypes."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
from loop_ir import Kernel, interpret, kernel_text, verify
from loop_ir import lower_tvm as lower
from topi_cases import NN_ROWS, ROWS, Row, topi, tvm

from msops.errors import MsopsError

pytestmark = pytest.mark.usefixtures("as_users_compile")

_EPSILON = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-22, "float64": 2**-45}


def built(call, *arrays: np.ndarray) -> Kernel:
    inputs = [
        tvm.placeholder(array.shape, array.dtype.name, f"x{n}") for n, array in enumerate(arrays)
    ]
    result = call(*inputs)
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    kernel = lower(results, inputs, "kernel")
    verify(kernel)
    return kernel


def _dtypes(row: Row, dtype: object) -> tuple[np.dtype, ...]:
    names = dtype if isinstance(dtype, tuple) else (dtype,) * len(row.shapes)
    return tuple(np.dtype(getattr(ml_dtypes, n) if n == "bfloat16" else n) for n in names)


def _runs():
    for row in (*ROWS, *NN_ROWS):
        for dtype in row.dtypes:
            yield pytest.param(row, dtype, id=f"{row.name} {dtype}")


@pytest.mark.parametrize(("row", "dtype"), list(_runs()))
def test_agrees_with_numpy(row: Row, dtype: object):
    rng = np.random.default_rng(0)
    dtypes = _dtypes(row, dtype)
    # Negative whole numbers wrap into an unsigned dtype, as numpy's casts do.
    arrays = [
        row.values(rng, shape).astype(each) for shape, each in zip(row.shapes, dtypes, strict=True)
    ]
    with np.errstate(all="ignore"):
        expected = row.expected(*arrays)
    expected = expected if isinstance(expected, tuple) else (expected,)
    outputs = interpret(built(row.call, *arrays), arrays, check_bounds=True)
    assert len(outputs) == len(expected)
    for output, wanted in zip(outputs, expected, strict=True):
        wanted = np.asarray(wanted)
        assert output.shape == wanted.shape
        epsilon = 16 * _EPSILON.get(output.dtype.name, 0)
        np.testing.assert_allclose(
            output.astype(np.float64), wanted.astype(np.float64), rtol=epsilon, atol=epsilon
        )
        if epsilon == 0:
            assert output.dtype == wanted.dtype or wanted.dtype.kind in "if"


def test_every_function_has_a_row():
    plain = {"get_const_tuple", "nn", "tag", "util"}
    names = {name for name in vars(topi) if not name.startswith("_")} - plain
    assert names == {row.function for row in ROWS}
    nn_names = {name for name in vars(topi.nn) if not name.startswith("_")}
    assert nn_names == {row.function for row in NN_ROWS}


@pytest.mark.parametrize(
    ("dtype", "other", "expected"),
    [
        ("float32", 2, "float32"),
        ("float16", 2.5, "float16"),
        ("int32", 2.5, "float32"),
        ("int8", 2, "int32"),
        ("int64", 2, "int64"),
        ("bool", 2, "int32"),
    ],
)
def test_scalar_operand_takes_the_dtype_that_tvm_gives_it(dtype, other, expected):
    x = np.ones((2, 3), dtype)
    for call in (lambda t: topi.add(t, other), lambda t: topi.add(other, t), lambda t: t + other):
        (output,) = interpret(built(call, x), [x])
        assert output.dtype == expected
        np.testing.assert_array_equal(output, (1 + np.asarray(other)).astype(expected))


def test_scalars_alone_give_a_scalar_expression():
    assert topi.add(1, 2).value == 3


def test_tensors_have_pythons_operators():
    x = np.array([-7, 5, 9], np.int32)
    y = np.array([2, 2, -4], np.int32)
    table = [
        (lambda a, b: a + b - 1, lambda a, b: a + b - 1),
        (lambda a, b: 2 * a * b, lambda a, b: 2 * a * b),
        (lambda a, b: a // b, lambda a, b: a // b),
        (lambda a, b: a % b, lambda a, b: a % b),
        (lambda a, b: -a, lambda a, b: -a),
        (lambda a, b: (a << 1) >> 2, lambda a, b: (a << 1) >> 2),
        (lambda a, b: (a & b) | (a ^ b), lambda a, b: (a & b) | (a ^ b)),
        (lambda a, b: 100 - a, lambda a, b: 100 - a),
        (lambda a, b: a.astype("float16"), lambda a, b: a.astype("float16")),
    ]
    for call, expected in table:
        np.testing.assert_array_equal(interpret(built(call, x, y), [x, y])[0], expected(x, y))


def test_a_reshape_divides_only_where_dimensions_split():
    x = np.zeros((5, 2, 3, 7), np.float32)
    text = kernel_text(built(lambda t: topi.reshape(t, (5, 6, 7)), x))
    assert "x0[i0, i1 // 3, i1 % 3, i2]" in text


def test_a_concatenation_has_no_conditions():
    x = np.zeros((2, 3), np.float32)
    text = kernel_text(built(lambda t: topi.concatenate((t, t), 1), x))
    assert "T_concat[i0_1, i1_1 + 3] = x0[i0_1, i1_1]" in text
    assert "?" not in text
    assert "if" not in text


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: topi.add(x, topi.full((4,), "float32", 0)), "incompatible broadcast dims: 3"),
        (lambda x: topi.sum(x, 2), r"expected an axis in \[-2, 2\); got 2"),
        (lambda x: topi.reshape(x, (4, 2)), "6 elements of shape"),
        (lambda x: topi.transpose(x, (0, 0)), "expected a permutation of 2 axes"),
        (lambda x: topi.squeeze(x, 0), "axis 0 has extent 2, not 1"),
        (lambda x: topi.split(x, 2, 1), "does not divide into 2 equal parts"),
        (lambda x: topi.concatenate((x, topi.cast(x, "int32"))), "does not continue"),
        (lambda x: topi.take(x, x, mode="raise"), "expected a mode among"),
        (lambda x: topi.gather_nd(x, topi.arange(2)), "at least 2 dimensions"),
        (lambda x: topi.matmul(x, x), r"axes \[1\] of shape \(2, 3\) do not match"),
        (lambda x: topi.exp(topi.cast(x, "int32")), "expected a float; got int32"),
        (lambda x: topi.add(x, topi.cast(x, "float16")), "cannot match type float32 vs float16"),
        (lambda x: topi.logical_and(x, x), "expected a condition; got a value of dtype float32"),
        (lambda x: topi.broadcast_to(x, (3,)), r"the shape \(2, 3\) cannot become \(3,\)"),
        (lambda x: topi.nn.pad(x, (1,)), "expected 2 widths"),
        (lambda x: topi.cast(x, "complex64"), "got 'complex64'"),
        (lambda x: topi.reinterpret(x, "int32"), "bits of float32 cannot be read as int32"),
        (lambda x: topi.arange(x), "expected numbers"),
        (lambda x: topi.argsort(x), "topi.argsort: there is no such name"),
    ],
)
def test_what_cannot_be_is_refused_where_it_stands(call, message):
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(MsopsError, match=message) as caught:
        built(call, x)
    assert re.search(r"test_topi.py:\d+\n.*topi.*\n.*\^", str(caught.value))
