"""Extremes of arrays: NaN if an element is, at every size, in every form and transformation."""

from __future__ import annotations

from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, PartitionSpec
from jax.test_util import check_grads
from loop_ir import amax, amin, reduce_extreme, window_extreme
from quick_cases import in_turn, one_in

pytestmark = pytest.mark.usefixtures("as_users_compile")


@pytest.fixture(autouse=True)
def x64() -> Any:
    """Float64, without touching JAX's global flag."""
    with jax.enable_x64(True):
        yield


DTYPES = ("float32", "float64", "bfloat16", "float16")
NUMPY = {"max": np.max, "min": np.min}
OURS = {"max": amax, "min": amin}

# XLA takes another way from 4,096 elements on.
AXES = {
    "few": ((40,), (0,)),
    "whole": ((5000,), (0,)),
    "whole matrix": ((70, 80), (0, 1)),
    "rows": ((70, 80), (1,)),
    "columns": ((70, 80), (0,)),
    "middle": ((6, 40, 30), (1,)),
    "around": ((30, 6, 40), (0, 2)),
    "planes": ((30, 40, 6), (0, 1)),
    "of one": ((5000, 1), (1,)),
}


PLACES = (0, 0.4, -0.4, 1)


def with_nan(shape: tuple[int, ...], dtype: str, place: float) -> np.ndarray:
    """Returns numbers, of which one is NaN: the first, the last or one between.

    Its sign bit is that of `place`: NaN computed on x86 have one, and 16-bit floats may be compared
    as integers.
    """
    x = np.random.default_rng(0).normal(size=shape).astype(jnp.dtype(dtype))
    x.flat[int(abs(place) * (x.size - 1))] = np.copysign(np.nan, place)
    return x


def same(got: Any, expected: Any) -> None:
    np.testing.assert_array_equal(np.float64(got), np.float64(expected))


@pytest.mark.parametrize(("name", "dtype", "op"), one_in(7, product(AXES, DTYPES, NUMPY)))
def test_a_nan_is_the_extreme(name: str, dtype: str, op: str) -> None:
    shape, axes = AXES[name]
    of = jax.jit(lambda x: reduce_extreme(op, x, axes))
    # What computes the elements becomes part of the reduction.
    of_computed = jax.jit(lambda x: reduce_extreme(op, 2 * x, axes))
    of_narrowed = jax.jit(lambda x: reduce_extreme(op, x.astype(dtype), axes))
    for place in PLACES:
        x = with_nan(shape, dtype, place)
        expected = NUMPY[op](np.float64(x), axis=axes)
        same(of(x), expected)
        same(of_computed(x), 2 * expected)
        same(of_narrowed(np.float32(x)), NUMPY[op](np.float64(np.float32(x).astype(x.dtype)), axes))
        same(OURS[op](x, axis=axes), expected)
    same(reduce_extreme(op, jnp.asarray(x), axes), expected)
    assert OURS[op](x, axes).dtype == x.dtype


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [3, 5000])
def test_infinite_elements_stay(dtype: str, size: int) -> None:
    for value in -np.inf, np.inf:
        x = jnp.full((size,), value, dtype)
        assert float(amax(x)) == float(amin(x)) == value


@pytest.mark.parametrize("place", PLACES)
def test_a_batch_keeps_nan(place: float) -> None:
    x = with_nan((20, 30, 25), "float32", place)
    for axis in (0, 1, 2):
        rest = np.moveaxis(np.float64(x), axis, 0)
        for op, best in OURS.items():
            batch = jax.vmap(lambda x, best=best: best(x, 0), in_axes=axis)(x)
            same(batch, NUMPY[op](rest, axis=1))
            same(jax.jit(jax.vmap(best, in_axes=axis))(x), NUMPY[op](rest, axis=(1, 2)))


def test_arguments_are_those_of_jax_numpy() -> None:
    x = np.float32(np.arange(12).reshape(3, 4))
    for ours, theirs in (amax, jnp.max), (amin, jnp.min):
        for number, axis in enumerate((None, 0, -1, (0, -1), (), [1])):
            for keepdims in (False, True):
                dtype = np.int32 if (number + keepdims) % 2 else np.float32
                got = ours(x.astype(dtype), axis, keepdims)
                expected = theirs(x.astype(dtype), axis, keepdims=keepdims)
                same(got, expected)
                assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        for axis in (2, (0, 0)):
            with pytest.raises(ValueError, match="axis") as refused:
                theirs(x, axis)
            with pytest.raises(ValueError, match="axis") as ours_refused:
                ours(x, axis)
            assert str(ours_refused.value) == str(refused.value)
        with pytest.raises(ValueError, match="no identity"):
            ours(x[:0])
        assert float(ours(np.float32(3))) == 3
        assert ours(np.zeros((0, 3), np.float32), 1).shape == (0,)


@pytest.mark.parametrize(("name", "op"), one_in(3, product(AXES, NUMPY)))
def test_equal_elements_share_the_slope(name: str, op: str) -> None:
    shape, axes = AXES[name]
    x = np.round(np.random.default_rng(1).normal(size=shape))
    best = NUMPY[op](x, axis=axes, keepdims=True)
    expected = (x == best) / np.sum(x == best, axis=axes, keepdims=True)
    total = lambda x: jnp.sum(reduce_extreme(op, x, axes))  # noqa: E731
    for dtype in DTYPES:
        pulled = jax.jit(jax.grad(total))(x.astype(jnp.dtype(dtype)))
        assert pulled.dtype == dtype
        rounded = np.float64(expected.astype(pulled.dtype))
        np.testing.assert_allclose(np.float64(pulled), rounded, rtol=0.01)


@pytest.mark.parametrize("op", one_in(2, NUMPY))
def test_derivatives_are_those_of_finite_differences(op: str) -> None:
    # Far from ties, and of a second order that is not 0.
    x = np.random.default_rng(2).permutation(12).reshape(3, 4) * 0.5
    window = ((2, 3), (1, 3), [(0, 0), (1, 1)], (1, 1))
    for function in (
        lambda x: reduce_extreme(op, x * x, (1,)) ** 2,
        lambda x: window_extreme(op, x * x, *window),
    ):
        check_grads(jax.jit(function), [x], 2)


@pytest.mark.parametrize(("rows", "dtype"), in_turn([3, 700], DTYPES))
def test_a_nan_has_no_slope(dtype: str, rows: int) -> None:
    x = np.ones((rows, 8), jnp.dtype(dtype))
    x[1, 2] = np.nan
    clear = np.repeat(np.arange(rows)[:, None] != 1, 8, axis=1)
    total = lambda x: jnp.sum(reduce_extreme("max", x, (1,)))  # noqa: E731
    same(jax.grad(total)(x), clear / 8)
    _, slope = jax.jvp(lambda x: reduce_extreme("max", x, (1,)), (x,), (np.ones_like(x),))
    same(slope, clear[:, 0])
    in_numpy = np.where(clear, 0.125, np.nan)
    same(jax.grad(lambda x: jnp.sum(jnp.max(x[:3], 1)))(x)[:3], in_numpy[:3])
    same(jax.grad(lambda x: jnp.sum(amax(x, 1)))(x), in_numpy)
    _, slope = jax.jvp(lambda x: amax(x, 1), (x,), (np.ones_like(x),))
    same(slope, np.where(clear[:, 0], 1, np.nan))
    whole = lambda x: jnp.sum(window_extreme("max", x, (1, 8), (1, 8), [(0, 0)] * 2, (1, 1)))  # noqa: E731
    pulled = np.float64(jax.grad(whole)(x))
    same(pulled.sum(axis=1), clear[:, 0])
    assert (pulled >= 0).all()


WINDOWS = {
    "side by side": ((64, 96), (2, 2), (2, 2), (0, 0), (1, 1)),
    "overlapping": ((64, 96), (3, 2), (1, 1), (1, 0), (1, 1)),
    "spread": ((64, 96), (2, 2), (2, 1), (0, 0), (3, 2)),
    "whole rows": ((64, 96), (1, 96), (1, 1), (0, 0), (1, 1)),
    "whole columns": ((64, 96), (64, 1), (1, 1), (0, 0), (1, 1)),
    "everything": ((64, 96), (64, 96), (1, 1), (0, 0), (1, 1)),
    "nearly everything": ((64, 96), (63, 95), (63, 95), (1, 1), (1, 1)),
}


@pytest.mark.parametrize(("name", "dtype", "op"), one_in(5, product(WINDOWS, DTYPES, NUMPY)))
def test_a_window_with_a_nan_is_nan(name: str, dtype: str, op: str) -> None:
    shape, lengths, strides, padding, dilations = WINDOWS[name]
    pairs = [(n, n) for n in padding]
    of = jax.jit(lambda x: window_extreme(op, x, lengths, strides, pairs, dilations))
    worst = -np.inf if op == "max" else np.inf
    reach = [(n - 1) * d + 1 for n, d in zip(lengths, dilations, strict=True)]
    for place in PLACES:
        x = with_nan(shape, dtype, place)
        padded = np.pad(np.float64(x), pairs, constant_values=worst)
        views = np.lib.stride_tricks.sliding_window_view(padded, reach)
        views = views[:: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]
        same(of(x), NUMPY[op](views, axis=(2, 3)))
    assert of(x).dtype == x.dtype


def test_integers_and_bools_are_those_of_jax() -> None:
    for dtype in ("int8", "uint16", "int64", "bool"):
        x = np.arange(24).reshape(4, 6).astype(dtype)
        for op, one in (("max", lax.max), ("min", lax.min)):
            got = window_extreme(op, x, (2, 2), (2, 2), [(1, 1)] * 2, (1, 1))
            info = None if dtype == "bool" else np.iinfo(dtype)
            start = (op == "min") if info is None else info.min if op == "max" else info.max
            start = np.asarray(start, dtype)
            expected = lax.reduce_window(x, start, one, (2, 2), (2, 2), [(1, 1)] * 2)
            same(got, expected)


def test_a_part_on_each_device() -> None:
    mesh = Mesh(np.array(jax.devices()[:1]), ("i",))
    parts = PartitionSpec("i")
    x = with_nan((80, 70), "float32", 0.4)
    for axis in (0, 1):
        split = jax.shard_map(
            lambda x, axis=axis: amax(x, axis, keepdims=True),
            mesh=mesh, in_specs=parts, out_specs=parts,
        )  # fmt: skip
        same(jax.jit(split)(x), np.max(x, axis=axis, keepdims=True))


@pytest.mark.parametrize("op", ["max", "min"])
def test_several_axes_of_zeros(op: str) -> None:
    rng = np.random.default_rng(0)
    for few in (0.0, -0.0):
        x = np.where(rng.random((70, 80, 3)) < 1e-3, few, -few).astype(np.float32)
        x[rng.random(x.shape) < 0.1] = -1 if op == "max" else 1
        got = np.asarray(reduce_extreme(op, x, (0, 1)))
        np.testing.assert_array_equal(got, np.zeros(3))
        assert np.signbit(got).all() == np.signbit(got).any() == (op == "min")
