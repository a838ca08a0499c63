"""Zeros in generated C have the sign that they have by the rules."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import msops
from msops.lang import int8, int16, int32, int64, output_tensor, uint8, uint32

SIZES = (1, 5, 16, 37)


def native(kernel: Any, *arrays: np.ndarray) -> np.ndarray:
    """Returns what C code of a kernel computes."""
    op = msops.Custom(kernel, func_type="akg", compile_attrs={"lower": "native"})
    with jax.enable_x64(True):
        return np.asarray(op(*arrays))


def by_int32(x):
    y = output_tensor((8, x.shape[1]), x.dtype)
    for i in range(x.shape[1]):
        y[0, i] = x.dtype.type(int32(x[0, i]))
        y[1, i] = x.dtype.type(int32(x[0, i])) * 3.0
        k = int32(x[0, i])
        y[2, i] = x.dtype.type(k)
        y[3, i] = 2.0 * x.dtype.type(int32(0.5 * x[0, i]))
        y[4, i] = x.dtype.type(int32(x[0, i])) if x[0, i] < 3.0 else 0.5
        y[5, i] = x.dtype.type(int32(min(max(x[0, i], -100.0), 100.0)))
        y[6, i] = min(x.dtype.type(int32(x[0, i])), 7.0)
        y[7, i] = x.dtype.type(int64(x[0, i]))
    return y


def by_others(x):
    y = output_tensor((6, x.shape[1]), x.dtype)
    for i in range(x.shape[1]):
        y[0, i] = x.dtype.type(int8(x[0, i]))
        y[1, i] = x.dtype.type(int16(x[0, i])) * 3.0
        y[2, i] = x.dtype.type(int32(int8(x[0, i])))
        y[3, i] = x.dtype.type(uint8(x[0, i]))
        y[4, i] = x.dtype.type(uint32(x[0, i]))
        y[5, i] = x.dtype.type(int32(int64(x[0, i])))
    return y


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", [by_int32, by_others])
def test_floats_that_were_integers_are_no_minus_zero(kernel: Any, dtype: str) -> None:
    for size in SIZES:
        x = np.resize(np.array([-0.25, -0.0, 2.5, -0.75, -1.5, 0.25, -0.5], dtype), (1, size))
        got = native(kernel, x)
        zeros = got == 0
        assert zeros.any()
        assert not np.signbit(got[zeros]).any(), size
        np.testing.assert_array_equal(got[0], np.trunc(x[0]))
