# ruff: noqa: F821, SIM102
"""Kernels as users write them, of which no suite holds the like; no pass was written for them."""


def histogram(x):
    y = output_tensor((64,), "int32")
    for i in range(64):
        y[i] = 0
    for i in range(x.shape[0]):
        y[x[i]] = y[x[i]] + 1
    return y


def game_of_life(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            n = 0
            for a in range(max(i - 1, 0), min(i + 2, x.shape[0])):
                for b in range(max(j - 1, 0), min(j + 2, x.shape[1])):
                    n = n + x[a, b]
            n = n - x[i, j]
            y[i, j] = 1 if n == 3 or (n == 2 and x[i, j] == 1) else 0
    return y


def rotate_pairs(x, cs, sn):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for h in range(x.shape[1]):
            for d in range(x.shape[2] // 2):
                a = x[i, h, 2 * d]
                b = x[i, h, 2 * d + 1]
                y[i, h, 2 * d] = a * cs[i, d] - b * sn[i, d]
                y[i, h, 2 * d + 1] = a * sn[i, d] + b * cs[i, d]
    return y


def embedding_bag(t, idx, w):
    y = output_tensor((idx.shape[0], t.shape[1]), t.dtype)
    for i in range(idx.shape[0]):
        for d in range(t.shape[1]):
            y[i, d] = 0.0
        for k in range(idx.shape[1]):
            for d in range(t.shape[1]):
                y[i, d] = y[i, d] + w[i, k] * t[idx[i, k], d]
    return y


def ragged_softmax(x, n):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        m = -1e30
        for j in range(n[i]):
            m = max(m, x[i, j])
        s = 0.0
        for j in range(n[i]):
            s = s + exp(x[i, j] - m)
        for j in range(x.shape[1]):
            y[i, j] = exp(x[i, j] - m) / s if j < n[i] else 0.0
    return y


def depthwise_conv(x, w):
    y = output_tensor((x.shape[0] - 2, x.shape[1] - 2, x.shape[2]), x.dtype)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            for c in range(x.shape[2]):
                t = 0.0
                for a in range(3):
                    for b in range(3):
                        t = t + x[i + a, j + b, c] * w[a, b, c]
                y[i, j, c] = t
    return y


def image_to_columns(x):
    y = output_tensor(((x.shape[1] - 2) * (x.shape[2] - 2), x.shape[0] * 9), x.dtype)
    for i in range(x.shape[1] - 2):
        for j in range(x.shape[2] - 2):
            for c in range(x.shape[0]):
                for a in range(3):
                    for b in range(3):
                        y[i * (x.shape[2] - 2) + j, c * 9 + a * 3 + b] = x[c, i + a, j + b]
    return y


def horner(x, c):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = 0.0
        for k in range(c.shape[0]):
            t = t * x[i] + c[k]
        y[i] = t
    return y


def greatest_four(x):
    y = output_tensor((x.shape[0], 4), x.dtype)
    for i in range(x.shape[0]):
        for k in range(4):
            y[i, k] = -1e30
        for j in range(x.shape[1]):
            v = x[i, j]
            for k in range(4):
                if v > y[i, k]:
                    t = y[i, k]
                    y[i, k] = v
                    v = t
    return y


def disparity_costs(x, z):
    y = output_tensor((x.shape[0] - 8, 16), x.dtype)
    for i in range(x.shape[0] - 8):
        for d in range(16):
            t = 0.0
            for k in range(8):
                t = t + abs(x[i + k] - z[i + k + d])
            y[i, d] = t
    return y


def box_overlaps(a, b):
    y = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            w = max(min(a[i, 2], b[j, 2]) - max(a[i, 0], b[j, 0]), 0.0)
            h = max(min(a[i, 3], b[j, 3]) - max(a[i, 1], b[j, 1]), 0.0)
            n = w * h
            u = (
                (a[i, 2] - a[i, 0]) * (a[i, 3] - a[i, 1])
                + (b[j, 2] - b[j, 0]) * (b[j, 3] - b[j, 1])
                - n
            )
            y[i, j] = n / u
    return y


def time_warping(x, z):
    d = output_tensor((x.shape[0], z.shape[0]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(z.shape[0]):
            c = abs(x[i] - z[j])
            if i == 0 and j == 0:
                d[i, j] = c
            elif i == 0:
                d[i, j] = c + d[i, j - 1]
            elif j == 0:
                d[i, j] = c + d[i - 1, j]
            else:
                d[i, j] = c + min(d[i - 1, j - 1], min(d[i - 1, j], d[i, j - 1]))
    return d


def newton_roots(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = x[i]
        for _ in range(12):
            t = 0.5 * (t + x[i] / t)
        y[i] = t
    return y


def collatz(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        n = x[i]
        c = 0
        for _ in range(300):
            if not (n > 1):
                break
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            c = c + 1
        y[i] = c
    return y


def binary_search(x, q):
    y = output_tensor(q.shape, "int32")
    for i in range(q.shape[0]):
        lo = 0
        hi = x.shape[0]
        for _ in range(14):
            if lo < hi:
                m = (lo + hi) // 2
                if x[m] < q[i]:
                    lo = m + 1
                else:
                    hi = m
        y[i] = lo
    return y


def quantized_product(a, b, s):
    y = output_tensor((a.shape[0], b.shape[1]), "float32")
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            t = 0
            for k in range(a.shape[1]):
                t = t + int32(a[i, k]) * int32(b[k, j])
            y[i, j] = float32(t) * s[j]
    return y


def cholesky_rows(a):
    lower = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(a.shape[1]):
                lower[i, j, k] = 0.0
        for k in range(a.shape[1]):
            s = a[i, k, k]
            for p in range(k):
                s = s - lower[i, k, p] * lower[i, k, p]
            lower[i, k, k] = sqrt(s)
            for j in range(k + 1, a.shape[1]):
                t = a[i, j, k]
                for p in range(k):
                    t = t - lower[i, j, p] * lower[i, k, p]
                lower[i, j, k] = t / lower[i, k, k]
    return lower


def solve_rows(a, b):
    x = output_tensor(b.shape, b.dtype)
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            t = b[i, k]
            for p in range(k):
                t = t - a[i, k, p] * x[i, p]
            x[i, k] = t / a[i, k, k]
    return x


def lu_rows(a):
    x = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(a.shape[1]):
                x[i, j, k] = a[i, j, k]
        for k in range(a.shape[1]):
            for j in range(k + 1, a.shape[1]):
                x[i, j, k] = x[i, j, k] / x[i, k, k]
                for m in range(k + 1, a.shape[1]):
                    x[i, j, m] = x[i, j, m] - x[i, j, k] * x[i, k, m]
    return x


def sort_rows(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j]
        for j in range(1, x.shape[1]):
            v = y[i, j]
            k = j - 1
            while k >= 0 and y[i, k] > v:
                y[i, k + 1] = y[i, k]
                k = k - 1
            y[i, k + 1] = v
    return y


def inside_polygon(px, py, vx, vy):
    y = output_tensor(px.shape, px.dtype)
    for i in range(px.shape[0]):
        c = 0.0
        j = vx.shape[0] - 1
        for k in range(vx.shape[0]):
            if (vy[k] > py[i]) != (vy[j] > py[i]):
                if px[i] < (vx[j] - vx[k]) * (py[i] - vy[k]) / (vy[j] - vy[k]) + vx[k]:
                    c = 1.0 - c
            j = k
        y[i] = c
    return y


def dequantized_product(x, q, s):
    y = output_tensor((x.shape[0], q.shape[1]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(q.shape[1]):
            t = 0.0
            for k in range(x.shape[1]):
                t = t + x[i, k] * (float32(q[k, j]) * s[j])
            y[i, j] = t
    return y


def bilinear_resize(x):
    y = output_tensor((x.shape[0] * 2, x.shape[1] * 2), x.dtype)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            u = (float32(i) + 0.5) / 2.0 - 0.5
            v = (float32(j) + 0.5) / 2.0 - 0.5
            i0 = min(max(int32(u), 0), x.shape[0] - 2)
            j0 = min(max(int32(v), 0), x.shape[1] - 2)
            a = u - float32(i0)
            b = v - float32(j0)
            y[i, j] = (x[i0, j0] * (1 - b) + x[i0, j0 + 1] * b) * (1 - a) + (
                x[i0 + 1, j0] * (1 - b) + x[i0 + 1, j0 + 1] * b
            ) * a
    return y


def symmetric_stored_half(a, x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = 0.0
        for k in range(x.shape[0]):
            t = t + a[max(i, k), min(i, k)] * x[k]
        y[i] = t
    return y


def windows_at(x, at):
    y = output_tensor((at.shape[0], 16), x.dtype)
    for i in range(at.shape[0]):
        for j in range(16):
            y[i, j] = x[at[i] + j] * 0.5 + x[at[i] + j + 1] * 0.25
    return y


def box_filter(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            t = 0.0
            for a in range(max(i - 2, 0), min(i + 3, x.shape[0])):
                for b in range(max(j - 2, 0), min(j + 3, x.shape[1])):
                    t = t + x[a, b]
            y[i, j] = t / 25.0
    return y
