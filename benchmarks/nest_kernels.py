# ruff: noqa: F821
"""Loop nests of linear algebra, simulation, image processing and machine learning, written plainly.

The same functions are compiled by msops and by Numba; `parallel` is the loop that a user of Numba
would hand to `prange`.
"""


def symm(a, b, c):
    # a is symmetric; only its lower triangle is read.
    m, n = b.shape
    for i in range(m):
        for j in range(n):
            temp = 0.0
            for k in range(i):
                c[k, j] += b[i, j] * a[i, k]
                temp += b[k, j] * a[i, k]
            c[i, j] = c[i, j] + b[i, j] * a[i, i] + temp
    return c


def covariance(x):
    n, m = x.shape
    mean = allocate((m,), x.dtype)
    cov = output_tensor((m, m), x.dtype)
    for j in range(m):
        for i in range(n):
            mean[j] += x[i, j]
        mean[j] = mean[j] / n
    for i in parallel(m):
        for j in range(m):
            s = 0.0
            for k in range(n):
                s += (x[k, i] - mean[i]) * (x[k, j] - mean[j])
            cov[i, j] = s / (n - 1)
    return cov


def floyd_warshall(p):
    n = p.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                p[i, j] = min(p[i, j], p[i, k] + p[k, j])
    return p


def spmv(first, column, value, x):
    n = first.shape[0] - 1
    y = output_tensor((n,), value.dtype)
    for i in parallel(n):
        for k in range(first[i], first[i + 1]):
            y[i] += value[k] * x[column[k]]
    return y


def seidel(a):
    n, m = a.shape
    for _ in range(4):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                above = a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1]
                below = a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
                a[i, j] = (above + a[i, j - 1] + a[i, j] + a[i, j + 1] + below) / 9.0
    return a


def gray_scott(u, v):
    n, m = u.shape
    un = allocate(u.shape, u.dtype)
    vn = allocate(u.shape, u.dtype)
    for _ in range(8):
        for i in parallel(1, n - 1):
            for j in range(1, m - 1):
                lu = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
                lv = v[i - 1, j] + v[i + 1, j] + v[i, j - 1] + v[i, j + 1] - 4.0 * v[i, j]
                r = u[i, j] * v[i, j] * v[i, j]
                un[i, j] = u[i, j] + 0.16 * lu - r + 0.035 * (1.0 - u[i, j])
                vn[i, j] = v[i, j] + 0.08 * lv + r - 0.1 * v[i, j]
        for i in parallel(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] = un[i, j]
                v[i, j] = vn[i, j]
    return u, v


def diffusion(a, c):
    # The horizontal diffusion of weather models, with limited fluxes.
    n, m, k = c.shape
    lap = allocate((n + 2, m + 2, k), a.dtype)
    flx = allocate((n + 1, m, k), a.dtype)
    fly = allocate((n, m + 1, k), a.dtype)
    out = output_tensor(c.shape, c.dtype)
    for i in parallel(n + 2):
        for j in range(m + 2):
            for z in range(k):
                cross = a[i + 2, j + 1, z] + a[i, j + 1, z] + a[i + 1, j + 2, z] + a[i + 1, j, z]
                lap[i, j, z] = 4.0 * a[i + 1, j + 1, z] - cross
    for i in parallel(n + 1):
        for j in range(m):
            for z in range(k):
                f = lap[i + 1, j + 1, z] - lap[i, j + 1, z]
                if f * (a[i + 2, j + 2, z] - a[i + 1, j + 2, z]) > 0.0:
                    f = 0.0
                flx[i, j, z] = f
    for i in parallel(n):
        for j in range(m + 1):
            for z in range(k):
                f = lap[i + 1, j + 1, z] - lap[i + 1, j, z]
                if f * (a[i + 2, j + 2, z] - a[i + 2, j + 1, z]) > 0.0:
                    f = 0.0
                fly[i, j, z] = f
    for i in parallel(n):
        for j in range(m):
            for z in range(k):
                flux = flx[i + 1, j, z] - flx[i, j, z] + fly[i, j + 1, z] - fly[i, j, z]
                out[i, j, z] = a[i + 2, j + 2, z] - c[i, j, z] * flux
    return out


def thomas(a, b, c, d):
    # Tridiagonal systems along the last axis, all of them a step at a time.
    n, m, k = b.shape
    cp = allocate(b.shape, b.dtype)
    x = output_tensor(b.shape, b.dtype)
    for i in range(n):
        for j in range(m):
            cp[i, j, 0] = c[i, j, 0] / b[i, j, 0]
            x[i, j, 0] = d[i, j, 0] / b[i, j, 0]
    for z in range(1, k):
        for i in parallel(n):
            for j in range(m):
                pivot = b[i, j, z] - a[i, j, z] * cp[i, j, z - 1]
                cp[i, j, z] = c[i, j, z] / pivot
                x[i, j, z] = (d[i, j, z] - a[i, j, z] * x[i, j, z - 1]) / pivot
    for z in range(k - 2, -1, -1):
        for i in parallel(n):
            for j in range(m):
                x[i, j, z] = x[i, j, z] - cp[i, j, z] * x[i, j, z + 1]
    return x


def mandelbrot(cr, ci):
    n, m = cr.shape
    out = output_tensor(cr.shape, cr.dtype)
    for i in parallel(n):
        for j in range(m):
            zr = 0.0
            zi = 0.0
            steps = 0.0
            for _ in range(50):
                if zr * zr + zi * zi <= 4.0:
                    last = zr
                    zr = zr * zr - zi * zi + cr[i, j]
                    zi = 2.0 * last * zi + ci[i, j]
                    steps += 1.0
            out[i, j] = steps
    return out


def harris(a):
    n, m = a.shape
    dx = allocate((n - 2, m - 2), a.dtype)
    dy = allocate((n - 2, m - 2), a.dtype)
    out = output_tensor((n - 4, m - 4), a.dtype)
    for i in parallel(n - 2):
        for j in range(m - 2):
            right = a[i, j + 2] + 2.0 * a[i + 1, j + 2] + a[i + 2, j + 2]
            dx[i, j] = right - (a[i, j] + 2.0 * a[i + 1, j] + a[i + 2, j])
            low = a[i + 2, j] + 2.0 * a[i + 2, j + 1] + a[i + 2, j + 2]
            dy[i, j] = low - (a[i, j] + 2.0 * a[i, j + 1] + a[i, j + 2])
    for i in parallel(n - 4):
        for j in range(m - 4):
            xx = 0.0
            yy = 0.0
            xy = 0.0
            for p in range(3):
                for q in range(3):
                    xx += dx[i + p, j + q] * dx[i + p, j + q]
                    yy += dy[i + p, j + q] * dy[i + p, j + q]
                    xy += dx[i + p, j + q] * dy[i + p, j + q]
            out[i, j] = xx * yy - xy * xy - 0.05 * (xx + yy) * (xx + yy)
    return out


def bilateral(a):
    n, m = a.shape
    out = output_tensor((n - 4, m - 4), a.dtype)
    for i in parallel(n - 4):
        for j in range(m - 4):
            total = 0.0
            weights = 0.0
            for p in range(5):
                for q in range(5):
                    d = a[i + p, j + q] - a[i + 2, j + 2]
                    far = float32((p - 2) * (p - 2) + (q - 2) * (q - 2))
                    w = exp(-0.1 * far - 8.0 * d * d)
                    total += w * a[i + p, j + q]
                    weights += w
            out[i, j] = total / weights
    return out


def median(a):
    n, m = a.shape
    out = output_tensor((n - 2, m - 2), a.dtype)
    for i in parallel(n - 2):
        for j in range(m - 2):
            w = allocate((9,), a.dtype)
            for p in range(3):
                for q in range(3):
                    w[3 * p + q] = a[i + p, j + q]
            for p in range(5):
                for q in range(p + 1, 9):
                    low = min(w[p], w[q])
                    w[q] = max(w[p], w[q])
                    w[p] = low
            out[i, j] = w[4]
    return out


def dilate(a):
    n, m = a.shape
    out = output_tensor(a.shape, a.dtype)
    for i in parallel(n):
        for j in range(m):
            greatest = a[i, j]
            for p in range(-2, 3):
                for q in range(-2, 3):
                    if i + p >= 0 and i + p < n and j + q >= 0 and j + q < m:
                        greatest = max(greatest, a[i + p, j + q])
            out[i, j] = greatest
    return out


def lstm(x, w, u, b):
    steps, width = x.shape
    size = u.shape[0]
    h = allocate((size,), x.dtype)
    c = allocate((size,), x.dtype)
    g = allocate((4 * size,), x.dtype)
    out = output_tensor((steps, size), x.dtype)
    for t in range(steps):
        for j in range(4 * size):
            s = b[j]
            for d in range(width):
                s += x[t, d] * w[d, j]
            for d in range(size):
                s += h[d] * u[d, j]
            g[j] = s
        for j in range(size):
            keep = 1.0 / (1.0 + exp(-g[size + j]))
            add = 1.0 / (1.0 + exp(-g[j]))
            c[j] = keep * c[j] + add * tanh(g[2 * size + j])
            h[j] = tanh(c[j]) / (1.0 + exp(-g[3 * size + j]))
            out[t, j] = h[j]
    return out


def wkv(w, u, k, v):
    steps, channels = k.shape
    y = output_tensor(k.shape, k.dtype)
    for c in parallel(channels):
        a = 0.0
        b = 0.0
        for t in range(steps):
            e = exp(u[c] + k[t, c])
            y[t, c] = (a + e * v[t, c]) / (b + e)
            a = exp(w[c]) * a + exp(k[t, c]) * v[t, c]
            b = exp(w[c]) * b + exp(k[t, c])
    return y


def attention(q, k, v):
    heads, steps, size = q.shape
    out = output_tensor(q.shape, q.dtype)
    for h in range(heads):
        for i in parallel(steps):
            s = allocate((steps,), q.dtype)
            top = -1e30
            for j in range(i + 1):
                dot = 0.0
                for d in range(size):
                    dot += q[h, i, d] * k[h, j, d]
                s[j] = dot / 8.0
                top = max(top, s[j])
            total = 0.0
            for j in range(i + 1):
                s[j] = exp(s[j] - top)
                total += s[j]
            for d in range(size):
                mean = 0.0
                for j in range(i + 1):
                    mean += s[j] * v[h, j, d]
                out[h, i, d] = mean / total
    return out


def online_softmax(x):
    n, m = x.shape
    y = output_tensor(x.shape, x.dtype)
    for i in parallel(n):
        top = -1e30
        total = 0.0
        for j in range(m):
            new = max(top, x[i, j])
            total = total * exp(top - new) + exp(x[i, j] - new)
            top = new
        for j in range(m):
            y[i, j] = exp(x[i, j] - top) / total
    return y


def rms_norm(x, g):
    n, m = x.shape
    y = output_tensor(x.shape, x.dtype)
    for i in parallel(n):
        s = 0.0
        for j in range(m):
            s += x[i, j] * x[i, j]
        scale = 1.0 / sqrt(s / m + 1e-6)
        for j in range(m):
            y[i, j] = x[i, j] * scale * g[j]
    return y
