"""Operators of Ascend Transformer Boost and SiP in extensions, against numpy and scipy."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy
from extension_modules import SOURCES

import msops as ms
from msops.errors import ArgumentValueError, BackendError, BuildError

RNG = np.random.default_rng(3)
SWIGLU = 6


@pytest.fixture(scope="module")
def ops():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "msops: there is no Ascend device")
        return ms.ops.CustomOpBuilder(
            "tests_libraries",
            SOURCES / "libraries.cpp",
            enable_atb=True,
            enable_asdsip=True,
            cflags="-O0",
        ).load()


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def close(ours, theirs):
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=2e-5, atol=2e-5)


def swiglu(x, axis):
    a, b = np.split(x, 2, axis)
    return a * scipy.special.expit(a) * b


ACTIVATIONS = {
    1: lambda x: np.maximum(x, 0),
    2: lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    3: lambda x: x * scipy.special.expit(1.702 * x),
    4: lambda x: x * scipy.special.expit(1.5 * x),
    6: lambda x: swiglu(x, -1),
    8: scipy.special.expit,
}


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_activations(ops, kind):
    x = normal(3, 8)
    close(ops.activate(jnp.asarray(x), kind, -1), ACTIVATIONS[kind](x))


def test_swiglu_in_programs_with_batches_and_gradients(ops):
    x = normal(4, 6)
    close(jax.jit(lambda x: ops.activate(x, SWIGLU, 0))(x), swiglu(x, 0))
    close(jax.vmap(lambda x: ops.activate(x, SWIGLU, -1))(x), swiglu(x, -1))
    slope = jax.grad(lambda x: ops.activate(x, SWIGLU, -1).sum())(jnp.asarray(x))
    a, b = np.split(x, 2, -1)
    gate = scipy.special.expit(a)
    close(slope, np.concatenate([b * (gate + a * gate * (1 - gate)), a * gate], -1))


def turned(x, cos, sin, pairs):
    heads = x.reshape(len(x), -1, cos.shape[1])
    out = np.zeros_like(heads)
    for a, b in pairs:
        out[..., a] = heads[..., a] * cos[:, None, a] - heads[..., b] * sin[:, None, a]
        out[..., b] = heads[..., b] * cos[:, None, b] + heads[..., a] * sin[:, None, b]
    return out.reshape(x.shape)


ROPE_PAIRS = {
    2: [(n, n + 4) for n in range(4)],
    4: [(0, 2), (1, 3), (4, 6), (5, 7)],
    8: [(0, 1), (2, 3), (4, 5), (6, 7)],
}


@pytest.mark.parametrize("coefficient", ROPE_PAIRS)
def test_rope_changes_query_and_key(ops, coefficient):
    query, key, cos, sin = normal(4, 16), normal(4, 8), normal(4, 8), normal(4, 8)
    q, k = ms.Tensor(query), ms.Tensor(key)
    ops.rope(q, k, ms.Tensor(cos), ms.Tensor(sin), coefficient)
    close(q.asnumpy(), turned(query, cos, sin, ROPE_PAIRS[coefficient]))
    close(k.asnumpy(), turned(key, cos, sin, ROPE_PAIRS[coefficient]))
    slope = jax.grad(lambda x: ops.turned(x, cos, sin, coefficient).sum())(jnp.asarray(query))
    ones = np.ones_like(query)
    close(slope, turned(ones, cos, -_swapped(sin, coefficient), ROPE_PAIRS[coefficient]))


def _swapped(sin, coefficient):
    """The transpose of a turn takes the sine of the other entry of a pair."""
    out = sin.copy()
    for a, b in ROPE_PAIRS[coefficient]:
        out[:, a], out[:, b] = sin[:, b], sin[:, a]
    return out


def test_rope_of_wide_heads_has_half_the_size_for_pairs_side_by_side(ops):
    query, cos, sin = normal(2, 16), normal(2, 16), normal(2, 16)
    pairs = [(n, n + 1) for n in range(0, 16, 2)]
    for coefficient in (8, 16):
        close(ops.turned(query, cos, sin, coefficient), turned(query, cos, sin, pairs))


def test_rms_norm(ops):
    x, residual, gamma = normal(3, 5), normal(3, 5), normal(5)

    def normed(x, gamma):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * gamma

    close(ops.norm([x, gamma], 1, False)[0], normed(x, gamma))
    close(ops.norm([x, gamma], 1, True)[0], normed(x, gamma + 1))
    y, total = jax.jit(lambda *inputs: ops.norm(list(inputs), 2, False))(x, residual, gamma)
    close(y, normed(x + residual, gamma))
    close(total, x + residual)


def test_reshape_and_cache(ops):
    key, value, slots = normal(3, 2, 4), normal(3, 2, 4), np.array([5, 0, 3], np.int32)
    caches = normal(4, 2, 2, 4), normal(4, 2, 2, 4)
    tensors = [ms.Tensor(cache) for cache in caches]
    ops.store([ms.Tensor(key), ms.Tensor(value), *tensors, ms.Tensor(slots)])
    for tensor, cache, tokens in zip(tensors, caches, (key, value), strict=True):
        expected = cache.copy()
        for slot, token in zip(slots, tokens, strict=True):
            expected[slot // 2, slot % 2] = token
        close(tensor.asnumpy(), expected)
    only = ms.Tensor(caches[0])
    ops.store([ms.Tensor(key), only, ms.Tensor(slots)])
    close(only.asnumpy(), tensors[0].asnumpy())


@pytest.mark.parametrize("has_mask", [False, True])
def test_self_attention_of_sequences_side_by_side(ops, has_mask):
    lengths = np.array([3, 2], np.int32)
    query, key, value = normal(5, 4 * 6), normal(5, 2 * 6), normal(5, 2 * 6)
    mask = np.triu(np.full((4, 4), -1e4, np.float32), 1)
    expected = np.zeros((5, 4, 6))
    start = 0
    for length in lengths:
        part = slice(start, start + length)
        for head in range(4):
            q = query[part].reshape(length, 4, 6)[:, head]
            k, v = (x[part].reshape(length, 2, 6)[:, head // 2] for x in (key, value))
            scores = 0.25 * q @ k.T + (mask[:length, :length] if has_mask else 0)
            expected[part, head] = scipy.special.softmax(scores, -1) @ v
        start += length
    inputs = [query, key, value, *([mask] if has_mask else []), lengths]
    attend = jax.jit(lambda *inputs: ops.attend(list(inputs), 4, 2, 0))
    close(attend(*inputs), expected.reshape(5, -1))
    slope = jax.grad(lambda x: attend(x, *inputs[1:]).sum())(query)
    step = np.zeros_like(query)
    step[1, 2] = 1e-2
    high, low = (np.asarray(attend(x, *inputs[1:])).sum() for x in (query + step, query - step))
    np.testing.assert_allclose(slope[1, 2], (high - low) / 2e-2, atol=5e-3)


def complexes(*shape):
    return (normal(*shape) + 1j * normal(*shape)).astype(np.complex64)


TRANSFORMS = {
    "forward": (complexes(2, 16), "asdFftExecC2C", [16], True, np.fft.fft),
    "backward": (complexes(2, 15), "asdFftExecC2C", [15], False, lambda x: np.fft.ifft(x) * 15),
    "two axes": (complexes(2, 6, 5), "asdFftExecC2C", [6, 5], True, np.fft.fft2),
    "two axes back": (
        complexes(2, 6, 5),
        "asdFftExecC2C",
        [6, 5],
        False,
        lambda x: np.fft.ifft2(x) * 30,
    ),
    "real": (normal(2, 7), "asdFftExecR2C", [7], True, np.fft.rfft),
    "real, two axes": (normal(2, 4, 6), "asdFftExecR2C", [4, 6], True, np.fft.rfft2),
    "to real": (complexes(2, 5), "asdFftExecC2R", [8], False, lambda x: np.fft.irfft(x, 8) * 8),
    "to real, odd": (
        complexes(2, 4),
        "asdFftExecC2R",
        [7],
        False,
        lambda x: np.fft.irfft(x, 7) * 7,
    ),
    "to real, forward": (complexes(2, 5), "asdFftExecC2R", [8], True, lambda x: np.fft.hfft(x, 8)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(ops, name):
    x, operator, sizes, forward, expected = TRANSFORMS[name]
    close(ops.transform(x, operator, sizes, forward, 2, 16), expected(x))
    compiled = jax.jit(lambda x: ops.transform(x, operator, sizes, forward, 2, 16))
    close(compiled(x), expected(x))


def test_a_transform_has_batches_and_a_gradient(ops):
    x = normal(3, 2, 8)
    rows = jax.vmap(lambda x: ops.transform(x, "asdFftExecR2C", [8], True, 2, 16))(x)
    close(rows, np.fft.rfft(x))

    def power(x):
        return jnp.abs(ops.transform(x, "asdFftExecR2C", [8], True, 2, 16)[:, 1]).sum()

    slope = jax.grad(power)(x[0])
    close(slope, jax.grad(lambda x: jnp.abs(jnp.fft.rfft(x)[:, 1]).sum())(x[0]))


def test_what_is_wrong_is_said(ops):
    x = jnp.ones((2, 8), jnp.complex64)
    with pytest.raises(BackendError, match=r"no operator 'asdfftexecc2c'.*\n.*asdFftExecC2C"):
        ops.transform(x, "asdfftexecc2c", [8], True, 2, 16)
    with pytest.raises(ArgumentValueError, match=r"dimType HORIZONTAL.*0x11"):
        ops.transform(x, "asdFftExecC2C", [8], True, 2, 17)
    with pytest.raises(ArgumentValueError, match=r"expected 2 times \(4,\) entries"):
        ops.transform(x, "asdFftExecC2C", [4], True, 2, 16)
    with pytest.raises(ArgumentValueError, match="expected activationType"):
        ops.activate(jnp.ones((2, 8)), 7, -1)
    with pytest.raises(ArgumentValueError, match="expected layerType 1"):
        ops.norm([jnp.ones((2, 8)), jnp.ones(8)], 3, False)
    with pytest.raises(ArgumentValueError, match="rotaryCoeff 2, 4, D or D / 2"):
        ops.turned(jnp.ones((2, 8)), jnp.ones((2, 8)), jnp.ones((2, 8)), 3)
    with pytest.raises(ArgumentValueError, match="and no clamp"):
        ops.attend([jnp.ones((2, 8))] * 3 + [jnp.array([2])], 1, 1, 1)
    with pytest.raises(
        ArgumentValueError, match="expected inputs query, key, value, seqLen; got 2"
    ):
        ops.attend([jnp.ones((2, 8))] * 2, 1, 1, 0)
    with pytest.raises(ArgumentValueError, match="indices below 4"):
        ops.store([ms.Tensor(normal(1, 1, 2)), ms.Tensor(normal(2, 2, 1, 2)), ms.Tensor([4])])


def test_a_module_says_which_libraries_it_needs(tmp_path):
    source = tmp_path / "fft.cpp"
    source.write_text('#include "ms_extension/api.h"\nms::pynative::FFTParam param;\n')
    with pytest.raises(BuildError, match="FFTParam"):
        ms.ops.CustomOpBuilder("fft", source).build()
