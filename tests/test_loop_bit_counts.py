"""Bits that a loop counts, in both forms."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from msops import Custom

pytestmark = pytest.mark.usefixtures("as_users_compile")


def distances(a, b):  # type: ignore[no-untyped-def]  # a kernel
    out = output_tensor((a.shape[0], b.shape[0]), "int32")  # noqa: F821
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            for bit in range(31):
                out[i, j] += ((a[i] ^ b[j]) >> bit) & 1
    return out


@pytest.mark.parametrize("form", ["native", "xla"])
def test_distances_of_codes(form: str) -> None:
    rng = np.random.default_rng(7)
    a, b = rng.integers(-(2**31), 2**31, (2, 50)).astype(np.int32)
    op = Custom(distances, func_type="akg", compile_attrs={"lower": form})
    wanted = np.bitwise_count((a[:, None] ^ b) & 0x7FFFFFFF)
    np.testing.assert_array_equal(op(a, b), wanted)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "uint8"])
def test_the_smaller_one_of_a_count_of_bits(dtype: str) -> None:
    """gcc 12 makes wrong vectors of __builtin_popcountll here."""

    def k(x):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821
        for i in range(x.shape[0]):
            y[i] = min(x[i], popcount(x.dtype.type(i)))  # noqa: F821
        return y

    with jax.enable_x64(True):
        for size in (1, 7, 40):
            op = Custom(k, func_type="akg", compile_attrs={"lower": "native"})
            got = np.asarray(op(np.full(size, 100, dtype)))
            assert got.tolist() == [i.bit_count() for i in range(size)]
