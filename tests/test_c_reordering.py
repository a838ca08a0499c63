"""Neighbours that are stored in an order of their own: vectors of gcc 12 change it."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from msops import Custom


def compare_and_swap(x):
    rows, n = x.shape
    for b in range(rows):
        for i in range(n // 2):
            u = x[b, 2 * i]
            v = x[b, 2 * i + 1]
            if i % 2 == 0:
                x[b, 2 * i] = min(u, v)
                x[b, 2 * i + 1] = max(u, v)
            else:
                x[b, 2 * i] = max(u, v)
                x[b, 2 * i + 1] = min(u, v)
    return x


@pytest.mark.parametrize("n", [8, 32, 64])
def test_the_gradient_of_a_compare_and_swap(n: int) -> None:
    rng = np.random.default_rng(0)
    x = np.argsort(rng.random((4, n)), axis=1).astype("float64")
    cotangent = rng.integers(1, 9, x.shape).astype("float64")
    op = Custom(compare_and_swap, func_type="akg", compile_attrs={"lower": "native"})
    with jax.enable_x64(True):
        (got,) = jax.vjp(lambda a: op(a), x)[1](jax.numpy.asarray(cotangent))
    # What went to a place comes back from it.
    pairs = x.reshape(4, -1, 2)
    swaps = (pairs[..., 0] > pairs[..., 1]) == (np.arange(n // 2) % 2 == 0)
    back = cotangent.reshape(pairs.shape)
    want = np.where(swaps[..., None], back[..., ::-1], back).reshape(x.shape)
    np.testing.assert_array_equal(got, want)
