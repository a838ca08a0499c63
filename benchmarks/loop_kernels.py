# ruff: noqa: F821
"""The loop kernels of the suite, in the dialect that msops and AKG both take.

A module of plain functions: MindSpore's own Python imports it too. `float32` casts are there
because AKG refuses to mix dtypes.
"""


def add(a, b):
    c = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] + b[i, j]
    return c


def gelu(a):
    b = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            x = a[i, j]
            b[i, j] = 0.5 * x * (1.0 + tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
    return b


def softmax(a):
    b = output_tensor(a.shape, a.dtype)
    m = allocate((a.shape[0],), a.dtype)
    s = allocate((a.shape[0],), a.dtype)
    for i in range(a.shape[0]):
        m[i] = a[i, 0]
        for j in range(a.shape[1]):
            m[i] = max(m[i], a[i, j])
        s[i] = 0.0
        for j in range(a.shape[1]):
            s[i] = s[i] + exp(a[i, j] - m[i])
        for j in range(a.shape[1]):
            b[i, j] = exp(a[i, j] - m[i]) / s[i]
    return b


def layer_norm(a, g, h):
    b = output_tensor(a.shape, a.dtype)
    mean = allocate((a.shape[0],), a.dtype)
    var = allocate((a.shape[0],), a.dtype)
    for i in range(a.shape[0]):
        mean[i] = 0.0
        var[i] = 0.0
        for j in range(a.shape[1]):
            mean[i] = mean[i] + a[i, j]
        mean[i] = mean[i] / float32(a.shape[1])
        for j in range(a.shape[1]):
            var[i] = var[i] + (a[i, j] - mean[i]) * (a[i, j] - mean[i])
        var[i] = var[i] / float32(a.shape[1])
        for j in range(a.shape[1]):
            b[i, j] = (a[i, j] - mean[i]) / sqrt(var[i] + 0.00001) * g[j] + h[j]
    return b


def row_sum(a):
    b = output_tensor((a.shape[0],), a.dtype)
    for i in range(a.shape[0]):
        b[i] = 0.0
        for j in range(a.shape[1]):
            b[i] = b[i] + a[i, j]
    return b


def column_sum(a):
    b = output_tensor((a.shape[1],), a.dtype)
    for j in range(a.shape[1]):
        b[j] = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[j] = b[j] + a[i, j]
    return b


def full_sum(a):
    b = output_tensor((1,), a.dtype)
    b[0] = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[0] = b[0] + a[i, j]
    return b


def max_pool(a):
    h = a.shape[0] // 2
    w = a.shape[1] // 2
    b = output_tensor((h, w), a.dtype)
    for i in range(h):
        for j in range(w):
            b[i, j] = a[2 * i, 2 * j]
            for k in range(2):
                for l in range(2):  # noqa: E741
                    b[i, j] = max(b[i, j], a[2 * i + k, 2 * j + l])
    return b


def stencil_3(a):
    n = a.shape[0]
    b = output_tensor(a.shape, a.dtype)
    for i in range(n):
        b[i] = a[i]
    for i in range(n - 2):
        b[i + 1] = 0.25 * a[i] + 0.5 * a[i + 1] + 0.25 * a[i + 2]
    return b


def stencil_5(a):
    n = a.shape[0]
    m = a.shape[1]
    b = output_tensor(a.shape, a.dtype)
    for i in range(n):
        for j in range(m):
            b[i, j] = a[i, j]
    for i in range(n - 2):
        for j in range(m - 2):
            b[i + 1, j + 1] = 0.2 * (
                a[i + 1, j + 1] + a[i, j + 1] + a[i + 2, j + 1] + a[i + 1, j] + a[i + 1, j + 2]
            )
    return b


def transpose(a):
    b = output_tensor((a.shape[1], a.shape[0]), a.dtype)
    for i in range(a.shape[1]):
        for j in range(a.shape[0]):
            b[i, j] = a[j, i]
    return b


def matmul(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0.0
            for k in range(a.shape[1]):
                c[i, j] = c[i, j] + a[i, k] * b[k, j]
    return c


def batched_matmul(a, b):
    c = output_tensor((a.shape[0], a.shape[1], b.shape[2]), a.dtype)
    for n in range(a.shape[0]):
        for i in range(a.shape[1]):
            for j in range(b.shape[2]):
                c[n, i, j] = 0.0
                for k in range(a.shape[2]):
                    c[n, i, j] = c[n, i, j] + a[n, i, k] * b[n, k, j]
    return c


def conv2d(a, w):
    h = a.shape[1] - 2
    v = a.shape[2] - 2
    b = output_tensor((w.shape[0], h, v), a.dtype)
    for f in range(w.shape[0]):
        for i in range(h):
            for j in range(v):
                b[f, i, j] = 0.0
                for c in range(a.shape[0]):
                    for k in range(3):
                        for l in range(3):  # noqa: E741
                            b[f, i, j] = b[f, i, j] + a[c, i + k, j + l] * w[f, c, k, l]
    return b


def outer(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c


def gather(a, idx):
    b = output_tensor((idx.shape[0], a.shape[1]), a.dtype)
    for i in range(idx.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] = a[idx[i], j]
    return b


def scatter_add(a, idx):
    b = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] = 0.0
    for i in range(idx.shape[0]):
        for j in range(a.shape[1]):
            b[idx[i], j] = b[idx[i], j] + a[i, j]
    return b


def cumulative_sum(a):
    b = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        b[i, 0] = a[i, 0]
        for j in range(a.shape[1] - 1):
            b[i, j + 1] = b[i, j] + a[i, j + 1]
    return b


def lu(a):
    n = a.shape[0]
    b = output_tensor(a.shape, a.dtype)
    for i in range(n):
        for j in range(n):
            b[i, j] = a[i, j]
    for k in range(n):
        for i in range(k + 1, n):
            b[i, k] = b[i, k] / b[k, k]
            for j in range(k + 1, n):
                b[i, j] = b[i, j] - b[i, k] * b[k, j]
    return b


def cholesky(a):
    n = a.shape[0]
    b = output_tensor(a.shape, a.dtype)
    for i in range(n):
        for j in range(n):
            b[i, j] = 0.0
    for j in range(n):
        for i in range(j, n):
            b[i, j] = a[i, j]
            for k in range(j):
                b[i, j] = b[i, j] - b[i, k] * b[j, k]
            if i == j:
                b[j, j] = sqrt(b[j, j])
            else:
                b[i, j] = b[i, j] / b[j, j]
    return b


def triangular_solve(a, y):
    n = a.shape[0]
    x = output_tensor(y.shape, y.dtype)
    for i in range(n):
        for r in range(y.shape[1]):
            x[i, r] = y[i, r]
        for k in range(i):
            for r in range(y.shape[1]):
                x[i, r] = x[i, r] - a[i, k] * x[k, r]
        for r in range(y.shape[1]):
            x[i, r] = x[i, r] / a[i, i]
    return x


def edit_distance(s, t):
    n = s.shape[0]
    m = t.shape[0]
    d = output_tensor((n + 1, m + 1), s.dtype)
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(n):
        for j in range(m):
            if s[i] == t[j]:
                d[i + 1, j + 1] = d[i, j]
            else:
                d[i + 1, j + 1] = 1 + min(d[i, j], min(d[i, j + 1], d[i + 1, j]))
    return d


def gauss_seidel(a):
    n = a.shape[0]
    m = a.shape[1]
    b = output_tensor(a.shape, a.dtype)
    for i in range(n):
        for j in range(m):
            b[i, j] = a[i, j]
    for _t in range(4):
        for i in range(n - 2):
            for j in range(m - 2):
                b[i + 1, j + 1] = 0.25 * (
                    b[i, j + 1] + b[i + 2, j + 1] + b[i + 1, j] + b[i + 1, j + 2]
                )
    return b


def n_body(p, q):
    n = p.shape[0]
    f = output_tensor(p.shape, p.dtype)
    for i in range(n):
        for d in range(3):
            f[i, d] = 0.0
        for j in range(n):
            x = p[j, 0] - p[i, 0]
            y = p[j, 1] - p[i, 1]
            z = p[j, 2] - p[i, 2]
            r = x * x + y * y + z * z + 0.01
            w = q[j] / (r * sqrt(r))
            f[i, 0] = f[i, 0] + w * x
            f[i, 1] = f[i, 1] + w * y
            f[i, 2] = f[i, 2] + w * z
    return f
