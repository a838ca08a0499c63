"""Scans and recurrences along one dimension."""
# ruff: noqa: F821

from __future__ import annotations

import numpy as np

from loop_kernels.case import normal, row, wide


def cumulative_sum(a):
    c = output_tensor(a.shape, a.dtype)
    c[0] = a[0]
    for i in range(1, a.shape[0]):
        c[i] = c[i - 1] + a[i]
    return c


def cumulative_sum_rows(a):
    c = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        total = 0.0
        for j in range(a.shape[1]):
            total += a[i, j]
            c[i, j] = total
    return c


def cumulative_product(a):
    c = output_tensor(a.shape, a.dtype)
    product = 1.0
    for i in range(a.shape[0]):
        product = product * a[i]
        c[i] = product
    return c


def prefix_max(a):
    c = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        c[i] = a[i]
        if i > 0:
            c[i] = max(c[i - 1], a[i])
    return c


def suffix_sum(a):
    n = a.shape[0]
    c = output_tensor(a.shape, a.dtype)
    for i in range(n - 1, -1, -1):
        c[i] = a[i] if i == n - 1 else a[i] + c[i + 1]
    return c


def linear_recurrence(a, b):
    c = output_tensor(a.shape, a.dtype)
    c[0] = b[0]
    for i in range(1, a.shape[0]):
        c[i] = a[i] * c[i - 1] + b[i]
    return c


def exponential_average(a, decay):
    c = output_tensor(a.shape, a.dtype)
    state = 0.0
    for i in range(a.shape[0]):
        state = decay * state + (1.0 - decay) * a[i]
        c[i] = state
    return c


def second_order_recurrence(a):
    c = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        if i < 2:
            c[i] = a[i]
        else:
            c[i] = 0.6 * c[i - 1] - 0.3 * c[i - 2] + a[i]
    return c


def _linear(a, b):
    c = wide(b)
    for i in range(1, len(a)):
        c[i] += wide(a)[i] * c[i - 1]
    return c


def _average(a, decay):
    c, state = wide(a), 0.0
    for i, value in enumerate(wide(a)):
        c[i] = state = decay * state + (1 - decay) * value
    return c


def _second_order(a):
    c = wide(a)
    for i in range(2, len(a)):
        c[i] += 0.6 * c[i - 1] - 0.3 * c[i - 2]
    return c


def _vector(rng, n):
    return (normal(rng, n),)


CASES = (
    row(cumulative_sum, _vector, lambda a: wide(a).cumsum(), "scan bench"),
    row(
        cumulative_sum_rows,
        lambda rng, n: (normal(rng, n, n + 3),),
        lambda a: wide(a).cumsum(1),
        "scan scalar",
    ),
    row(
        cumulative_product,
        lambda rng, n: (1 + normal(rng, n) / 8,),
        lambda a: wide(a).cumprod(),
        "scan scalar",
    ),
    row(prefix_max, _vector, np.maximum.accumulate, "scan condition", 0),
    row(suffix_sum, _vector, lambda a: wide(a)[::-1].cumsum()[::-1], "scan descending condition"),
    row(
        linear_recurrence,
        lambda rng, n: (normal(rng, n) / 2, normal(rng, n)),
        _linear,
        "scan recurrence",
    ),
    row(exponential_average, _vector, _average, "scan recurrence scalar attribute", decay=0.9),
    row(second_order_recurrence, _vector, _second_order, "recurrence ordered condition"),
)
