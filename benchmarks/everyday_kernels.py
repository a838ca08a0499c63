# ruff: noqa: F821, SIM102
"""Kernels as users write them, of which no other suite holds the like."""


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


def smith_waterman(a, b):
    h = output_tensor((a.shape[0] + 1, b.shape[0] + 1), "int32")
    best = output_tensor((3,), "int32")
    for i in range(1, a.shape[0] + 1):
        for j in range(1, b.shape[0] + 1):
            match = 3 if a[i - 1] == b[j - 1] else -3
            s = max(h[i - 1, j - 1] + match, 0)
            s = max(s, h[i - 1, j] - 2)
            s = max(s, h[i, j - 1] - 2)
            h[i, j] = s
            if s > best[0]:
                best[0] = s
                best[1] = i
                best[2] = j
    return h, best


def levenshtein(a, b):
    out = output_tensor((a.shape[0],), "int32")
    row = allocate((b.shape[1] + 1,), "int32")
    for p in range(a.shape[0]):
        for j in range(b.shape[1] + 1):
            row[j] = j
        for i in range(a.shape[1]):
            diag = row[0]
            row[0] = i + 1
            for j in range(b.shape[1]):
                cost = diag
                if a[p, i] != b[p, j]:
                    cost = cost + 1
                diag = row[j + 1]
                row[j + 1] = min(min(row[j + 1], row[j]) + 1, cost)
        out[p] = row[b.shape[1]]
    return out


def viterbi(obs, trans, emit):
    states = trans.shape[0]
    t_all = obs.shape[0]
    path = output_tensor((t_all,), "int32")
    score = output_tensor((t_all, states), trans.dtype)
    back = allocate((t_all, states), "int32")
    for s in range(states):
        score[0, s] = emit[s, obs[0]]
    for t in range(1, t_all):
        for s in range(states):
            best = score[t - 1, 0] + trans[0, s]
            arg = 0
            for k in range(1, states):
                c = score[t - 1, k] + trans[k, s]
                if c > best:
                    best = c
                    arg = k
            score[t, s] = best + emit[s, obs[t]]
            back[t, s] = arg
    last = 0
    for s in range(1, states):
        if score[t_all - 1, s] > score[t_all - 1, last]:
            last = s
    path[t_all - 1] = last
    for r in range(1, t_all):
        t = t_all - r
        last = back[t, last]
        path[t - 1] = last
    return path, score


def hidden_markov_forward(logb, loga, start):
    alpha = output_tensor(logb.shape, logb.dtype)
    total = output_tensor((1,), logb.dtype)
    s_all = logb.shape[1]
    for s in range(s_all):
        alpha[0, s] = start[s] + logb[0, s]
    for t in range(1, logb.shape[0]):
        for s in range(s_all):
            m = alpha[t - 1, 0] + loga[0, s]
            for k in range(1, s_all):
                m = max(m, alpha[t - 1, k] + loga[k, s])
            acc = logb.dtype.type(0)
            for k in range(s_all):
                acc += exp(alpha[t - 1, k] + loga[k, s] - m)
            alpha[t, s] = m + log(acc) + logb[t, s]
    last = logb.shape[0] - 1
    m = alpha[last, 0]
    for s in range(1, s_all):
        m = max(m, alpha[last, s])
    acc = logb.dtype.type(0)
    for s in range(s_all):
        acc += exp(alpha[last, s] - m)
    total[0] = m + log(acc)
    return alpha, total


def ising_sweep(s, u, beta):
    n = s.shape[0]
    m = s.shape[1]
    for colour in range(2):
        for i in range(n):
            for j in range(m):
                if (i + j) % 2 == colour:
                    near = s[(i + n - 1) % n, j] + s[(i + 1) % n, j]
                    near = near + s[i, (j + m - 1) % m] + s[i, (j + 1) % m]
                    cost = 2 * s[i, j] * near
                    if cost <= 0 or u[i, j] < exp(-beta[0] * u.dtype.type(cost)):
                        s[i, j] = -s[i, j]
    return s


def lattice_walk(seed):
    px = output_tensor(seed.shape, "int32")
    far = output_tensor(seed.shape, "int32")
    for w in range(seed.shape[0]):
        s = uint32(seed[w])
        x = int32(0)
        y = int32(0)
        m = int32(0)
        for _ in range(50):
            s = s * 1664525 + 1013904223
            turn = s >> 30
            if turn == 0:
                x += 1
            elif turn == 1:
                x -= 1
            elif turn == 2:
                y += 1
            else:
                y -= 1
            m = max(m, abs(x) + abs(y))
        px[w] = x
        far[w] = m
    return px, far


def fft_stages(re, im):
    n = re.shape[0]
    half = 1
    for _ in range(20):
        if half >= n:
            break
        for start in range(0, n // 2):
            block = start // half
            k = start % half
            a = block * 2 * half + k
            b = a + half
            angle = re.dtype.type(-3.141592653589793) * re.dtype.type(k) / re.dtype.type(half)
            c = cos(angle)
            s = sin(angle)
            tr = c * re[b] - s * im[b]
            ti = c * im[b] + s * re[b]
            re[b] = re[a] - tr
            im[b] = im[a] - ti
            re[a] = re[a] + tr
            im[a] = im[a] + ti
        half = half * 2
    return re, im


def haar_wavelet(x):
    out = output_tensor(x.shape, x.dtype)
    tmp = allocate((x.shape[1],), x.dtype)
    for r in range(x.shape[0]):
        for i in range(x.shape[1]):
            out[r, i] = x[r, i]
        length = x.shape[1]
        for _ in range(5):
            half = length // 2
            for i in range(half):
                tmp[i] = (out[r, 2 * i] + out[r, 2 * i + 1]) * 0.7071067811865476
                tmp[half + i] = (out[r, 2 * i] - out[r, 2 * i + 1]) * 0.7071067811865476
            for i in range(length):
                out[r, i] = tmp[i]
            length = half
    return out


def equalise_histogram(img):
    out = output_tensor(img.shape, img.dtype)
    hist = allocate((256,), "int32")
    cdf = allocate((256,), "int32")
    n = img.shape[0] * img.shape[1]
    for i, j in grid(img.shape):
        hist[img[i, j]] += 1
    run = 0
    low = 0
    for k in range(256):
        run += hist[k]
        cdf[k] = run
        if low == 0 and run > 0:
            low = run
    for i, j in grid(img.shape):
        if n > low:
            out[i, j] = img.dtype.type((cdf[img[i, j]] - low) * 255 // (n - low))
    return out


def median_of_windows(img):
    h, w = img.shape[0], img.shape[1]
    out = output_tensor(img.shape, img.dtype)
    v = allocate((9,), img.dtype)
    for y in range(h):
        for x in range(w):
            for dy in range(3):
                for dx in range(3):
                    yy = min(max(y + dy - 1, 0), h - 1)
                    xx = min(max(x + dx - 1, 0), w - 1)
                    v[dy * 3 + dx] = img[yy, xx]
            for i in range(5):
                for j in range(i + 1, 9):
                    low = min(v[i], v[j])
                    high = max(v[i], v[j])
                    v[i] = low
                    v[j] = high
            out[y, x] = v[4]
    return out


def segment_max(x, seg):
    n_seg = x.shape[0] // 3
    out = output_tensor((n_seg, x.shape[1]), x.dtype)
    seen = allocate((n_seg,), "bool")
    for i in range(x.shape[0]):
        s = seg[i]
        for d in range(x.shape[1]):
            if not seen[s]:
                out[s, d] = x[i, d]
            else:
                out[s, d] = max(out[s, d], x[i, d])
        seen[s] = True
    return out


def padded_sparse_product(vals, cols, x):
    y = output_tensor((vals.shape[0],), x.dtype)
    for i in range(vals.shape[0]):
        acc = x.dtype.type(0)
        for k in range(vals.shape[1]):
            c = cols[i, k]
            if c >= 0:
                acc += vals[i, k] * x[c]
        y[i] = acc
    return y


def unpack_nibbles(packed, scale, zero):
    out = output_tensor((packed.shape[0], packed.shape[1] * 2), scale.dtype)
    for i in range(packed.shape[0]):
        for j in range(packed.shape[1]):
            byte = int32(packed[i, j])
            g = j // 16
            low = (byte & 15) - int32(zero[i, g])
            high = (byte >> 4) - int32(zero[i, g])
            out[i, 2 * j] = scale.dtype.type(low) * scale[i, g]
            out[i, 2 * j + 1] = scale.dtype.type(high) * scale[i, g]
    return out


def polynomial_modulo(x, c):
    y = output_tensor(x.shape, x.dtype)
    p = x.dtype.type(32749)
    for i in range(x.shape[0]):
        s = x.dtype.type(0)
        for k in range(c.shape[0]):
            s = (s * x[i] + c[k]) % p
        y[i] = s
    return y


def checksum_rows(data):
    out = output_tensor((data.shape[0],), "uint32")
    for r in range(data.shape[0]):
        crc = uint32(0xFFFFFFFF)
        for i in range(data.shape[1]):
            crc = crc ^ uint32(data[r, i])
            for _ in range(8):
                crc = (crc >> 1) ^ 0xEDB88320 if crc & 1 == 1 else crc >> 1
        out[r] = ~crc
    return out


def chebyshev_series(x, c):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        a = 1.0
        b = x[i]
        s = c[0] + c[1] * x[i]
        for k in range(2, c.shape[0]):
            t = 2.0 * x[i] * b - a
            a = b
            b = t
            s = s + c[k] * t
        y[i] = s
    return y
