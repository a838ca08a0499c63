"""Elementwise kernels, and those that move elements."""
# The names of the Hybrid DSL are its own, not Python's.
# ruff: noqa: F821

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from loop_kernels.case import normal, row, whole, wide

_erf = np.vectorize(math.erf, otypes=[np.float64])


def add(a, b):
    c = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] + b[i, j]
    return c


def scale(a, factor):
    c = output_tensor(a.shape, a.dtype)
    for t in grid(a.shape):
        c[t] = a[t] * factor
    return c


def axpy_inplace(a, b):
    for i in range(a.shape[0]):
        a[i] = a[i] + 0.5 * b[i]
    return a


def gelu(x):
    y = output_tensor(x.shape, x.dtype)
    for t in grid(x.shape):
        inner = 0.7978845608 * (x[t] + 0.044715 * x[t] * x[t] * x[t])
        y[t] = 0.5 * x[t] * (1.0 + tanh(inner))
    return y


def gelu_erf(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in vectorize(x.shape[1]):
            y[i, j] = 0.5 * x[i, j] * (1.0 + erf(x[i, j] / 1.4142135623730951))
    return y


def sin_cos(x):
    s = output_tensor(x.shape, x.dtype)
    c = output_tensor(x.shape, x.dtype)
    for i in range(len(x)):
        s[i] = sin(x[i])
        c[i] = cos(x[i])
    return s, c


def integer_arithmetic(a, b):
    quotient = output_tensor(a.shape, a.dtype)
    mixed = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        quotient[i] = a[i] // b[i] + a[i] % b[i]
        mixed[i] = ((a[i] << 2) ^ (b[i] >> 1)) & 255 | (a[i] & b[i])
    return quotient, mixed


def horner(x, coefficients):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        total = coefficients[0]
        for k in range(1, coefficients.shape[0]):
            total = total * x[i] + coefficients[k]
        y[i] = total
    return y


def mandelbrot(x, y, steps):
    count = output_tensor(x.shape, "int32")
    for i in parallel(x.shape[0]):
        real = 0.0
        imaginary = 0.0
        for _ in range(steps):
            if real * real + imaginary * imaginary <= 4.0:
                real, imaginary = (
                    real * real - imaginary * imaginary + x[i],
                    2.0 * real * imaginary + y[i],
                )
                count[i] += 1
    return count


def triangular_mask(a):
    c = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] if j <= i else 0.0
    return c


def transpose(a):
    c = output_tensor((a.shape[1], a.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[j, i] = a[i, j]
    return c


def reverse(a):
    n = a.shape[0]
    c = output_tensor(a.shape, a.dtype)
    for i in range(n - 1, -1, -1):
        c[n - 1 - i] = a[i]
    return c


def pad(a, before, after):
    n = a.shape[0]
    c = output_tensor((n + before + after,), a.dtype)
    for i in range(c.shape[0]):
        c[i] = a[i - before] if i >= before and i < n + before else -1.0
    return c


def upsample(a):
    c = output_tensor((2 * a.shape[0], 2 * a.shape[1]), a.dtype)
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = a[i // 2, j // 2]
    return c


def interleave(a, b):
    c = output_tensor((2 * a.shape[0],), a.dtype)
    for i in range(0, c.shape[0], 2):
        c[i] = a[i // 2]
        c[i + 1] = b[i // 2]
    return c


def outer_product(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c


def odd_even_sort(a):
    n = a.shape[0]
    for step in range(n):
        for i in range(step % 2, n - 1, 2):
            low = min(a[i], a[i + 1])
            high = max(a[i], a[i + 1])
            a[i] = low
            a[i + 1] = high
    return a


def _mandelbrot(x, y, steps):
    # float32 as in the kernel: near the boundary one rounding decides about a count.
    real, imaginary = np.zeros_like(x), np.zeros_like(x)
    count = np.zeros(x.shape, np.int32)
    for _ in range(steps):
        inside = real * real + imaginary * imaginary <= np.float32(4)
        new_real = real * real - imaginary * imaginary + x
        new_imaginary = np.float32(2) * real * imaginary + y
        real, imaginary = (
            np.where(inside, new_real, real),
            np.where(inside, new_imaginary, imaginary),
        )
        count += inside
    return count


def _gelu(x):
    x = wide(x)
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def _squares(dtype):
    return lambda rng, n: (normal(rng, n, n + 3, dtype=dtype),)


def _two(dtype):
    return lambda rng, n: (normal(rng, n, n + 3, dtype=dtype), normal(rng, n, n + 3, dtype=dtype))


CASES = (
    row(add, _two(np.float32), np.add, "elementwise bench"),
    row(add, _two(np.float16), np.add, "elementwise float16", 1e-3),
    row(
        add, _two(ml_dtypes.bfloat16), lambda a, b: wide(a) + wide(b), "elementwise bfloat16", 8e-3
    ),
    row(scale, _squares(np.float32), lambda a, factor: a * factor, "attribute", factor=2.5),
    row(
        axpy_inplace,
        lambda rng, n: (normal(rng, n), normal(rng, n)),
        lambda a, b: a + np.float32(0.5) * b,
        "elementwise inplace",
    ),
    row(gelu, _squares(np.float32), _gelu, "elementwise bench"),
    row(gelu, _squares(np.float16), _gelu, "elementwise float16", 4e-3),
    row(gelu, _squares(ml_dtypes.bfloat16), _gelu, "elementwise bfloat16", 4e-2),
    row(
        gelu_erf,
        _squares(np.float32),
        lambda x: 0.5 * wide(x) * (1 + _erf(wide(x) / 2**0.5)),
        "elementwise",
    ),
    row(
        sin_cos,
        lambda rng, n: (normal(rng, n),),
        lambda x: (np.sin(wide(x)), np.cos(wide(x))),
        "elementwise outputs",
    ),
    row(
        integer_arithmetic,
        lambda rng, n: (
            whole(rng, -99, 99, n),
            whole(rng, 1, 9, n) * rng.choice([-1, 1], n).astype(np.int32),
        ),
        lambda a, b: (a // b + a % b, ((a << 2) ^ (b >> 1)) & 255 | (a & b)),
        "elementwise integer outputs",
        0,
    ),
    row(
        horner,
        lambda rng, n: (normal(rng, n), normal(rng, 6)),
        lambda x, c: np.polyval(wide(c), wide(x)),
        "scalar",
    ),
    row(
        mandelbrot,
        lambda rng, n: (2 * normal(rng, n), normal(rng, n)),
        _mandelbrot,
        "scalar condition attribute integer",
        0,
        steps=12,
    ),
    row(triangular_mask, _squares(np.float32), np.tril, "condition affine", 0),
    row(transpose, _squares(np.float32), np.transpose, "move bench", 0),
    row(reverse, lambda rng, n: (normal(rng, n),), lambda a: a[::-1], "move descending", 0),
    row(
        pad,
        lambda rng, n: (normal(rng, n),),
        lambda a, before, after: np.pad(a, (before, after), constant_values=-1),
        "move condition attribute",
        0,
        before=2,
        after=3,
    ),
    row(upsample, _squares(np.float32), lambda a: a.repeat(2, 0).repeat(2, 1), "move", 0),
    row(
        interleave,
        lambda rng, n: (normal(rng, n), normal(rng, n)),
        lambda a, b: np.stack([a, b], 1).reshape(-1),
        "move stepped",
        0,
    ),
    row(
        outer_product,
        lambda rng, n: (normal(rng, n), normal(rng, n + 3)),
        np.outer,
        "broadcast bench",
    ),
    row(odd_even_sort, lambda rng, n: (normal(rng, n),), np.sort, "ordered inplace stepped", 0),
)
