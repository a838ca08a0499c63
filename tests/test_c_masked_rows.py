"""Neighbours loaded under conditions: vectors of gcc 11 and 12 use one mask for several."""

import jax
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


def rows_beside_a_long_loop(a, m):
    y = output_tensor((a.shape[0], 3), a.dtype)
    totals = output_tensor((a.shape[0],), a.dtype)
    for i in range(a.shape[0]):
        for j in range(3):
            y[i, j] = a[i, j] if m[i, j] > 0 else 0
        for j in range(a.shape[1]):
            totals[i] += a[i, j]
    return y, totals


def greatest_so_far(a, m):
    y = output_tensor(a.shape, a.dtype)
    greatest = 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if m[i, j] > 0:
                y[i, j] = greatest
                greatest = max(greatest, a[i, j])
    return y


def counted_rows(a, m):
    y = output_tensor(a.shape, a.dtype)
    count = 0
    for i in range(a.shape[0]):
        count = count + 1
        for j in range(a.shape[1]):
            y[i, j] = a[i, j] + count if m[i, j] > 0 else 0
    return y


@pytest.mark.parametrize("rows", [5, 17, 64])
def test_rows_beside_a_long_loop(rows):
    random = np.random.default_rng(0)
    a, m = (random.integers(1 - n, 100, (rows, 40)).astype("int32") for n in (0, 100))
    op = native(rows_beside_a_long_loop)
    y, totals = op(jnp.asarray(a), jnp.asarray(m))
    np.testing.assert_array_equal(y, np.where(m[:, :3] > 0, a[:, :3], 0))
    np.testing.assert_array_equal(totals, a.sum(1))


@pytest.mark.parametrize("rows", [5, 17, 64])
def test_rows_with_a_recurrence(rows):
    random = np.random.default_rng(0)
    a = random.integers(1, 100, (rows, 3)).cumsum(0).astype("int32")
    m = random.integers(-1, 2, (rows, 3)).astype("int32")
    op = native(greatest_so_far)
    expected = np.where(m > 0, a, 0).reshape(-1)
    before = np.maximum.accumulate(np.concatenate([[0], expected[:-1]])).reshape(a.shape)
    np.testing.assert_array_equal(op(jnp.asarray(a), jnp.asarray(m)), np.where(m > 0, before, 0))


@pytest.mark.parametrize("rows", [5, 17, 64])
def test_rows_with_a_counter(rows):
    random = np.random.default_rng(0)
    a, m = (random.integers(1 - n, 100, (rows, 3)).astype("int32") for n in (0, 100))
    op = native(counted_rows)
    counts = np.arange(1, rows + 1)[:, None]
    np.testing.assert_array_equal(
        op(jnp.asarray(a), jnp.asarray(m)), np.where(m > 0, a + counts, 0)
    )


def largest(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i, 0]
        for j in range(1, x.shape[1]):
            y[i] = max(y[i], x[i, j])
    return y


@pytest.mark.parametrize("columns", [2, 3, 4, 5, 8, 16, 33])
def test_equal_elements_share_the_slope_in_each_row(columns):
    x = np.random.default_rng(0).integers(0, 3, (40, columns)).astype("float32")
    expected = (x == x.max(1, keepdims=True)).astype("float32")
    expected /= expected.sum(1, keepdims=True)
    got = jax.grad(lambda x: jnp.sum(native(largest)(x)))(jnp.asarray(x))
    np.testing.assert_allclose(got, expected, 1e-6)
