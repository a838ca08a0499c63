"""Calls of aclnn operators of language models: experts, caches, integers; and what numpy returns.

As in aclnn_cases.py: a case is inputs in aclnn's order, and a function of them that is not msops.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy
from aclnn_cases import Case, integers, normal, positive

LOGITS = normal(5, 6)
TOKENS = normal(4, 3)
CHOSEN = np.array([[2, 0], [1, 2], [2, 1], [0, 2]], np.int32)


def gated(x: np.ndarray, finished: Any, k: int) -> tuple[np.ndarray, ...]:
    shares = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    order = np.argsort(-shares, axis=-1, kind="stable")[:, :k]
    experts = order.astype(np.int32)
    if finished is not None:
        experts[finished] = x.shape[-1]
    places = np.array([[row + column * len(x) for column in range(k)] for row in range(len(x))])
    return np.take_along_axis(shares, order, -1), experts, places.astype(np.int32)


def routed(
    x: np.ndarray,
    chosen: np.ndarray,
    active: int,
    capacity: int,
    experts: int,
    mode: int,
    flag: int,
    _: Any,
) -> tuple[np.ndarray, ...]:
    """One token after the other, as the words of the page have it."""
    queues: list[list[int]] = [[] for _ in range(experts)]
    for pair, expert in enumerate(chosen.reshape(-1)):
        queues[expert].append(pair)
    k = chosen.reshape(len(x), -1).shape[1]
    counts = np.array([len(queue) for queue in queues], np.int32)
    where = np.full(chosen.size, -1, np.int32)
    if mode == 0:
        inline = [pair for queue in queues for pair in queue]
        for place, pair in enumerate(inline):
            where[pair] = place
        kept = inline[: active or None]
        numbers = np.cumsum(counts).astype(np.int32) if flag == 1 else counts
        return x[[pair // k for pair in kept]], where, numbers, counts
    out = np.zeros((experts, capacity, x.shape[1]), np.float32)
    for expert, queue in enumerate(queues):
        for place, pair in enumerate(queue[:capacity]):
            out[expert, place] = x[pair // k]
            where[pair] = expert * capacity + place
    return out, where, counts, counts


def combined(
    expanded: np.ndarray,
    where: np.ndarray,
    x1: Any,
    x2: Any,
    bias: Any,
    scales: Any,
    chosen: Any,
    mode: int,
) -> np.ndarray:
    k = 1 if scales is None else scales.shape[1]
    rows = where.size // k
    pool = expanded.reshape(-1, expanded.shape[-1])
    out = np.zeros((rows, pool.shape[1]))
    for row in range(rows):
        for choice in range(k):
            place = where[row * k + choice] if mode > 1 else where[row + choice * rows]
            result = pool[place].astype(float) if place >= 0 else np.zeros(pool.shape[1])
            if bias is not None:
                result = result + bias[chosen[row, choice]]
            out[row] += result * (1 if scales is None else scales[row, choice])
    return out + (0 if x1 is None else x1) + (0 if x2 is None else x2)


def mixtures() -> Iterator[Case]:
    finished = np.array([False, True, False, False, True])
    yield Case("MoeGatingTopKSoftmax", (LOGITS, None, 2), gated)
    yield Case("MoeGatingTopKSoftmax", (LOGITS, finished, 3), gated)
    for flag in (1, 2):
        yield Case("MoeInitRoutingV2", (TOKENS, CHOSEN, 0, 0, 3, 0, flag, False), routed)
    yield Case("MoeInitRoutingV2", (TOKENS, CHOSEN, 5, 0, 3, 0, 1, False), routed)
    yield Case("MoeInitRoutingV2", (TOKENS, CHOSEN[:, 0], 0, 0, 4, 0, 2, False), routed)
    yield Case("MoeInitRoutingV2", (TOKENS, CHOSEN, 0, 2, 3, 1, 0, True), routed)
    scales, bias = positive(4, 2), normal(3, 3)
    _, where, *_ = routed(TOKENS, CHOSEN, 0, 0, 3, 0, 1, False)
    room, slots, *_ = routed(TOKENS, CHOSEN, 0, 2, 3, 1, 1, False)
    columns = slots.reshape(4, 2).T.reshape(-1)
    pool = normal(8, 3)
    shared = normal(4, 3), normal(4, 3)
    yield Case("MoeFinalizeRoutingV2", (pool, where, *shared, bias, scales, CHOSEN, 2), combined)
    yield Case("MoeFinalizeRoutingV2", (pool, where, None, None, bias, scales, CHOSEN, 0), combined)
    yield Case("MoeFinalizeRoutingV2", (pool, where, *[None] * 5, 2), combined)
    yield Case("MoeFinalizeRoutingV2", (room, columns, *[None] * 3, scales, None, 1), combined)
    yield Case(
        "MoeFinalizeRoutingV2", (room, slots, shared[0], *[None] * 2, scales, None, 3), combined
    )


def rotated(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, mode: str) -> np.ndarray:
    """Turns each pair by its angle."""
    size = x.shape[-1]
    pairs = {
        "half": [(n, n + size // 2) for n in range(size // 2)],
        "interleave": [(n, n + 1) for n in range(0, size, 2)],
        "quarter": [(n, n + size // 4) for n in range(size) if n // (size // 4) % 2 == 0],
    }[mode]
    out = np.zeros(np.broadcast_shapes(x.shape, cos.shape))
    for a, b in pairs:
        out[..., a] = x[..., a] * cos[..., a] - x[..., b] * sin[..., a]
        out[..., b] = x[..., b] * cos[..., b] + x[..., a] * sin[..., b]
    return out


def stored(key: np.ndarray, cache: np.ndarray, slots: np.ndarray, *_: Any) -> np.ndarray:
    cache = cache.copy()
    for token, slot in zip(key, slots, strict=True):
        cache[slot // cache.shape[1], slot % cache.shape[1]] = token
    return cache


def normed_and_stored(
    kv: np.ndarray,
    gamma: np.ndarray,
    cos: np.ndarray,
    sin: np.ndarray,
    index: np.ndarray,
    k_cache: np.ndarray,
    v_cache: np.ndarray,
    k_scale: Any,
    v_scale: Any,
    _k: Any,
    _v: Any,
    epsilon: float,
    mode: str,
    _: bool,
) -> tuple[np.ndarray, ...]:
    first, rest = np.split(kv.astype(float), [len(gamma)], axis=-1)
    normed = first / np.sqrt((first**2).mean(-1, keepdims=True) + epsilon) * gamma
    halves = np.concatenate([rest[..., ::2], rest[..., 1::2]], -1)
    turned = rotated(halves, cos, sin, "half")
    caches = []
    for part, cache, scale in ((turned, k_cache, k_scale), (normed, v_cache, v_scale)):
        cache = cache.copy()
        entries = part if scale is None else np.clip(np.round(part * scale), -128, 127)
        for b, s in np.ndindex(kv.shape[0], kv.shape[2]):
            place = index[b, s] if mode == "Norm" else index[b * kv.shape[2] + s]
            if place >= 0 and mode == "Norm":
                cache[b, 0, place] = entries[b, 0, s]
            elif place >= 0:
                cache[place // cache.shape[1], place % cache.shape[1], 0] = entries[b, 0, s]
        caches.append(cache)
    return (turned, normed, *caches)


def caches() -> Iterator[Case]:
    slots = np.array([5, 0, 3], np.int32)
    yield Case(
        "ScatterPaCache",
        (normal(3, 2, 4), normal(4, 2, 2, 4), slots, None, None, None, "Norm"),
        stored,
    )
    points = np.array([[0, 2], [2, 1], [1, 1]], np.int32)

    def updated(x: np.ndarray, points: np.ndarray, updates: np.ndarray) -> np.ndarray:
        x = x.copy()
        for point, update in zip(points, updates, strict=True):
            x[tuple(point)] = update
        return x

    yield Case("ScatterNdUpdate", (normal(3, 4, 2), points, normal(3, 2)), updated)
    yield Case("ScatterNdUpdate", (normal(3, 4), points[:, :1], normal(3, 4)), updated)
    kv, gamma = normal(2, 1, 3, 10), normal(6)
    cos, sin = normal(2, 1, 3, 4), normal(2, 1, 3, 4)
    norm = (
        kv,
        gamma,
        cos,
        sin,
        np.array([[1, -1, 4], [0, 3, 2]]),
        normal(2, 1, 5, 4),
        normal(2, 1, 5, 6),
    )
    paged = kv, gamma, cos[:, :, :1], sin[:, :, :1], np.array([7, 0, -1, 2, 3, 1])
    none = (None,) * 4
    yield Case("KvRmsNormRopeCache", (*norm, *none, 1e-5, "Norm", True), normed_and_stored, 1e-5)
    for mode in ("PA", "PA_BNSD"):
        inputs = *paged, normal(4, 2, 1, 4), normal(4, 2, 1, 6), *none, 1e-5, mode, True
        yield Case("KvRmsNormRopeCache", inputs, normed_and_stored, 1e-5)
    integers_ = np.ones((4, 2, 1, 4), np.int8), np.ones((4, 2, 1, 6), np.int8)
    scales = positive(4) * 20, positive(6) * 20
    inputs = *paged, *integers_, *scales, None, None, 1e-5, "PA", True
    yield Case("KvRmsNormRopeCache", inputs, normed_and_stored, 1e-5)
    query, key = normal(2, 3, 2, 8), normal(2, 3, 1, 8)
    angles = normal(2, 3, 1, 8), normal(2, 3, 1, 8)
    for mode in ("half", "interleave", "quarter"):
        yield Case(
            "ApplyRotaryPosEmbV2",
            (query, key, *angles, 1, mode),
            lambda q, k, cos, sin, _, mode: tuple(rotated(x, cos, sin, mode) for x in (q, k)),
        )


def by_maximum(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x = x.astype(np.float32)
    scale = np.abs(x).max(-1) / np.float32(127)
    safe = np.where(scale == 0, 1, scale)[..., None]
    return np.round(x / safe).astype(np.int8), scale


def quantized() -> Iterator[Case]:
    x, smooth = normal(3, 5), positive(5)
    x[1] = 0
    yield Case("DynamicQuant", (x, None), lambda x, _: by_maximum(x))
    yield Case("DynamicQuant", (x, smooth), lambda x, smooth: by_maximum(x * smooth))

    def gelu(x: np.ndarray, approximate: str) -> np.ndarray:
        if approximate == "none":
            return x * scipy.stats.norm.cdf(x)
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    scale, offset = positive(1) * 10, normal(1)
    for approximate in ("none", "tanh"):
        yield Case(
            "GeluQuant",
            (x, scale, offset, approximate, "static", "rint", 2),
            lambda x, scale, offset, approximate, *_: np.round(
                gelu(x, approximate) * scale + offset
            ).astype(np.int8),
        )
    yield Case(
        "GeluQuant",
        (x, smooth, None, "tanh", "dynamic", "rint", 2),
        lambda x, smooth, *_: by_maximum(gelu(x, "tanh") * smooth),
    )
    left, right = integers(-5, 5, 2, 3, 4, dtype=np.int8), integers(-5, 5, 2, 4, 2, dtype=np.int8)
    scales, rows = positive(2), positive(3)
    yield Case(
        "QuantMatmulV4",
        (left, right.swapaxes(1, 2), scales, None, rows, None, False, True),
        lambda x, y, scale, _, rows, *__: (
            x.astype(int) @ y.astype(int).swapaxes(1, 2) * scale * rows[:, None]
        ),
    )
    a, b, weight, shift = normal(3, 4), normal(3, 4), normal(4), normal(4)

    def deep(
        x: np.ndarray, gx: np.ndarray, beta: Any, gamma: Any, alpha: float, epsilon: float
    ) -> Any:
        total = alpha * x.astype(float) + gx
        mean = total.mean(-1, keepdims=True)
        rstd = 1 / np.sqrt(total.var(-1, keepdims=True) + epsilon)
        return mean, rstd, (total - mean) * rstd * gamma + beta

    yield Case("DeepNorm", (a, b, shift, weight, 0.3, 1e-6), deep, 1e-5)


def queries(query: np.ndarray, lengths: Any, is_flat: bool) -> Iterator[tuple[int, range]]:
    """Each sequence, and where its queries are, all being one behind the other."""
    if is_flat:
        for sequence, end in enumerate(lengths):
            yield sequence, range(lengths[sequence - 1] if sequence else 0, end)
        return
    count, room = query.shape[:2]
    for sequence, length in enumerate([room] * count if lengths is None else lengths):
        yield sequence, range(sequence * room, sequence * room + length)


def stored_keys(key: np.ndarray, table: Any, lengths: Any, sequence: int) -> np.ndarray:
    if table is None:
        return key[sequence] if lengths is None else key[sequence, : lengths[sequence]]
    blocks = [key[block] for block in table[sequence] if block >= 0]
    return np.concatenate(blocks)[: lengths[sequence]]


def best_keys(
    query: np.ndarray,
    key: np.ndarray,
    weights: np.ndarray,
    lengths: Any,
    key_lengths: Any,
    table: Any,
    layout: Any,
    _: str,
    count: int,
    mode: int,
) -> np.ndarray:
    heads, size = query.shape[-2:]
    flat, factors = query.reshape(-1, heads, size), weights.reshape(-1, heads)
    out = np.full((len(flat), 1, count), -1, np.int32)
    for sequence, rows in queries(query, lengths, layout in (1, "TND")):
        keys = stored_keys(key, table, key_lengths, sequence)[:, 0]
        for place, row in enumerate(rows):
            seen = len(keys) if mode == 0 else len(keys) - len(rows) + place + 1
            scores = [factors[row] @ np.maximum(flat[row] @ one, 0) for one in keys[:seen]]
            best = sorted(range(seen), key=lambda n: -scores[n])[:count]
            out[row, 0, : len(best)] = best
    return out.reshape(*query.shape[:-2], 1, count)


def attended(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    indices: np.ndarray,
    table: Any,
    lengths: Any,
    key_lengths: Any,
    query_rope: Any,
    key_rope: Any,
    scale: float,
    group: int,
    layout: Any,
    _: str,
    mode: int,
) -> np.ndarray:
    if query_rope is not None:
        query, key = np.concatenate([query, query_rope], -1), np.concatenate([key, key_rope], -1)
    heads, size = query.shape[-2:]
    shared = key.shape[2]
    flat = query.reshape(-1, heads, size)
    chosen = indices.reshape(len(flat), shared, -1)
    out = np.zeros((len(flat), heads, value.shape[3]))
    for sequence, rows in queries(query, lengths, layout in (1, "TND")):
        keys, values = (stored_keys(x, table, key_lengths, sequence) for x in (key, value))
        for place, row in enumerate(rows):
            seen = len(keys) if mode == 0 else len(keys) - len(rows) + place + 1
            for head in range(heads):
                own = head // (heads // shared)
                wanted = chosen[row, own].tolist()
                wanted = wanted[: wanted.index(-1)] if -1 in wanted else wanted
                every = [n * group + inside for n in wanted for inside in range(group)]
                every = [n for n in every if n < seen]
                if every:
                    scores = np.array([flat[row, head] @ keys[n, own] for n in every]) * scale
                    shares = np.exp(scores - scores.max())
                    out[row, head] = shares / shares.sum() @ values[every, own]
    return out.reshape(*query.shape[:-1], value.shape[3])


def choosing() -> Iterator[Case]:
    query, weights, key = normal(2, 3, 2, 4), normal(2, 3, 2), normal(2, 5, 1, 4)
    none = None, None, None
    for mode in (0, 3):
        yield Case("LightningIndexer", (query, key, weights, *none, 0, 1, 3, mode), best_keys)
    lengths, own = np.array([2, 3]), np.array([4, 3])
    short = query, key, weights[..., None], lengths, own, None, "BSND", "BSND", 7, 3
    yield Case("LightningIndexer", short, best_keys)
    blocks, table = normal(6, 2, 1, 4), np.array([[4, 0, 5], [2, 1, -1]])
    flat, sums = query.reshape(6, 2, 4)[:5], np.array([2, 5])
    paged = flat, blocks, weights.reshape(6, 2)[:5], sums, own, table, 1, 0, 2, 3
    yield Case("LightningIndexer", paged, best_keys)


def attending() -> Iterator[Case]:
    query, key, value = normal(2, 3, 4, 6), normal(2, 8, 2, 6), normal(2, 8, 2, 5)
    ropes = normal(2, 3, 4, 2), normal(2, 8, 2, 2)
    indices = integers(0, 4, 2, 3, 2, 3, dtype=np.int32)
    indices[..., 2] = np.where(indices[..., 2] > 1, -1, indices[..., 2])
    none = (None,) * 3
    for mode in (0, 3):
        inputs = query, key, value, indices, *none, *ropes, 0.5, 2, 0, 0, mode
        yield Case("SparseFlashAttention", inputs, attended, 1e-5)
    lengths, own = np.array([2, 3]), np.array([5, 7])
    inputs = query, key, value, indices, None, lengths, own, None, None, 0.5, 2, "BSND", "BSND", 3
    yield Case("SparseFlashAttention", inputs, attended, 1e-5)
    blocks, table = (normal(6, 2, 2, 6), normal(6, 2, 2, 5)), np.array([[4, 0, 5], [2, 1, -1]])
    flat, chosen = query.reshape(6, 4, 6)[:5], indices.reshape(6, 2, 3)[:5]
    paged = flat, *blocks, chosen, table, np.array([2, 5]), np.array([5, 4]), None, None
    yield Case("SparseFlashAttention", (*paged, 0.5, 1, 1, "PA_BSND", 3), attended, 1e-5)


CASES = [*mixtures(), *caches(), *quantized(), *choosing(), *attending()]
