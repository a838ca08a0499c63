"""Reductions, and normalisations made of them."""
# ruff: noqa: F821

from __future__ import annotations

import numpy as np

from loop_kernels.case import normal, row, whole, wide


def row_sum(a):
    s = output_tensor((a.shape[0],), a.dtype)
    for i in range(a.shape[0]):
        s[i] = 0.0
        for j in reduce(a.shape[1]):
            s[i] = s[i] + a[i, j]
    return s


def column_sum(a):
    s = output_tensor((a.shape[1],), a.dtype)
    for j in range(a.shape[1]):
        total = 0.0
        for i in range(a.shape[0]):
            total += a[i, j]
        s[j] = total
    return s


def full_sum(a):
    s = output_tensor((1,), a.dtype)
    s[0] = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s[0] += a[i, j]
    return s


def rank_zero_sum(a):
    s = output_tensor((), a.dtype)
    for i in range(a.shape[0]):
        s[()] += a[i]
    return s


def row_extremes(a):
    low = output_tensor((a.shape[0],), a.dtype)
    high = output_tensor((a.shape[0],), a.dtype)
    for i in range(a.shape[0]):
        low[i] = a[i, 0]
        high[i] = a[i, 0]
        for j in range(1, a.shape[1]):
            low[i] = min(low[i], a[i, j])
            high[i] = max(high[i], a[i, j])
    return low, high


def conditional_max(a):
    m = output_tensor((a.shape[0],), a.dtype)
    for i in range(a.shape[0]):
        best = a[i, 0]
        for j in range(1, a.shape[1]):
            if a[i, j] > best:
                best = a[i, j]
        m[i] = best
    return m


def argmax(a):
    where = output_tensor((a.shape[0],), "int32")
    for i in range(a.shape[0]):
        best = a[i, 0]
        index = 0
        for j in range(1, a.shape[1]):
            if a[i, j] > best:
                best = a[i, j]
                index = j
        where[i] = index
    return where


def argmin(a):
    where = output_tensor((a.shape[0],), "int32")
    for i in range(a.shape[0]):
        where[i] = 0
        for j in range(1, a.shape[1]):
            if a[i, j] < a[i, where[i]]:
                where[i] = j
    return where


def row_product(a):
    p = output_tensor((a.shape[0],), a.dtype)
    for i in range(a.shape[0]):
        p[i] = 1.0
        for j in range(a.shape[1]):
            p[i] *= a[i, j]
    return p


def count_positive(a):
    count = output_tensor((a.shape[0],), "int32")
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > 0.0:
                count[i] += 1
    return count


def lower_row_sum(a):
    s = output_tensor((a.shape[0],), a.dtype)
    for i in range(a.shape[0]):
        for j in range(i + 1):
            s[i] += a[i, j]
    return s


def softmax_row(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        largest = x[i, 0]
        for j in range(1, x.shape[1]):
            largest = max(largest, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - largest)
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] / total
    return y


def layer_norm(x, gamma, beta):
    y = output_tensor(x.shape, x.dtype)
    mean = allocate((x.shape[0],), x.dtype)
    variance = allocate((x.shape[0],), x.dtype)
    n = float32(x.shape[1])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            mean[i] += x[i, j] / n
        for j in range(x.shape[1]):
            d = x[i, j] - mean[i]
            variance[i] += d * d / n
        for j in range(x.shape[1]):
            y[i, j] = (x[i, j] - mean[i]) * rsqrt(variance[i] + 1e-5) * gamma[j] + beta[j]
    return y


def _softmax(x):
    e = np.exp(wide(x) - wide(x).max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _layer_norm(x, gamma, beta):
    x = wide(x)
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt(x.var(1, keepdims=True) + 1e-5) * gamma + beta


def _matrix(rng, n):
    return (normal(rng, n, n + 3),)


def _ties(rng, n):
    """Few values, so that equal ones are in every row and the first must win."""
    return (whole(rng, 0, 4, n, n + 3, dtype=np.float32),)


CASES = (
    row(row_sum, _matrix, lambda a: wide(a).sum(1), "reduction bench"),
    row(
        row_sum,
        lambda rng, n: (normal(rng, n, n + 3, dtype=np.float64),),
        lambda a: a.sum(1),
        "reduction float64",
        1e-13,
    ),
    row(column_sum, _matrix, lambda a: wide(a).sum(0), "reduction scalar bench"),
    row(full_sum, _matrix, lambda a: wide(a).sum().reshape(1), "reduction bench"),
    row(
        rank_zero_sum,
        lambda rng, n: (normal(rng, n),),
        lambda a: np.asarray(wide(a).sum()),
        "reduction rank0",
    ),
    row(row_extremes, _matrix, lambda a: (a.min(1), a.max(1)), "reduction outputs", 0),
    row(conditional_max, _matrix, lambda a: a.max(1), "reduction condition scalar", 0),
    row(argmax, _ties, lambda a: a.argmax(1), "reduction condition integer", 0),
    row(argmin, _ties, lambda a: a.argmin(1), "reduction condition integer indirect", 0),
    row(row_product, _matrix, lambda a: wide(a).prod(1), "reduction"),
    row(count_positive, _matrix, lambda a: (a > 0).sum(1), "reduction condition integer", 0),
    row(
        lower_row_sum,
        lambda rng, n: (normal(rng, n, n),),
        lambda a: np.tril(wide(a)).sum(1),
        "reduction triangular",
    ),
    row(softmax_row, _matrix, _softmax, "reduction scalar bench"),
    row(
        softmax_row,
        lambda rng, n: (normal(rng, n, n + 3, dtype=np.float16),),
        _softmax,
        "reduction scalar float16",
        4e-3,
    ),
    row(
        layer_norm,
        lambda rng, n: (normal(rng, n, n + 3), normal(rng, n + 3), normal(rng, n + 3)),
        _layer_norm,
        "reduction temporary bench",
    ),
)
