"""Dynamic programming over tables."""
# ruff: noqa: F821

from __future__ import annotations

import numpy as np

from loop_kernels.case import normal, row, whole


def edit_distance(a, b):
    n, m = a.shape[0], b.shape[0]
    d = output_tensor((n + 1, m + 1), "int32")
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(min(d[i - 1, j] + 1, d[i, j - 1] + 1), d[i - 1, j - 1] + cost)
    return d


def longest_common_subsequence(a, b):
    n, m = a.shape[0], b.shape[0]
    length = allocate((n + 1, m + 1), "int32")
    result = output_tensor((1,), "int32")
    for i in range(n):
        for j in range(m):
            if a[i] == b[j]:
                length[i + 1, j + 1] = length[i, j] + 1
            else:
                length[i + 1, j + 1] = max(length[i, j + 1], length[i + 1, j])
    result[0] = length[n, m]
    return result


def knapsack(weight, worth, capacity):
    best = output_tensor((capacity + 1,), "int32")
    for i in range(weight.shape[0]):
        for c in range(capacity, -1, -1):
            if c >= weight[i]:
                best[c] = max(best[c], best[c - weight[i]] + worth[i])
    return best


def floyd_warshall(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


def viterbi(score, transition):
    steps, states = score.shape[0], score.shape[1]
    best = output_tensor(score.shape, score.dtype)
    for s in range(states):
        best[0, s] = score[0, s]
    for t in range(1, steps):
        for s in range(states):
            top = best[t - 1, 0] + transition[0, s]
            for p in range(1, states):
                top = max(top, best[t - 1, p] + transition[p, s])
            best[t, s] = top + score[t, s]
    return best


def _edit_distance(a, b):
    d = np.add.outer(np.arange(len(a) + 1), np.arange(len(b) + 1))
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            change = d[i - 1, j - 1] + (a[i - 1] != b[j - 1])
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, change)
    return d


def _common(a, b):
    length = np.zeros((len(a) + 1, len(b) + 1), np.int32)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            longer = max(length[i, j + 1], length[i + 1, j])
            length[i + 1, j + 1] = length[i, j] + 1 if x == y else longer
    return length[-1:, -1]


def _knapsack(weight, worth, capacity):
    best = np.zeros(capacity + 1, np.int32)
    for w, value in zip(weight, worth, strict=True):
        taken = best[: capacity + 1 - w] + value
        best[w:] = np.maximum(best[w:], taken)
    return best


def _floyd_warshall(d):
    for k in range(len(d)):
        d = np.minimum(d, d[:, k : k + 1] + d[k : k + 1])
    return d


def _viterbi(score, transition):
    best = score.astype(np.float64)
    for t in range(1, len(score)):
        best[t] += (best[t - 1][:, None] + transition).max(0)
    return best


def _words(rng, n):
    return whole(rng, 0, 4, n), whole(rng, 0, 4, n + 2)


CASES = (
    row(edit_distance, _words, _edit_distance, "ordered condition integer bench", 0),
    row(longest_common_subsequence, _words, _common, "ordered condition integer temporary", 0),
    row(
        knapsack,
        lambda rng, n: (whole(rng, 1, 9, n), whole(rng, 1, 50, n)),
        _knapsack,
        "ordered descending condition integer indirect attribute",
        0,
        capacity=20,
    ),
    row(
        floyd_warshall,
        lambda rng, n: (np.abs(normal(rng, n, n)),),
        _floyd_warshall,
        "ordered inplace",
        1e-6,
    ),
    row(
        viterbi,
        lambda rng, n: (normal(rng, n, 4), normal(rng, 4, 4)),
        _viterbi,
        "ordered reduction scalar",
    ),
)
