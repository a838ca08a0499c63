"""Kernels by the IR builder, ``f(inputs, attrs)``, as an author of an akg operator writes them."""
# `tvm` resolves inside a kernel without an import; a loop is a with-block.
# ruff: noqa: F821, SIM117

from __future__ import annotations

import itertools

import numpy as np
from loop_kernels.case import normal, row, whole, wide


def add_flat(inputs, attrs):
    a, b = inputs

    def body(ins, outs):
        ib = tvm.ir_builder.create()
        x, y, z = (ib.buffer_ptr(buf) for buf in (*ins, *outs))
        with ib.for_range(0, a.shape[0] * a.shape[1], name="k") as k:
            z[k] = x[k] + y[k]
        return ib.get()

    return tvm.extern(a.shape, [a, b], body, name="added", dtype=a.dtype)


def transpose_built(inputs, attrs):
    (a,) = inputs
    rows, columns = a.shape

    def body(ins, outs):
        ib = tvm.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, rows, name="i", for_type="parallel") as i:
            with ib.for_range(0, columns, name="j", for_type="vectorize") as j:
                target[j * rows + i] = source[i * columns + j]
        return ib.get()

    return tvm.extern((columns, rows), [a], body, name="turned", dtype=a.dtype)


def leaky_relu_built(inputs, attrs):
    from akg.tvm import ir_builder

    (a,) = inputs
    slope = attrs["slope"]

    def body(ins, outs):
        ib = ir_builder.create()
        with ib.for_range_n(a.shape, "i") as at:
            value = ib.load(ins[0], at)
            with ib.if_scope(ib.likely(value > 0.0)):
                ib.store(outs[0], at, value)
            with ib.else_scope():
                ib.store(outs[0], at, value * slope)
        return ib.get()

    return tvm.extern(a.shape, [a], body, name="leaky", dtype=a.dtype)


def row_sum_allocated(inputs, attrs):
    (a,) = inputs

    def body(ins, outs):
        ib = tvm.ir_builder.create()
        total = ib.buffer_ptr(outs[0])
        with ib.for_range(0, a.shape[0], name="i") as i:
            partial = ib.allocate(a.dtype, (1,), name="partial", scope="local")
            partial[0] = 0.0
            with ib.for_range(0, a.shape[1], name="j") as j:
                partial[0] = partial[0] + ib.load(ins[0], [i, j])
            total[i] = partial[0]
        return ib.get()

    return tvm.extern((a.shape[0],), [a], body, name="total", dtype=a.dtype)


def lu_built(inputs, attrs):
    (a,) = inputs
    n = a.shape[0]

    def body(ins, outs):
        ib = tvm.ir_builder.create()
        lu = outs[0]
        with ib.for_range_n([n, n], "c") as at:
            ib.store(lu, at, ib.load(ins[0], at))
        with ib.for_range(0, n, name="k") as k, ib.for_range(k + 1, n, name="i") as i:
            ib.store(lu, [i, k], ib.load(lu, [i, k]) / ib.load(lu, [k, k]))
            with ib.for_range(k + 1, n, name="j") as j:
                update = ib.load(lu, [i, k]) * ib.load(lu, [k, j])
                ib.store(lu, [i, j], ib.load(lu, [i, j]) - update)
        return ib.get()

    return tvm.extern(a.shape, [a], body, name="lu", dtype=a.dtype)


def forward_substitution_built(inputs, attrs):
    a, b = inputs
    n = a.shape[0]

    def body(ins, outs):
        ib = tvm.ir_builder.create()
        x = ib.buffer_ptr(outs[0])
        rhs = ib.buffer_ptr(ins[1])
        with ib.for_range(0, n, name="i") as i:
            x[i] = rhs[i]
            with ib.for_range(0, i, name="j") as j:
                x[i] = x[i] - ib.load(ins[0], [i, j]) * x[j]
            x[i] = x[i] / ib.load(ins[0], [i, i])
        return ib.get()

    return tvm.extern((n,), [a, b], body, name="x", dtype=a.dtype)


def weighted_sum_of_list(inputs, attrs):
    first, others = inputs
    weights = attrs["weights"]

    def body(ins, outs):
        ib = tvm.ir_builder.create()
        with ib.for_range_n(first.shape, "i") as at:
            total = ib.load(ins[0], at)
            for weight, buf in zip(weights, ins[1:], strict=True):
                total = total + weight * ib.load(buf, at)
            ib.store(outs[0], at, total)
        return ib.get()

    return tvm.extern(first.shape, [first, *others], body, name="weighted", dtype=first.dtype)


def extremes_of_rows(inputs, attrs):
    (a,) = inputs
    rows, columns = a.shape

    def body(ins, outs):
        ib = tvm.ir_builder.create()
        low, high = (ib.buffer_ptr(buf) for buf in outs)
        with ib.for_range(0, rows, name="i") as i:
            low[i] = ib.load(ins[0], [i, 0])
            high[i] = ib.load(ins[0], [i, 0])
            with ib.for_range(1, columns, name="j") as j:
                value = ib.load(ins[0], [i, j])
                low[i] = tvm.min(low[i], value)
                high[i] = tvm.max(high[i], value)
        return ib.get()

    return tvm.extern([(rows,), (rows,)], [a], body, name="extremes", dtype=[a.dtype, a.dtype])


def histogram_built(inputs, attrs):
    (bins,) = inputs
    count = attrs["count"]

    def body(ins, outs):
        ib = tvm.ir_builder.create()
        number = ib.buffer_ptr(ins[0])
        found = ib.buffer_ptr(outs[0])
        with ib.for_range(0, count) as i:
            found[i] = 0
        with ib.for_range(0, bins.shape[0]) as i:
            found[number[i]] = found[number[i]] + 1
        return ib.get()

    return tvm.extern((count,), [bins], body, name="found", dtype="int32")


def csr_row_sums(inputs, attrs):
    values, starts = inputs
    rows = starts.shape[0] - 1

    def body(ins, outs):
        ib = tvm.ir_builder.create()
        value, start = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1])
        total = ib.buffer_ptr(outs[0])
        with ib.for_range(0, rows, name="row") as r:
            total[r] = tvm.const(0, values.dtype)
            with ib.for_range(start[r], start[r + 1], name="k") as k:
                total[r] += value[k]
        return ib.get()

    return tvm.extern((rows,), [values, starts], body, name="total", dtype=values.dtype)


def cumulative_sum_built(inputs, attrs):
    (a,) = inputs

    def body(ins, outs):
        ib = tvm.ir_builder.create()
        x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        y[0] = x[0]
        with ib.for_range(1, a.shape[0]) as i:
            y[i] = y[i - 1] + x[i]
        return ib.get()

    return tvm.extern(a.shape, [a], body, name="sums", dtype=a.dtype)


def blur_with_borders(inputs, attrs):
    (a,) = inputs
    rows, columns = a.shape

    def body(ins, outs):
        ib = tvm.ir_builder.create()
        with ib.for_range_n(a.shape, "i") as at:
            i, j = at
            inside = tvm.all(i > 0, i < rows - 1, j > 0, j < columns - 1)
            with ib.if_scope(inside):
                around = ib.load(ins[0], [i - 1, j]) + ib.load(ins[0], [i + 1, j])
                around = around + ib.load(ins[0], [i, j - 1]) + ib.load(ins[0], [i, j + 1])
                ib.store(outs[0], at, around * 0.25)
            with ib.else_scope():
                ib.store(outs[0], at, ib.load(ins[0], at))
        return ib.get()

    return tvm.extern(a.shape, [a], body, name="blurred", dtype=a.dtype)


def doubled_by_threads(inputs, attrs):
    (a,) = inputs
    threads = 4

    def body(ins, outs):
        ib = tvm.ir_builder.create()
        block, thread = tvm.thread_axis("blockIdx.x"), tvm.thread_axis("threadIdx.x")
        ib.scope_attr(block, "thread_extent", (a.shape[0] + threads - 1) // threads)
        ib.scope_attr(thread, "thread_extent", threads)
        place = block * threads + thread
        x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.if_scope(ib.likely(place < a.shape[0])):
            y[place] = x[place] * 2.0
        return ib.get()

    return tvm.extern(a.shape, [a], body, name="doubled", dtype=a.dtype)


def normalised_in_two_externs(inputs, attrs):
    (a,) = inputs
    n = a.shape[0]

    def largest(ins, outs):
        ib = tvm.ir_builder.create()
        x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        y[0] = tvm.abs(x[0])
        with ib.for_range(1, n) as i, ib.if_scope(tvm.abs(x[i]) > y[0]):
            y[0] = tvm.abs(x[i])
        return ib.get()

    def divided(ins, outs):
        ib = tvm.ir_builder.create()
        with ib.for_range(0, n) as i:
            ib.emit(outs[0].vstore([i], ins[0].vload([i]) / ins[1].vload([0])))
        return ib.get()

    top = tvm.extern((1,), [a], largest, name="top", dtype=a.dtype)
    return tvm.extern(a.shape, [a, top], divided, name="divided", dtype=a.dtype)


def edit_distance_built(inputs, attrs):
    a, b = inputs
    n, m = a.shape[0], b.shape[0]

    def body(ins, outs):
        ib = tvm.ir_builder.create()
        width = m + 1
        table = ib.allocate("int32", ((n + 1) * width,), name="table", scope="global")
        x, y, distance = (ib.buffer_ptr(buf) for buf in (*ins, *outs))
        with ib.for_range(0, n + 1) as i:
            table[i * width] = i
        with ib.for_range(0, width) as j:
            table[j] = j
        with ib.for_range(0, n, name="i") as i:
            with ib.for_range(0, m, name="j") as j:
                here = i * width + j
                change = table[here] + (x[i] != y[j]).astype("int32")
                aside = tvm.min(table[here + 1], table[here + width]) + 1
                table[here + width + 1] = tvm.min(change, aside)
        distance[0] = table[n * width + m]
        return ib.get()

    return tvm.extern((1,), [a, b], body, name="distance", dtype="int32")


def _lu(a):
    lu = wide(a)
    for k in range(len(lu)):
        lu[k + 1 :, k] /= lu[k, k]
        lu[k + 1 :, k + 1 :] -= np.outer(lu[k + 1 :, k], lu[k, k + 1 :])
    return lu


def _csr(rng, n):
    starts = np.sort(rng.integers(0, 3 * n, n - 1))
    return normal(rng, 3 * n), np.array([0, *starts, 3 * n], np.int32)


def _blurred(a):
    out = a.copy()
    out[1:-1, 1:-1] = (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]) * 0.25
    return out


def _distance(a, b):
    line = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, line[0] = line[0], i
        for j, y in enumerate(b, 1):
            before, line[j] = line[j], min(before + int(x != y), line[j] + 1, line[j - 1] + 1)
    return np.array([line[-1]])


def _dominant(rng, n):
    return normal(rng, n, n) + 2 * n * np.eye(n, dtype=np.float32)


CASES = (
    row(add_flat, lambda r, n: (normal(r, n, n + 1), normal(r, n, n + 1)), np.add, "map", 0),
    row(transpose_built, lambda r, n: (normal(r, n, n + 3),), np.transpose, "move", 0),
    row(
        leaky_relu_built,
        lambda r, n: (normal(r, n, n),),
        lambda a, slope: np.where(a > 0, a, a * slope),
        "map mask attribute",
        slope=0.25,
    ),
    row(row_sum_allocated, lambda r, n: (normal(r, n, n),), lambda a: wide(a).sum(1), "reduction"),
    row(lu_built, lambda r, n: (_dominant(r, n),), _lu, "serial"),
    row(
        forward_substitution_built,
        lambda r, n: (np.tril(_dominant(r, n)), normal(r, n)),
        lambda a, b: np.linalg.solve(wide(a), wide(b)),
        "serial",
    ),
    row(
        extremes_of_rows,
        lambda r, n: (normal(r, n, n),),
        lambda a: (a.min(1), a.max(1)),
        "reduction outputs",
        0,
    ),
    row(
        histogram_built,
        lambda r, n: (whole(r, 0, 5, 4 * n),),
        lambda bins, count: np.bincount(bins, minlength=count),
        "indirect attribute integer",
        0,
        count=5,
    ),
    row(
        csr_row_sums,
        _csr,
        lambda values, starts: np.array(
            [wide(values[i:j]).sum() for i, j in itertools.pairwise(starts)]
        ),
        "indirect reduction",
    ),
    row(cumulative_sum_built, lambda r, n: (normal(r, n),), lambda a: wide(a).cumsum(), "scan"),
    row(blur_with_borders, lambda r, n: (normal(r, n, n),), _blurred, "stencil mask"),
    row(doubled_by_threads, lambda r, n: (normal(r, n + 1),), lambda a: a * 2, "map mask", 0),
    row(
        normalised_in_two_externs,
        lambda r, n: (normal(r, n),),
        lambda a: wide(a) / np.abs(a).max(),
        "reduction stages",
    ),
    row(
        edit_distance_built,
        lambda r, n: (whole(r, 0, 3, n), whole(r, 0, 3, n + 2)),
        _distance,
        "serial integer",
        0,
    ),
)

LISTED = row(
    weighted_sum_of_list,
    lambda r, n: (normal(r, n, n), normal(r, n, n), normal(r, n, n)),
    lambda first, x, y, weights: first + weights[0] * wide(x) + weights[1] * wide(y),
    "map attribute list",
    weights=(2.0, -3.0),
)
"""A case whose second input is a list of all arrays but the first."""
