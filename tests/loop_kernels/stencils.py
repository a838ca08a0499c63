"""Stencils, pooling, convolutions."""
# ruff: noqa: F821

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from loop_kernels.case import normal, row, wide


def stencil_3(a):
    n = a.shape[0]
    c = output_tensor((n - 2,), a.dtype)
    for i in range(n - 2):
        c[i] = (a[i] + a[i + 1] + a[i + 2]) / 3.0
    return c


def stencil_3_clamped(a):
    n = a.shape[0]
    c = output_tensor(a.shape, a.dtype)
    for i in range(n):
        c[i] = (a[max(i - 1, 0)] + a[i] + a[min(i + 1, n - 1)]) / 3.0
    return c


def stencil_5(a):
    n, m = a.shape[0], a.shape[1]
    c = output_tensor(a.shape, a.dtype)
    for i in range(n):
        for j in range(m):
            if i == 0 or j == 0 or i == n - 1 or j == m - 1:
                c[i, j] = a[i, j]
            else:
                c[i, j] = 0.2 * (a[i, j] + a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
    return c


def stencil_5_interior(a):
    c = output_tensor(a.shape, a.dtype)
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            c[i, j] = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1] - 4.0 * a[i, j]
    return c


def jacobi(a, steps):
    n = a.shape[0]
    c = output_tensor(a.shape, a.dtype)
    old = allocate(a.shape, a.dtype)
    for i in range(n):
        c[i] = a[i]
    for _ in range(steps):
        for i in range(n):
            old[i] = c[i]
        for i in range(1, n - 1):
            c[i] = 0.5 * (old[i - 1] + old[i + 1])
    return c


def gauss_seidel(a, steps):
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
    return a


def max_pool_2(a):
    c = output_tensor((a.shape[0] // 2, a.shape[1] // 2), a.dtype)
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = max(
                max(a[2 * i, 2 * j], a[2 * i, 2 * j + 1]),
                max(a[2 * i + 1, 2 * j], a[2 * i + 1, 2 * j + 1]),
            )
    return c


def max_pool_3(a):
    c = output_tensor((a.shape[0] - 2, a.shape[1] - 2), a.dtype)
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = a[i, j]
            for p in range(3):
                for q in range(3):
                    c[i, j] = max(c[i, j], a[i + p, j + q])
    return c


def running_mean(a, width):
    c = output_tensor((a.shape[0] - width + 1,), a.dtype)
    for i in range(c.shape[0]):
        total = 0.0
        for k in range(width):
            total += a[i + k]
        c[i] = total / width
    return c


def convolution_1d(a, w):
    n, k = a.shape[0], w.shape[0]
    c = output_tensor((n - k + 1,), a.dtype)
    for i in range(n - k + 1):
        for j in range(k):
            c[i] += a[i + j] * w[k - 1 - j]
    return c


def conv2d_3x3(x, w):
    height, width = x.shape[1] - 2, x.shape[2] - 2
    y = output_tensor((w.shape[0], height, width), x.dtype)
    for o in range(w.shape[0]):
        for i in range(height):
            for j in range(width):
                for c in range(x.shape[0]):
                    for p in range(3):
                        for q in range(3):
                            y[o, i, j] += x[c, i + p, j + q] * w[o, c, p, q]
    return y


def _five(a):
    c = a.copy()
    c[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
    return c


def _laplace(a):
    c = np.zeros_like(a)
    c[1:-1, 1:-1] = a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4 * a[1:-1, 1:-1]
    return c


def _jacobi(a, steps):
    for _ in range(steps):
        a[1:-1] = 0.5 * (a[:-2] + a[2:])
    return a


def _gauss_seidel(a, steps):
    a = wide(a)
    for _ in range(steps):
        for i in range(1, len(a) - 1):
            for j in range(1, len(a) - 1):
                a[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])
    return a


def _conv2d(x, w):
    windows = sliding_window_view(wide(x), (3, 3), axis=(1, 2))
    return np.einsum("cijpq,ocpq->oij", windows, wide(w))


def _vector(rng, n):
    return (normal(rng, n + 2),)


def _even(rng, n):
    return (normal(rng, 2 * (n // 2) + 2, 2 * (n // 2) + 4),)


def _matrix(rng, n):
    return (normal(rng, n + 2, n + 3),)


CASES = (
    row(stencil_3, _vector, lambda a: (a[:-2] + a[1:-1] + a[2:]) / 3, "stencil bench"),
    row(
        stencil_3_clamped,
        _vector,
        lambda a: np.convolve(np.pad(wide(a), 1, "edge"), np.ones(3) / 3, "valid"),
        "stencil",
    ),
    row(stencil_5, _matrix, _five, "stencil condition bench"),
    row(stencil_5_interior, _matrix, _laplace, "stencil"),
    row(jacobi, _vector, _jacobi, "stencil temporary attribute ordered", steps=4),
    row(
        gauss_seidel,
        lambda rng, n: (normal(rng, n + 2, n + 2),),
        _gauss_seidel,
        "ordered inplace attribute bench",
        steps=3,
    ),
    row(
        max_pool_2,
        _even,
        lambda a: a.reshape(a.shape[0] // 2, 2, a.shape[1] // 2, 2).max((1, 3)),
        "pooling bench",
        0,
    ),
    row(
        max_pool_3,
        _matrix,
        lambda a: sliding_window_view(a, (3, 3)).max((2, 3)),
        "pooling reduction",
        0,
    ),
    row(
        running_mean,
        _vector,
        lambda a, width: sliding_window_view(wide(a), width).mean(1),
        "stencil reduction scalar attribute",
        width=3,
    ),
    row(
        convolution_1d,
        lambda rng, n: (normal(rng, n + 4), normal(rng, 4)),
        lambda a, w: np.convolve(wide(a), wide(w), "valid"),
        "stencil contraction",
    ),
    row(
        conv2d_3x3,
        lambda rng, n: (normal(rng, 3, n + 2, n + 3), normal(rng, 4, 3, 3, 3)),
        _conv2d,
        "stencil contraction bench",
    ),
)
