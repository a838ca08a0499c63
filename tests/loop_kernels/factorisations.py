"""Factorisations and solves: loops whose order is their meaning."""
# ruff: noqa: F821

from __future__ import annotations

import numpy as np

from loop_kernels.case import normal, row, wide


def lu(a):
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] = a[i, k] / a[k, k]
            for j in range(k + 1, n):
                a[i, j] = a[i, j] - a[i, k] * a[k, j]
    return a


def cholesky(a):
    n = a.shape[0]
    c = output_tensor(a.shape, a.dtype)
    for j in range(n):
        diagonal = a[j, j]
        for k in range(j):
            diagonal -= c[j, k] * c[j, k]
        c[j, j] = sqrt(diagonal)
        for i in range(j + 1, n):
            total = a[i, j]
            for k in range(j):
                total -= c[i, k] * c[j, k]
            c[i, j] = total / c[j, j]
    return c


def forward_substitution(a, b):
    x = output_tensor(b.shape, b.dtype)
    for i in range(b.shape[0]):
        x[i] = b[i]
        for j in range(i):
            x[i] -= a[i, j] * x[j]
        x[i] = x[i] / a[i, i]
    return x


def backward_substitution(a, b):
    n = b.shape[0]
    x = output_tensor(b.shape, b.dtype)
    for i in range(n - 1, -1, -1):
        total = b[i]
        for j in range(i + 1, n):
            total -= a[i, j] * x[j]
        x[i] = total / a[i, i]
    return x


def tridiagonal_solve(lower, diagonal, upper, b):
    n = b.shape[0]
    ratio = allocate(b.shape, b.dtype)
    x = output_tensor(b.shape, b.dtype)
    ratio[0] = upper[0] / diagonal[0]
    x[0] = b[0] / diagonal[0]
    for i in range(1, n):
        pivot = diagonal[i] - lower[i] * ratio[i - 1]
        ratio[i] = upper[i] / pivot
        x[i] = (b[i] - lower[i] * x[i - 1]) / pivot
    for i in range(n - 2, -1, -1):
        x[i] = x[i] - ratio[i] * x[i + 1]
    return x


def _dominant(rng, n):
    return normal(rng, n, n) + 2 * n * np.eye(n, dtype=np.float32)


def _positive(rng, n):
    a = normal(rng, n, n)
    return (a @ a.T + n * np.eye(n, dtype=np.float32),)


def _lu(a):
    a = wide(a)
    for k in range(len(a)):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


def _tridiagonal(lower, diagonal, upper, b):
    matrix = np.diag(wide(diagonal)) + np.diag(wide(lower)[1:], -1) + np.diag(wide(upper)[:-1], 1)
    return np.linalg.solve(matrix, wide(b))


CASES = (
    row(lu, lambda rng, n: (_dominant(rng, n),), _lu, "ordered triangular inplace bench"),
    row(cholesky, _positive, lambda a: np.linalg.cholesky(wide(a)), "ordered triangular bench"),
    row(
        forward_substitution,
        lambda rng, n: (_dominant(rng, n), normal(rng, n)),
        lambda a, b: np.linalg.solve(np.tril(wide(a)), wide(b)),
        "ordered triangular bench",
    ),
    row(
        backward_substitution,
        lambda rng, n: (_dominant(rng, n), normal(rng, n)),
        lambda a, b: np.linalg.solve(np.triu(wide(a)), wide(b)),
        "ordered triangular descending",
    ),
    row(
        tridiagonal_solve,
        lambda rng, n: (normal(rng, n), 4 + np.abs(normal(rng, n)), normal(rng, n), normal(rng, n)),
        _tridiagonal,
        "ordered temporary descending",
        1e-4,
    ),
)
