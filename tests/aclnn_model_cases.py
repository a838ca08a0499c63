"""Calls of aclnn operators that models are made of, and what numpy, scipy and optax return.

As in aclnn_cases.py: a case is inputs in aclnn's order, and a function of them that is not msops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import optax
import scipy  # which imports its parts when a case asks for them
from aclnn_cases import Case, integers, normal, positive


def derivative(function: Callable[[Any], Any], at: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """Central differences of the sum of dy times a function."""
    out = np.zeros(at.shape)
    for place in np.ndindex(at.shape):
        step = np.zeros(at.shape)
        step[place] = 1e-6
        high, low = function(at.astype(float) + step), function(at.astype(float) - step)
        out[place] = ((high - low) * dy).sum() / 2e-6
    return out


def correlate(x: Any, w: Any, stride: Any, pads: Any, dilation: Any, groups: int = 1) -> np.ndarray:
    """scipy's correlation of every channel, with the weight spread out and the result thinned."""
    window = [(n - 1) * d + 1 for n, d in zip(w.shape[2:], dilation, strict=True)]
    spread = np.zeros((*w.shape[:2], *window))
    spread[(..., *[slice(None, None, d) for d in dilation])] = w
    padded = np.pad(x.astype(float), [(0, 0), (0, 0), *[(p, p) for p in pads]])
    share = w.shape[0] // groups
    rows = []
    for image in padded:
        planes = []
        for o, kernel in enumerate(spread):
            first = o // share * w.shape[1]
            planes.append(
                sum(
                    scipy.signal.correlate(image[first + c], one, mode="valid", method="direct")
                    for c, one in enumerate(kernel)
                )
            )
        rows.append(planes)
    thinned = (slice(None), slice(None), *[slice(None, None, s) for s in stride])
    return np.array(rows)[thinned]


def scatter_transposed(
    x: Any, w: Any, stride: Any, pads: Any, dilation: Any, longer: Any, groups: int
) -> np.ndarray:
    """The definition of a transposed convolution: every entry adds its multiple of the weight."""
    outer = w.shape[1] * groups
    extents = [
        (n - 1) * s + (k - 1) * d + 1 + extra
        for n, s, k, d, extra in zip(
            x.shape[2:], stride, w.shape[2:], dilation, longer, strict=True
        )
    ]
    y = np.zeros((x.shape[0], outer, *extents))
    share_in, share_out = x.shape[1] // groups, w.shape[1]
    for n, c, *place in np.ndindex(*x.shape):
        group = c // share_in
        for o in range(share_out):
            for k in np.ndindex(*w.shape[2:]):
                target = [
                    p * s + i * d for p, s, i, d in zip(place, stride, k, dilation, strict=True)
                ]
                y[(n, group * share_out + o, *target)] += float(x[(n, c, *place)]) * w[(c, o, *k)]
    inner = [slice(p, size - p) for p, size in zip(pads, extents, strict=True)]
    return y[(slice(None), slice(None), *inner)]


def convolutions() -> Iterator[Case]:
    x, w, b = normal(2, 4, 7, 6), normal(6, 2, 3, 2), normal(6)
    yield Case(
        "Convolution",
        (x, w, b, [2, 1], [1, 0], [1, 2], False, [0, 0], 2, 0),
        lambda x, w, b, *_: correlate(x, w, [2, 1], [1, 0], [1, 2], 2) + b.reshape(-1, 1, 1),
        1e-5,
    )
    yield Case(
        "Convolution",
        (normal(1, 2, 9), normal(3, 2, 4), None, [3], [2], [1], False, [0], 1),
        lambda x, w, *_: correlate(x, w, [3], [2], [1]),
        1e-5,
    )
    yield Case(
        "Convolution",
        (normal(2, 4, 3, 5), normal(3, 2, 2, 2, 2), None, [1], [0], [1], False, [0], 1, 0),
        lambda x, w, *_: correlate(x[None], w, [1] * 3, [0] * 3, [1] * 3)[0],
        1e-5,
    )
    weight = normal(4, 3, 3, 2)
    yield Case(
        "Convolution",
        (x, weight, None, [2, 3], [1, 0], [1, 2], True, [1, 0], 2, 0),
        lambda x, w, *_: scatter_transposed(x, w, [2, 3], [1, 0], [1, 2], [1, 0], 2),
        1e-5,
    )
    x, w = normal(2, 2, 5, 4), normal(4, 1, 3, 2)
    dy = normal(2, 4, 3, 3)
    arguments = ([2, 1], [1, 0], [1, 1], False, [0, 0], 2)
    yield Case(
        "ConvolutionBackward",
        (dy, x, w, [4], *arguments, [True] * 3, 0),
        lambda dy, x, w, *_: (
            derivative(lambda x: correlate(x, w, [2, 1], [1, 0], [1, 1], 2), x, dy),
            derivative(lambda w: correlate(x, w, [2, 1], [1, 0], [1, 1], 2), w, dy),
            dy.sum(axis=(0, 2, 3)),
        ),
        1e-4,
    )


def attention_of(
    q: Any,
    k: Any,
    v: Any,
    scale: float,
    hidden: Any = False,
    shift: Any = 0.0,
    kept: Any = True,
    keep: float = 1.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row by row, of arrays [B, N, S, D]; returns output, maxima and sums."""
    q, k, v = (one.astype(float) for one in (q, k, v))
    share = q.shape[1] // k.shape[1]
    shape = (*q.shape[:3], k.shape[2])
    hidden, shift, kept = (np.broadcast_to(one, shape) for one in (hidden, shift, kept))
    y = np.zeros((*q.shape[:3], v.shape[3]))
    most, total = np.zeros((*q.shape[:3], 8)), np.zeros((*q.shape[:3], 8))
    for b, n, i in np.ndindex(*q.shape[:3]):
        scores = scale * (k[b, n // share] @ q[b, n, i] + shift[b, n, i])
        scores[hidden[b, n, i]] = -np.inf
        most[b, n, i] = scores.max()
        total[b, n, i] = np.exp(scores - scores.max()).sum()
        share_of = scipy.special.softmax(scores) * kept[b, n, i] / keep
        y[b, n, i] = share_of @ v[b, n // share]
    return y, most, total


NOTHING = np.zeros(0, np.float32)


def attentions() -> Iterator[Case]:
    q, k, v = normal(2, 4, 3, 8), normal(2, 2, 5, 8), normal(2, 2, 5, 8)
    tail = (0, 0)

    def expected(q: Any, k: Any, v: Any, **more: Any) -> tuple[Any, ...]:
        y, most, total = attention_of(q, k, v, 0.3, **more)
        return most, total, NOTHING, y

    yield Case(
        "FlashAttentionScore",
        (q, k, v, None, None, None, None, None, 0.3, 1.0, 9, 9, 4, "BNSD", 0, 0),
        lambda q, k, v, *_: expected(q, k, v),
        1e-5,
    )
    mask = np.zeros((3, 5), bool)
    mask[1, 3:], mask[0, 0] = True, True
    shift = normal(1, 4, 3, 5)
    kept = np.random.default_rng(5).random((2, 4, 3, 5)) < 0.8
    bits = np.packbits(kept, bitorder="little")
    yield Case(
        "FlashAttentionScore",
        (q, k, v, shift, bits, None, mask, None, 0.3, 0.8, 2**31 - 1, 2**31 - 1, 4, "BNSD", *tail),
        lambda q, k, v, shift, *_: expected(q, k, v, hidden=mask, shift=shift, kept=kept, keep=0.8),
        1e-5,
    )

    def merged(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        moved = x.transpose(axes)
        return moved.reshape(*moved.shape[:2], -1)

    distance = np.arange(5) - np.arange(3)[:, None]
    causal = {2: distance > 0, 3: distance > 2, 4: (distance > 3) | (distance < 1)}
    for layout, axes, mode in (("BSH", (0, 2, 1, 3), 3), ("SBH", (2, 0, 1, 3), 2)):
        yield Case(
            "FlashAttentionScore",
            (
                *(merged(one, axes) for one in (q, k, v)),
                *(None, None, None, None, None, 0.3, 1.0, 1, 1, 4, layout, 0, mode),
            ),
            lambda *_, axes=axes, mode=mode: (
                *expected(q, k, v, hidden=causal[mode])[:3],
                merged(expected(q, k, v, hidden=causal[mode])[3], axes),
            ),
            1e-5,
        )
    turned = tuple(one.transpose(0, 2, 1, 3).copy() for one in (q, k, v))
    yield Case(
        "FlashAttentionScore",
        (*turned, None, None, None, None, None, 0.3, 1.0, 1, 1, 4, "BSND", 0, 4),
        lambda *_: (
            *expected(q, k, v, hidden=causal[4])[:3],
            expected(q, k, v, hidden=causal[4])[3].transpose(0, 2, 1, 3),
        ),
        1e-5,
    )


def attention_gradients() -> Iterator[Case]:
    q, k, v = normal(1, 2, 3, 4), normal(1, 1, 3, 4), normal(1, 1, 3, 4)
    shift, dy = normal(1, 2, 3, 3), normal(1, 2, 3, 4)

    def output(q: Any, k: Any, v: Any, shift: Any) -> np.ndarray:
        return attention_of(q, k, v, 0.5, np.triu(np.ones((3, 3), bool), 1), shift)[0]

    yield Case(
        "FlashAttentionScoreGrad",
        (
            *(q, k, v, dy, shift, None, None, None, None, None, None, None, None),
            *(0.5, 1.0, 9, 9, 2, "BNSD", 0, 2),
        ),
        lambda q, k, v, dy, shift, *_: (
            derivative(lambda x: output(x, k, v, shift), q, dy),
            derivative(lambda x: output(q, x, v, shift), k, dy),
            derivative(lambda x: output(q, k, x, shift), v, dy),
            derivative(lambda x: output(q, k, v, x), shift, dy),
        ),
        1e-4,
    )


def beside_attention() -> Iterator[Case]:
    scores, mask = normal(2, 3, 4, 4), np.random.default_rng(2).random((2, 1, 4, 4)) < 0.4
    triangle = np.triu(np.ones((4, 4), bool), 1)
    for fixed, hidden in ((False, mask), (True, triangle)):
        yield Case(
            "ScaledMaskedSoftmax",
            (scores, mask, 0.5, fixed),
            lambda x, *_, hidden=hidden: scipy.special.softmax(
                np.where(hidden, -10000, 0.5 * x.astype(float)), axis=-1
            ),
        )
    keys, values = normal(6, 2, 3), normal(6, 2, 3)
    tables = np.array([[4, 1, 0], [2, 5, 3]], np.int32)
    lengths, starts = np.array([3, 2], np.int32), np.array([0, 3], np.int32)
    old = np.full((7, 3), -1, np.float32)

    def gathered(cache: np.ndarray, starts: Any) -> np.ndarray:
        rows = []
        for blocks, length, start in zip(tables, lengths, starts, strict=True):
            rows += [*np.concatenate([cache[block] for block in blocks])[start : start + length]]
        return np.concatenate([rows, old[len(rows) :]])

    yield Case(
        "GatherPaKvCache",
        (keys, values, tables, lengths, old, old, starts, "Norm", False),
        lambda k, v, *_: (gathered(k, starts), gathered(v, starts)),
    )
    yield Case(
        "GatherPaKvCache",
        (keys, values, tables, np.array([0, 3, 5], np.int32), old, old, None, "Norm", True),
        lambda k, v, *_: (gathered(k, [0, 0]), gathered(v, [0, 0])),
    )


def rotations() -> Iterator[Case]:
    """Pairs as complex numbers, multiplied by one of length 1."""
    x, dy = normal(2, 3, 2, 8), normal(2, 3, 2, 8)
    angle = normal(1, 3, 1, 4)

    def spread(values: np.ndarray, mode: int) -> np.ndarray:
        if mode == 1:
            return np.repeat(values, 2, axis=-1)
        if mode == 2:
            first, second = np.split(values, 2, axis=-1)
            return np.concatenate([first, first, second, second], axis=-1)
        return np.concatenate([values, values], axis=-1)

    def turned(x: np.ndarray, mode: int) -> np.ndarray:
        if mode in (1, 3):
            pairs = x[..., ::2] + 1j * x[..., 1::2]
        elif mode == 0:
            pairs = x[..., :4] + 1j * x[..., 4:]
        else:
            pairs = x[..., [0, 1, 4, 5]] + 1j * x[..., [2, 3, 6, 7]]
        z = pairs * np.exp(1j * angle.astype(float))
        if mode == 1:
            return np.stack([z.real, z.imag], axis=-1).reshape(x.shape)
        if mode == 2:
            a, b = z.real, z.imag
            return np.concatenate([a[..., :2], b[..., :2], a[..., 2:], b[..., 2:]], axis=-1)
        return np.concatenate([z.real, z.imag], axis=-1)

    for mode in range(4):
        cos, sin = (spread(f(angle), mode).astype(np.float32) for f in (np.cos, np.sin))
        yield Case(
            "RotaryPositionEmbedding",
            (x, cos, sin, mode),
            lambda x, c, s, mode: turned(x.astype(float), mode),
            1e-5,
        )
    # The gradient for x turns the other way.
    angle_back = -angle
    cos, sin = (spread(f(angle), 0).astype(np.float32) for f in (np.cos, np.sin))

    def back(dy: np.ndarray) -> np.ndarray:
        z = (dy[..., :4] + 1j * dy[..., 4:]) * np.exp(1j * angle_back.astype(float))
        return np.concatenate([z.real, z.imag], axis=-1)

    swapped = np.concatenate([-x[..., 4:], x[..., :4]], axis=-1)
    yield Case(
        "RotaryPositionEmbeddingGrad",
        (dy, cos, sin, x, 0),
        lambda dy, c, s, x, _: (
            back(dy),
            (dy.astype(float) * x).sum(axis=(0, 2), keepdims=True),
            (dy.astype(float) * swapped).sum(axis=(0, 2), keepdims=True),
        ),
        1e-5,
    )


def round_to_int8(x: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(x), -128, 127).astype(np.int8)


def quantizations() -> Iterator[Case]:
    x = normal(3, 4) * 40
    scales, zeros = np.array([0.5, 1, 2, 0.25], np.float32), np.array([1, -2, 0, 3], np.int32)
    yield Case(
        "Quantize",
        (x, scales, zeros, np.dtype(np.int8), 1),
        lambda x, s, z, *_: round_to_int8(np.rint(x / s) + z),
    )
    yield Case(
        "Quantize",
        (np.array([0.5, 1.5, -2.5, 1e9], np.float32), np.ones(1, np.float32), None, "uint8", 0),
        lambda *_: np.array([0, 2, 0, 255], np.uint8),
    )
    gamma, beta = positive(4), normal(4)
    yield Case(
        "RmsNormQuant",
        (x, gamma, beta, np.full(1, 0.02, np.float32), np.full(1, 3, np.int8), 1e-5),
        lambda x, g, b, *_: round_to_int8(
            (x.astype(float) / np.sqrt((x.astype(float) ** 2).mean(-1, keepdims=True) + 1e-5) * g)
            / 0.02
            + b.astype(float) / 0.02
            + 3
        ),
    )
    a, b = integers(-128, 128, 5, 7, dtype=np.int8), integers(-128, 128, 7, 6, dtype=np.int8)
    product = a.astype(int) @ b.astype(int)
    columns, rows = positive(6) * np.float32(1e-3), positive(5)
    none = (None, None, None)
    yield Case(
        "QuantMatmulV5",
        (a, b.T.copy(), rows, columns, *none, None, normal(6), False, True, 0),
        lambda a, b, r, c, *rest: product * c.astype(float) * r[:, None] + rest[4],
        1e-5,
    )
    inner = integers(-500, 500, 6)
    yield Case(
        "QuantMatmulV5",
        (a, b, None, None, *none, None, inner, False, False, 0),
        lambda *_: (product + inner).astype(np.int32),
    )
    encoded = columns.view(np.uint32).astype(np.uint64)
    offset = np.full(1, 4, np.float32)
    yield Case(
        "QuantMatmulV5",
        (a.T.copy(), b, None, encoded, None, None, offset, None, inner, True, False, 0),
        lambda *_: round_to_int8((product + inner).astype(np.float32) * columns + 4),
    )
    x, w = normal(7, 4), normal(3, 4, 5)
    bias = normal(3, 5)
    ends = np.array([2, 2, 6], np.int64)
    absent = (None, None, None, None)

    def rows_of(x: np.ndarray, activate: Callable[[Any], Any] = lambda y: y) -> np.ndarray:
        y = np.zeros((7, 5))
        for first, last, matrix, shift in zip([0, *ends], ends, w, bias, strict=False):
            y[first:last] = activate(x[first:last].astype(float) @ matrix + shift)
        return y

    yield Case(
        "GroupedMatmulV4",
        ([x], [w], [bias], None, *absent, ends, None, None, None, 3, 0, 0, 0),
        lambda x, *_: [rows_of(x[0])],
        1e-5,
    )
    yield Case(
        "GroupedMatmulV4",
        (
            *([x], [*w], [*bias], None, *absent, np.diff(ends, prepend=0)),
            *(None, None, None, 3, 0, 1, 5),
        ),
        lambda x, *_: [rows_of(x[0], lambda y: y * scipy.special.expit(y))],
        1e-5,
    )
    yield Case(
        "GroupedMatmulV4",
        ([x[:3], x], [w[0], w[1]], None, None, *absent, None, None, None, None, 0, -1, 0, 1),
        lambda x, w, *_: [np.maximum(one @ m, 0) for one, m in zip(x, w, strict=True)],
        1e-5,
    )


def pieces_of_models() -> Iterator[Case]:
    x = normal(3, 8)
    yield Case(
        "FastGelu", (x,), lambda x: x.astype(float) * scipy.special.expit(1.702 * x.astype(float))
    )
    yield Case(
        "GeluMul", (x, "none"), lambda x, _: scipy.special.ndtr(x[:, :4]) * x[:, :4] * x[:, 4:]
    )
    yield Case(
        "GeluMul",
        (x, "tanh"),
        lambda x, _: jax.nn.gelu(x[:, :4].astype(float), approximate=True) * x[:, 4:],
    )
    image, gamma, beta = normal(2, 6, 3, 2), normal(6), normal(6)

    def grouped(x: np.ndarray, swish: float) -> tuple[np.ndarray, ...]:
        parts = x.astype(float).reshape(2, 3, -1)
        mean, rstd = parts.mean(-1), 1 / np.sqrt(parts.var(-1) + 1e-5)
        y = ((parts - mean[..., None]) * rstd[..., None]).reshape(x.shape)
        y = y * gamma.reshape(-1, 1, 1) + beta.reshape(-1, 1, 1)
        return (y * scipy.special.expit(swish * y) if swish else y), mean, rstd

    for active, swish in ((True, 1.5), (False, 0.0)):
        yield Case(
            "GroupNormSwish",
            (image, gamma, beta, "NCHW", 3, 1e-5, active, 1.5),
            lambda x, *_, swish=swish: grouped(x, swish),
            1e-5,
        )
    a, b, weight = normal(2, 4), normal(2, 4), positive(4)

    def normed(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
        total = a.astype(float) + b
        rstd = 1 / np.sqrt((total**2).mean(-1, keepdims=True) + 1e-5)
        return rstd, total * rstd * weight, total

    yield Case("InplaceAddRmsNorm", (a, b, weight, 1e-5), lambda a, b, *_: normed(a, b), 1e-5)
    y = normal(3, 4), normal(3, 4)
    for reduction, reduce in enumerate((lambda x: x, np.mean, np.sum)):
        yield Case(
            "MseLoss", (*y, reduction), lambda x, t, _, reduce=reduce: reduce((x - t) ** 2), 1e-5
        )
        dy = normal(3, 4) if reduction == 0 else np.float32(1.5)
        share = 1 / 12 if reduction == 1 else 1
        yield Case(
            "MseLossBackward",
            (dy, *y, reduction),
            lambda dy, x, t, _, share=share: 2 * (x - t) * dy * share,
            1e-5,
        )
    yield Case("RightShift", (integers(-99, 99, 3, 4), integers(0, 5, 4)), np.right_shift)
    yield Case(
        "TransposeBatchMatMul",
        (normal(3, 2, 4), normal(2, 5, 4), None, None, [1, 0, 2], [0, 2, 1], [1, 0, 2], 0, 1),
        lambda x, y, *_: np.einsum("mbk,bnk->mbn", x, y),
        1e-5,
    )
    yield Case(
        "IndexFillTensor",
        (normal(3, 4), 1, [0, -1], 2.5),
        lambda x, *_: np.stack([np.full(3, 2.5), x[:, 1], x[:, 2], np.full(3, 2.5)], 1),
    )
    yield from steps_of_adam()


def steps_of_adam() -> Iterator[Case]:
    var, grad = normal(3, 4), normal(3, 4)

    def optax_steps(maximize: bool) -> tuple[Any, ...]:
        """Two steps: what there is before the second, and after it."""
        rule = optax.adamw(0.01, b1=0.8, b2=0.9, eps=1e-6, weight_decay=0.1)
        value = var.astype(np.float64)
        before, state = value, rule.init(value)
        old = state[0]
        for _ in range(2):
            before, old = value, state[0]
            gradient = grad.astype(np.float64) * (-1 if maximize else 1)
            change, state = rule.update(gradient, state, value)
            value = np.asarray(optax.apply_updates(value, change))
        return before, old, value, state[0]

    with jax.enable_x64(True):
        for maximize in (False, True):
            before, old, after, new = optax_steps(maximize)
            expected = tuple(np.asarray(one) for one in (after, new.mu, new.nu))
            yield Case(
                "ApplyAdamWV2",
                (
                    *(np.asarray(one, np.float32) for one in (before, old.mu, old.nu)),
                    *(None, grad, np.array([1], np.float32)),
                    *(0.01, 0.8, 0.9, 0.1, 1e-6, False, maximize),
                ),
                lambda *_, expected=expected: expected,
                1e-5,
            )
    m, v, most = normal(3, 4), positive(3, 4), positive(3, 4)

    def amsgrad_step(*_: Any) -> tuple[np.ndarray, ...]:
        """By hand: optax keeps the greatest of the corrected moments, aclnn of the plain ones."""
        g = grad.astype(float)
        new_m, new_v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
        greatest = np.maximum(most, new_v)
        root = np.sqrt(greatest / (1 - 0.9**3)) + 1e-6
        return var - 0.01 * new_m / (1 - 0.8**3) / root, new_m, new_v, greatest

    yield Case(
        "ApplyAdamWV2",
        (var, m, v, most, grad, np.array([2], np.int64), 0.01, 0.8, 0.9, 0.0, 1e-6, True, False),
        amsgrad_step,
        1e-5,
    )


def poolings() -> Iterator[Case]:
    def windows(size: int, count: int) -> list[slice]:
        return [slice(n * size // count, math.ceil((n + 1) * size / count)) for n in range(count)]

    def averaged(x: np.ndarray, sizes: Any) -> np.ndarray:
        y = np.zeros((*x.shape[:-3], *sizes))
        edges = [windows(n, count) for n, count in zip(x.shape[-3:], sizes, strict=True)]
        for place in np.ndindex(*sizes):
            box = tuple(edge[n] for edge, n in zip(edges, place, strict=True))
            y[(..., *place)] = x[(..., *box)].astype(float).mean(axis=(-3, -2, -1))
        return y

    yield Case("AdaptiveAvgPool3d", (normal(2, 3, 5, 4, 7), [2, 3, 4]), averaged, 1e-5)
    yield Case("AdaptiveAvgPool3d", (normal(3, 2, 6, 4), [1, 2, 2]), averaged, 1e-5)

    def greatest(x: np.ndarray, sizes: Any) -> tuple[np.ndarray, np.ndarray]:
        rows, columns = (windows(n, c) for n, c in zip(x.shape[-2:], sizes, strict=True))
        y = np.zeros((*x.shape[:-2], *sizes), x.dtype)
        places = np.zeros(y.shape, np.int64)
        for *lead, i, j in np.ndindex(*y.shape):
            window = np.full(x.shape[-2:], -np.inf)
            window[rows[i], columns[j]] = x[tuple(lead)][rows[i], columns[j]]
            y[(*lead, i, j)], places[(*lead, i, j)] = window.max(), window.argmax()
        return y, places

    yield Case("AdaptiveMaxPool2d", (normal(2, 3, 5, 7), [3, 4]), greatest)
    yield Case("AdaptiveMaxPool2d", (normal(3, 4, 4), [2, 2]), greatest)
    x = normal(2, 3, 6, 5)
    values = scipy.ndimage.maximum_filter(x, size=(1, 1, 3, 2), origin=(0, 0, -1, -1))
    taken = values[:, :, 0:4:2, 0:4:1]

    def mask(x: np.ndarray) -> np.ndarray:
        """A plane per place in the window, a bit per output."""
        bits = np.zeros((2, 3, 6, (-(-8 // 16) + 1) * 32 * 8), bool)
        for n, c, i, j in np.ndindex(2, 3, 2, 4):
            window = x[n, c, 2 * i : 2 * i + 3, j : j + 2]
            bits[n, c, window.argmax(), i * 4 + j] = True
        return np.packbits(bits, axis=-1, bitorder="little").view(np.int8)

    arguments = ([3, 2], [2, 1], [0, 0], [1, 1], False)
    yield Case("MaxPool2dWithMask", (x, *arguments), lambda x, *_: (taken, mask(x)))
    dy = normal(2, 3, 2, 4)

    def scattered(dy: np.ndarray, x: np.ndarray, *_: Any) -> np.ndarray:
        dx = np.zeros(x.shape)
        for n, c, i, j in np.ndindex(2, 3, 2, 4):
            window = x[n, c, 2 * i : 2 * i + 3, j : j + 2]
            row, column = np.unravel_index(window.argmax(), (3, 2))
            dx[n, c, 2 * i + row, j + column] += dy[n, c, i, j]
        return dx

    yield Case("MaxPool2dWithMaskBackward", (dy, x, mask(x), *arguments), scattered, 1e-5)


def counts() -> Iterator[Case]:
    numbers, weights = integers(0, 6, 20), normal(20)
    yield Case("Bincount", (numbers, None, 9), lambda x, _, n: np.bincount(x, minlength=n))
    yield Case(
        "Bincount",
        (numbers, weights, 0),
        lambda x, w, n: np.bincount(x, w, n).astype(np.float32),
        1e-5,
    )
    x = normal(3, 5)
    for keep in (False, True):
        yield Case(
            "Kthvalue",
            (x, 2, 1, keep),
            lambda x, k, d, keep: tuple(
                np.take(a, [k - 1] if keep else k - 1, d)
                for a in (np.sort(x, d), np.argsort(x, d, kind="stable"))
            ),
        )


FAMILIES = (
    convolutions,
    attentions,
    attention_gradients,
    beside_attention,
    rotations,
    quantizations,
    pieces_of_models,
    poolings,
    counts,
)
CASES = [case for family in FAMILIES for case in family()]
