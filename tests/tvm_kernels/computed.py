"""Kernels in TVM compute and topi, as an author of an akg operator writes them."""
# `tvm` and `topi` resolve inside a kernel without an import.
# ruff: noqa: F821

from __future__ import annotations

import math

import numpy as np
from loop_kernels.case import normal, row, whole, wide


def add_compute(x, y):
    return tvm.compute(x.shape, lambda i, j: x(i, j) + y(i, j), name="sum")


def bias_brackets(x, bias):
    return tvm.compute(x.shape, lambda i, j: x[i, j] + bias[j])


def scaled_by_attribute(x, factor, shift):
    return tvm.compute(x.shape, lambda *at: x(*at) * factor + shift, name="scaled")


def gelu_compute(x):
    import akg.tvm as T

    half, root = T.const(0.5, x.dtype), T.const(math.sqrt(0.5), x.dtype)
    return T.compute(x.shape, lambda i: x(i) * half * (T.erf(x(i) * root) + 1.0))


def matmul_compute(a, b):
    k = tvm.reduce_axis((0, a.shape[1]), "k")
    return tvm.compute(
        (a.shape[0], b.shape[1]), lambda i, j: tvm.sum(a(i, k) * b(k, j), axis=k), name="c"
    )


def conv2d_padded(x, w):
    from akg import topi as operators

    size = int(w.shape[2])
    border = operators.nn.pad(x, (0, 0, size // 2, size // 2), name="padded")
    c = tvm.reduce_axis((0, x.shape[1]), "c")
    p = tvm.reduce_axis((0, size), "p")
    q = tvm.reduce_axis((0, size), "q")
    return tvm.compute(
        (x.shape[0], w.shape[0], x.shape[2], x.shape[3]),
        lambda n, f, i, j: tvm.sum(border(n, c, i + p, j + q) * w(f, c, p, q), axis=[c, p, q]),
        name="conv",
    )


def max_pool_2x2(x):
    p = tvm.reduce_axis((0, 2), "p")
    q = tvm.reduce_axis((0, 2), "q")
    shape = (x.shape[0] // 2, x.shape[1] // 2)
    return tvm.compute(shape, lambda i, j: tvm.max(x(2 * i + p, 2 * j + q), axis=[p, q]))


def masked_row_sum(x):
    k = tvm.reduce_axis((0, x.shape[1]), "k")
    return tvm.compute((x.shape[0],), lambda i: tvm.sum(x(i, k), axis=k, where=x(i, k) > 0.0))


def argmax_reducer(x):
    def combine(old, new):
        larger = new[1] > old[1]
        return (
            tvm.expr.Select(larger, new[0], old[0]),
            tvm.expr.Select(larger, new[1], old[1]),
        )

    def identity(index, value):
        return tvm.const(-1, index), tvm.min_value(value)

    argmax = tvm.comm_reducer(combine, identity, name="argmax")
    k = tvm.reduce_axis((0, x.shape[1]), "k")
    return tvm.compute((x.shape[0],), lambda i: argmax((k.var, x(i, k)), axis=k), name="best")


def complex_product(x, y):
    # Both parts of the next product read both parts of the last one.
    def combine(old, new):
        return old[0] * new[0] - old[1] * new[1], old[0] * new[1] + old[1] * new[0]

    product = tvm.comm_reducer(
        combine, lambda a, b: (tvm.const(1.0, a), tvm.const(0.0, b)), name="product"
    )
    k = tvm.reduce_axis((0, x.shape[1]), "k")
    return tvm.compute((x.shape[0],), lambda i: product((x(i, k), y(i, k)), axis=k), name="z")


def sine_and_cosine(x):
    return tvm.compute(x.shape, lambda i: (tvm.sin(x(i)), tvm.cos(x(i))), name="both")


def lower_triangle(x):
    return tvm.compute(x.shape, lambda i, j: tvm.if_then_else(tvm.any(i > j, i == j), x(i, j), 0.0))


def shifted_with_guard(x):
    n = x.shape[0]
    return tvm.compute(
        (n,),
        lambda i: tvm.if_then_else(
            tvm.all(i >= 1, i < n - 1), x(i - 1) + x(i + 1) - 2.0 * x(i), tvm.const(0, x.dtype)
        ),
    )


def gathered_rows(x, rows):
    return tvm.compute((rows.shape[0], x.shape[1]), lambda i, j: x(rows(i), j))


def integer_arithmetic(x, y):
    return tvm.compute(
        x.shape,
        lambda i: (
            tvm.floordiv(x(i), y(i))
            + tvm.truncmod(x(i), y(i)) * 100
            + (x(i) % y(i)) * 10000
            + ((x(i) << 2) ^ y(i)) % 7
        ),
    )


def mixed_dtypes(x, n):
    return tvm.compute(x.shape, lambda i: x(i) * n(i) + i)


def softmax_topi(x):
    import akg.topi as topi

    largest = topi.max(x, axis=-1, keepdims=True)
    exps = topi.exp(topi.subtract(x, largest))
    return topi.divide(exps, topi.sum(exps, -1, True))


def layer_norm_topi(x, gamma, beta):
    size = float(x.shape[-1].value)
    mean = topi.sum(x, -1, True) / size
    centred = x - mean
    variance = topi.sum(centred * centred, -1, keepdims=True) / size
    return centred * topi.rsqrt(variance + 1e-5) * gamma + beta


def shuffled_topi(x):
    parts = topi.split(topi.transpose(x, (1, 0)), 2, axis=1)
    return topi.reshape(topi.concatenate((parts[1], parts[0]), axis=1), (x.shape[0] * x.shape[1],))


def _relu(x):
    # A helper beside the kernel: it sees the same `topi`.
    return topi.maximum(x, 0.0)


def two_layers(x, v, w):
    hidden = _relu(topi.matmul(x, v))
    return topi.matmul(hidden, w), hidden


def variance_of_chosen(x, chosen):
    picked = topi.take(x, chosen, axis=0)
    n = float(int(chosen.shape[0]))
    mean = topi.divide(topi.sum(picked, 0), n)
    return topi.divide(topi.sum((picked - mean) * (picked - mean), 0), n), mean


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _conv2d(x, w):
    size = w.shape[2]
    half = size // 2
    border = np.pad(wide(x), ((0, 0), (0, 0), (half, half), (half, half)))
    windows = np.lib.stride_tricks.sliding_window_view(border, (size, size), axis=(2, 3))
    return np.einsum("ncijpq,fcpq->nfij", windows, wide(w))


def _best(x):
    return x.argmax(1).astype(np.int32), x.max(1)


def _complex_product(x, y):
    z = (wide(x) + 1j * wide(y)).prod(1)
    return z.real, z.imag


def _second_difference(x):
    y = np.zeros_like(x)
    y[1:-1] = x[:-2] + x[2:] - 2 * x[1:-1]
    return y


def _integers(x, y):
    return x // y + np.fmod(x, y) * 100 + (x % y) * 10000 + ((x << 2) ^ y) % 7


def _softmax(x):
    exps = np.exp(wide(x) - x.max(-1, keepdims=True))
    return exps / exps.sum(-1, keepdims=True)


def _layer_norm(x, gamma, beta):
    x = wide(x)
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gamma + beta


def _shuffled(x):
    half = x.shape[0] // 2
    return np.concatenate([x.T[:, half:], x.T[:, :half]], 1).ravel()


def _two_layers(x, v, w):
    hidden = np.maximum(wide(x) @ wide(v), 0)
    return hidden @ wide(w), hidden


def _nonzero(rng, n):
    return whole(rng, -20, 20, n), whole(rng, 1, 9, n) * rng.choice(np.array([-1, 1], np.int32), n)


CASES = (
    row(add_compute, lambda r, n: (normal(r, n, n + 1), normal(r, n, n + 1)), np.add, "map", 0),
    row(bias_brackets, lambda r, n: (normal(r, n, n), normal(r, n)), np.add, "map broadcast", 0),
    row(
        scaled_by_attribute,
        lambda r, n: (normal(r, n, n),),
        lambda x, factor, shift: x * factor + shift,
        "map attribute",
        factor=2.0,
        shift=1,
    ),
    row(
        gelu_compute,
        lambda r, n: (normal(r, n),),
        lambda x: 0.5 * wide(x) * (_erf(x / math.sqrt(2)) + 1),
        "map",
    ),
    row(
        matmul_compute,
        lambda r, n: (normal(r, n, n + 2), normal(r, n + 2, n + 1)),
        lambda a, b: wide(a) @ wide(b),
        "contraction",
    ),
    row(
        conv2d_padded,
        lambda r, n: (normal(r, 2, 3, n, n), normal(r, 2, 3, 3, 3)),
        _conv2d,
        "contraction stencil",
    ),
    row(
        max_pool_2x2,
        lambda r, n: (normal(r, 2 * n, 2 * n),),
        lambda x: x.reshape(len(x) // 2, 2, -1, 2).max((1, 3)),
        "reduction stencil",
        0,
    ),
    row(
        masked_row_sum,
        lambda r, n: (normal(r, n, n),),
        lambda x: np.where(x > 0, wide(x), 0).sum(1),
        "reduction mask",
    ),
    row(argmax_reducer, lambda r, n: (normal(r, n, n),), _best, "reduction outputs", 0),
    row(
        complex_product,
        lambda r, n: (normal(r, n, n), normal(r, n, n)),
        _complex_product,
        "recurrence outputs",
    ),
    row(
        sine_and_cosine,
        lambda r, n: (normal(r, n),),
        lambda x: (np.sin(wide(x)), np.cos(wide(x))),
        "map outputs",
    ),
    row(lower_triangle, lambda r, n: (normal(r, n, n),), np.tril, "mask", 0),
    row(shifted_with_guard, lambda r, n: (normal(r, n),), _second_difference, "stencil mask"),
    row(
        gathered_rows,
        lambda r, n: (normal(r, n, n), whole(r, 0, n, n + 3)),
        lambda x, rows: x[rows],
        "indirect",
        0,
    ),
    row(integer_arithmetic, _nonzero, _integers, "map integer", 0),
    row(
        mixed_dtypes,
        lambda r, n: (normal(r, n, dtype=np.float32), whole(r, -5, 5, n)),
        lambda x, n: x * n + np.arange(len(x)),
        "map",
    ),
    row(softmax_topi, lambda r, n: (normal(r, n, n),), _softmax, "reduction"),
    row(
        layer_norm_topi,
        lambda r, n: (normal(r, n, n), normal(r, n), normal(r, n)),
        _layer_norm,
        "reduction broadcast",
        1e-4,
    ),
    row(shuffled_topi, lambda r, n: (normal(r, 2 * n, n + 1),), _shuffled, "move", 0),
    row(
        two_layers,
        lambda r, n: (normal(r, n, n), normal(r, n, n), normal(r, n, n)),
        _two_layers,
        "contraction outputs",
    ),
    row(
        variance_of_chosen,
        lambda r, n: (normal(r, n, 3), whole(r, 0, n, n)),
        lambda x, chosen: (wide(x[chosen]).var(0), wide(x[chosen]).mean(0)),
        "reduction indirect outputs",
    ),
)
