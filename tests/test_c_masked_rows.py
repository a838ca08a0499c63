"""Neighbours loaded under conditions: gcc 11 and 12 use the mask of one vector for several."""

import jax.numpy as jnp
import numpy as np
import pytest

import msops
from msops.lang import output_tensor


def concatenated(a, b):
    y = output_tensor((a.shape[0] + b.shape[0], a.shape[1]), a.dtype)
    for i in range(a.shape[0] + b.shape[0]):
        for j in range(a.shape[1]):
            y[i, j] = a[i, j] if i < a.shape[0] else b[i - a.shape[0], j]
    return y


def rolled(cache, new):
    y = output_tensor(cache.shape, cache.dtype)
    for i in range(cache.shape[0]):
        for j in range(cache.shape[1]):
            y[i, j] = cache[i + 3, j] if i + 3 < cache.shape[0] else new[i + 3 - cache.shape[0], j]
    return y


def native(function):
    return msops.Custom(function, func_type="akg", compile_attrs={"lower": "native"})


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("rows", [(2, 4), (3, 5), (1, 7), (2, 14), (5, 11), (2, 30), (20, 40)])
@pytest.mark.parametrize("columns", [1, 2, 3, 4])
def test_a_concatenation_keeps_every_element(rows, columns, dtype):
    random = np.random.default_rng(0)
    a, b = (random.integers(1, 100, (n, columns)).astype(dtype) for n in rows)
    got = native(concatenated)(jnp.asarray(a), jnp.asarray(b))
    np.testing.assert_array_equal(got, np.concatenate([a, b]))


@pytest.mark.parametrize("dtype", ["float32", "int32", "int8"])
@pytest.mark.parametrize("length", [7, 17, 32, 64])
def test_a_rolled_cache_keeps_every_element(length, dtype):
    random = np.random.default_rng(0)
    cache, new = (random.integers(1, 100, (n, 3)).astype(dtype) for n in (length, 3))
    got = native(rolled)(jnp.asarray(cache), jnp.asarray(new))
    np.testing.assert_array_equal(got, np.concatenate([cache[3:], new]))
