"""Products of matrices and pairwise interactions."""
# ruff: noqa: F821

from __future__ import annotations

import numpy as np

from loop_kernels.case import normal, row, wide


def matmul(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0.0
            for k in range(a.shape[1]):
                c[i, j] = c[i, j] + a[i, k] * b[k, j]
    return c


def matmul_initialised_apart(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def matmul_scalar(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            total = 0.0
            for k in range(a.shape[1]):
                product = a[i, k] * b[j, k]
                total += product
            c[i, j] = total
    return c


def batched_matmul(a, b):
    c = output_tensor((a.shape[0], a.shape[1], b.shape[2]), a.dtype)
    for n in range(a.shape[0]):
        for i in range(a.shape[1]):
            for j in range(b.shape[2]):
                for k in range(a.shape[2]):
                    c[n, i, j] += a[n, i, k] * b[n, k, j]
    return c


def matrix_vector(a, x):
    y = output_tensor((a.shape[0],), a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[i] += a[i, j] * x[j]
    return y


def n_body(position, mass):
    n = position.shape[0]
    force = output_tensor(position.shape, position.dtype)
    for i in range(n):
        for j in range(n):
            if i != j:
                dx = position[j, 0] - position[i, 0]
                dy = position[j, 1] - position[i, 1]
                dz = position[j, 2] - position[i, 2]
                squared = dx * dx + dy * dy + dz * dz + 0.01
                strength = mass[j] * rsqrt(squared) / squared
                force[i, 0] += strength * dx
                force[i, 1] += strength * dy
                force[i, 2] += strength * dz
    return force


def pairwise_distance(a, b):
    d = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            total = 0.0
            for k in range(a.shape[1]):
                total += (a[i, k] - b[j, k]) * (a[i, k] - b[j, k])
            d[i, j] = sqrt(total)
    return d


def _n_body(position, mass):
    p, m = wide(position), wide(mass)
    d = p[None] - p[:, None]
    squared = (d**2).sum(-1) + 0.01
    return ((m / squared**1.5)[..., None] * d).sum(1)


def _matrices(dtype):
    return lambda rng, n: (
        normal(rng, n, n + 1, dtype=dtype),
        normal(rng, n + 1, n + 2, dtype=dtype),
    )


def _matmul(a, b):
    return wide(a) @ wide(b)


CASES = (
    row(matmul, _matrices(np.float32), _matmul, "contraction bench"),
    row(matmul, _matrices(np.float16), _matmul, "contraction float16", 2e-2),
    row(matmul_initialised_apart, _matrices(np.float32), _matmul, "contraction"),
    row(
        matmul_scalar,
        lambda rng, n: (normal(rng, n, n + 1), normal(rng, n + 2, n + 1)),
        lambda a, b: wide(a) @ wide(b).T,
        "contraction scalar",
    ),
    row(
        batched_matmul,
        lambda rng, n: (normal(rng, 3, n, n + 1), normal(rng, 3, n + 1, n)),
        _matmul,
        "contraction bench",
    ),
    row(
        matrix_vector,
        lambda rng, n: (normal(rng, n, n + 1), normal(rng, n + 1)),
        _matmul,
        "contraction",
    ),
    row(
        n_body,
        lambda rng, n: (normal(rng, n, 3), np.abs(normal(rng, n))),
        _n_body,
        "reduction condition scalar bench",
        1e-4,
    ),
    row(
        pairwise_distance,
        lambda rng, n: (normal(rng, n, 3), normal(rng, n + 1, 3)),
        lambda a, b: np.linalg.norm(wide(a)[:, None] - wide(b)[None], axis=-1),
        "reduction scalar",
    ),
)
