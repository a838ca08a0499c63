"""The suite of loop kernels in Numba, ``njit(parallel=True)``, as its users would write them."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

jit = njit(parallel=True, fastmath=False)


@jit
def add(a, b):
    c = np.empty_like(a)
    for i in prange(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] + b[i, j]
    return c


@jit
def gelu(a):
    b = np.empty_like(a)
    for i in prange(a.shape[0]):
        for j in range(a.shape[1]):
            x = a[i, j]
            inner = np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)
            b[i, j] = np.float32(0.5) * x * (np.float32(1.0) + np.tanh(inner))
    return b


@jit
def softmax(a):
    b = np.empty_like(a)
    for i in prange(a.shape[0]):
        m = a[i, 0]
        for j in range(a.shape[1]):
            m = max(m, a[i, j])
        s = np.float32(0.0)
        for j in range(a.shape[1]):
            b[i, j] = np.exp(a[i, j] - m)
            s += b[i, j]
        for j in range(a.shape[1]):
            b[i, j] /= s
    return b


@jit
def layer_norm(a, g, h):
    b = np.empty_like(a)
    for i in prange(a.shape[0]):
        mean = np.float32(0.0)
        for j in range(a.shape[1]):
            mean += a[i, j]
        mean /= np.float32(a.shape[1])
        var = np.float32(0.0)
        for j in range(a.shape[1]):
            var += (a[i, j] - mean) * (a[i, j] - mean)
        scale = np.float32(1.0) / np.sqrt(var / np.float32(a.shape[1]) + np.float32(1e-5))
        for j in range(a.shape[1]):
            b[i, j] = (a[i, j] - mean) * scale * g[j] + h[j]
    return b


@jit
def row_sum(a):
    b = np.empty(a.shape[0], a.dtype)
    for i in prange(a.shape[0]):
        s = np.float32(0.0)
        for j in range(a.shape[1]):
            s += a[i, j]
        b[i] = s
    return b


@jit
def column_sum(a):
    b = np.zeros(a.shape[1], a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[j] += a[i, j]
    return b


@jit
def full_sum(a):
    s = np.float32(0.0)
    for i in prange(a.shape[0]):
        for j in range(a.shape[1]):
            s += a[i, j]
    return np.full(1, s, a.dtype)


@jit
def max_pool(a):
    b = np.empty((a.shape[0] // 2, a.shape[1] // 2), a.dtype)
    for i in prange(b.shape[0]):
        for j in range(b.shape[1]):
            top = max(a[2 * i, 2 * j], a[2 * i, 2 * j + 1])
            b[i, j] = max(top, max(a[2 * i + 1, 2 * j], a[2 * i + 1, 2 * j + 1]))
    return b


@jit
def stencil_3(a):
    n = a.shape[0]
    b = np.empty_like(a)
    b[0] = a[0]
    b[n - 1] = a[n - 1]
    for i in prange(1, n - 1):
        sides = np.float32(0.25) * a[i - 1] + np.float32(0.25) * a[i + 1]
        b[i] = sides + np.float32(0.5) * a[i]
    return b


@jit
def stencil_5(a):
    b = a.copy()
    for i in prange(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            cross = a[i, j] + a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]
            b[i, j] = np.float32(0.2) * cross
    return b


@jit
def transpose(a):
    b = np.empty((a.shape[1], a.shape[0]), a.dtype)
    for i in prange(a.shape[1]):
        for j in range(a.shape[0]):
            b[i, j] = a[j, i]
    return b


@jit
def matmul(a, b):
    c = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for i in prange(a.shape[0]):
        for k in range(a.shape[1]):
            for j in range(b.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


@jit
def batched_matmul(a, b):
    c = np.zeros((a.shape[0], a.shape[1], b.shape[2]), a.dtype)
    for n in prange(a.shape[0]):
        for i in range(a.shape[1]):
            for k in range(a.shape[2]):
                for j in range(b.shape[2]):
                    c[n, i, j] += a[n, i, k] * b[n, k, j]
    return c


@jit
def conv2d(a, w):
    b = np.zeros((w.shape[0], a.shape[1] - 2, a.shape[2] - 2), a.dtype)
    for f in prange(w.shape[0]):
        for c in range(a.shape[0]):
            for i in range(b.shape[1]):
                for k in range(3):
                    for m in range(3):
                        for j in range(b.shape[2]):
                            b[f, i, j] += a[c, i + k, j + m] * w[f, c, k, m]
    return b


@jit
def outer(a, b):
    c = np.empty((a.shape[0], b.shape[0]), a.dtype)
    for i in prange(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c


@jit
def gather(a, idx):
    b = np.empty((idx.shape[0], a.shape[1]), a.dtype)
    for i in prange(idx.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] = a[idx[i], j]
    return b


@jit
def scatter_add(a, idx):
    b = np.zeros_like(a)
    for i in range(idx.shape[0]):
        for j in range(a.shape[1]):
            b[idx[i], j] += a[i, j]
    return b


@jit
def cumulative_sum(a):
    b = np.empty_like(a)
    for i in prange(a.shape[0]):
        s = np.float32(0.0)
        for j in range(a.shape[1]):
            s += a[i, j]
            b[i, j] = s
    return b


@jit
def lu(a):
    n = a.shape[0]
    b = a.copy()
    for k in range(n):
        for i in range(k + 1, n):
            factor = b[i, k] / b[k, k]
            b[i, k] = factor
            for j in range(k + 1, n):
                b[i, j] -= factor * b[k, j]
    return b


@jit
def cholesky(a):
    n = a.shape[0]
    b = np.zeros_like(a)
    for j in range(n):
        for i in range(j, n):
            s = a[i, j]
            for k in range(j):
                s -= b[i, k] * b[j, k]
            b[i, j] = np.sqrt(s) if i == j else s / b[j, j]
    return b


@jit
def triangular_solve(a, y):
    x = y.copy()
    for i in range(a.shape[0]):
        for k in range(i):
            for r in range(y.shape[1]):
                x[i, r] -= a[i, k] * x[k, r]
        for r in range(y.shape[1]):
            x[i, r] /= a[i, i]
    return x


@jit
def edit_distance(s, t):
    d = np.empty((s.shape[0] + 1, t.shape[0] + 1), s.dtype)
    for j in range(t.shape[0] + 1):
        d[0, j] = j
    for i in range(s.shape[0]):
        d[i + 1, 0] = i + 1
        for j in range(t.shape[0]):
            if s[i] == t[j]:
                d[i + 1, j + 1] = d[i, j]
            else:
                d[i + 1, j + 1] = 1 + min(d[i, j], min(d[i, j + 1], d[i + 1, j]))
    return d


@jit
def gauss_seidel(a):
    b = a.copy()
    for _ in range(4):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                cross = b[i - 1, j] + b[i + 1, j] + b[i, j - 1] + b[i, j + 1]
                b[i, j] = np.float32(0.25) * cross
    return b


@jit
def n_body(p, q):
    n = p.shape[0]
    f = np.empty_like(p)
    for i in prange(n):
        fx = np.float32(0.0)
        fy = np.float32(0.0)
        fz = np.float32(0.0)
        for j in range(n):
            x = p[j, 0] - p[i, 0]
            y = p[j, 1] - p[i, 1]
            z = p[j, 2] - p[i, 2]
            r = x * x + y * y + z * z + np.float32(0.01)
            w = q[j] / (r * np.sqrt(r))
            fx += w * x
            fy += w * y
            fz += w * z
        f[i, 0] = fx
        f[i, 1] = fy
        f[i, 2] = fz
    return f
