"""Indirect indexing: gathers, scatters, histograms."""
# ruff: noqa: F821

from __future__ import annotations

import numpy as np

from loop_kernels.case import normal, row, whole, wide


def gather_rows(table, index):
    c = output_tensor((index.shape[0], table.shape[1]), table.dtype)
    for i in range(index.shape[0]):
        for j in range(table.shape[1]):
            c[i, j] = table[index[i], j]
    return c


def gather_through_scalar(table, index):
    c = output_tensor((index.shape[0],), table.dtype)
    for i in range(index.shape[0]):
        k = index[i]
        c[i] = table[k] if k >= 0 else 0.0
    return c


def scatter_add(values, index, base):
    for i in range(index.shape[0]):
        for j in range(values.shape[1]):
            base[index[i], j] += values[i, j]
    return base


def permute(values, index):
    c = output_tensor(values.shape, values.dtype)
    for i in range(index.shape[0]):
        c[index[i]] = values[i]
    return c


def histogram(a, bins):
    h = output_tensor((bins,), "int32")
    for i in range(a.shape[0]):
        h[a[i]] += 1
    return h


def one_hot(index, depth):
    c = output_tensor((index.shape[0], depth), "float32")
    for i in range(index.shape[0]):
        for j in range(depth):
            c[i, j] = 1.0 if j == index[i] else 0.0
    return c


def sparse_matrix_vector(start, column, value, x):
    y = output_tensor((start.shape[0] - 1,), value.dtype)
    for i in range(y.shape[0]):
        for k in range(start[i], start[i + 1]):
            y[i] += value[k] * x[column[k]]
    return y


def _scatter_add(values, index, base):
    np.add.at(base, index, values)
    return base


def _permute(values, index):
    c = np.empty_like(values)
    c[index] = values
    return c


def _sparse(rng, n):
    counts = rng.integers(0, 4, n)
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    size = max(int(start[-1]), 1)
    return start, whole(rng, 0, n, size), normal(rng, size), normal(rng, n)


def _sparse_product(start, column, value, x):
    pieces = [slice(a, b) for a, b in zip(start[:-1], start[1:], strict=True)]
    return np.array([wide(value)[piece] @ wide(x)[column[piece]] for piece in pieces])


CASES = (
    row(
        gather_rows,
        lambda rng, n: (normal(rng, n, 5), whole(rng, 0, n, n + 3)),
        lambda table, index: table[index],
        "gather indirect bench",
        0,
    ),
    row(
        gather_through_scalar,
        lambda rng, n: (normal(rng, n), whole(rng, -n, n, n + 3, dtype=np.int64)),
        lambda table, index: np.where(index >= 0, table[index], 0),
        "gather indirect scalar condition",
        0,
    ),
    row(
        scatter_add,
        lambda rng, n: (normal(rng, n + 3, 5), whole(rng, 0, n, n + 3), normal(rng, n, 5)),
        _scatter_add,
        "scatter indirect inplace bench",
    ),
    row(
        permute,
        lambda rng, n: (normal(rng, n), rng.permutation(n).astype(np.int32)),
        _permute,
        "scatter indirect",
        0,
    ),
    row(
        histogram,
        lambda rng, n: (whole(rng, 0, 7, 4 * n),),
        lambda a, bins: np.bincount(a, minlength=bins),
        "scatter indirect integer attribute",
        0,
        bins=7,
    ),
    row(
        one_hot,
        lambda rng, n: (whole(rng, 0, 6, n),),
        lambda index, depth: np.eye(depth)[index],
        "condition indirect attribute",
        0,
        depth=6,
    ),
    row(sparse_matrix_vector, _sparse, _sparse_product, "gather indirect bounds"),
)
