// nests.c: the loop nests of nest_kernels.py in C, as written, for one thread.
#include <stdlib.h>

#include "loops_c/aot.h"

#define IN(k) ((const float* restrict)params[k])
#define INTS(k) ((const int32_t* restrict)params[k])
#define OUT(k) ((float* restrict)params[k])
#define DIM(k, axis) (shapes[k][axis])

static float Least(float x, float y) { return x < y ? x : y; }
static float Greatest(float x, float y) { return x > y ? x : y; }

KERNEL(symm) {
  const float *a = IN(0), *b = IN(1);
  float* restrict c = OUT(3);
  const int64_t m = DIM(1, 0), n = DIM(1, 1);
  memcpy(c, params[2], m * n * sizeof(float));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float temp = 0;
      for (int64_t k = 0; k < i; ++k) {
        c[k * n + j] += b[i * n + j] * a[i * m + k];
        temp += b[k * n + j] * a[i * m + k];
      }
      c[i * n + j] = c[i * n + j] + b[i * n + j] * a[i * m + i] + temp;
    }
  }
  return 0;
}

KERNEL(covariance) {
  const float* x = IN(0);
  float* restrict cov = OUT(1);
  const int64_t n = DIM(0, 0), m = DIM(0, 1);
  float mean[m];
  for (int64_t j = 0; j < m; ++j) {
    mean[j] = 0;
    for (int64_t i = 0; i < n; ++i) mean[j] += x[i * m + j];
    mean[j] /= n;
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      float s = 0;
      for (int64_t k = 0; k < n; ++k) s += (x[k * m + i] - mean[i]) * (x[k * m + j] - mean[j]);
      cov[i * m + j] = s / (n - 1);
    }
  }
  return 0;
}

KERNEL(floyd_warshall) {
  float* p = OUT(1);
  const int64_t n = DIM(0, 0);
  memcpy(p, params[0], n * n * sizeof(float));
  for (int64_t k = 0; k < n; ++k)
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        p[i * n + j] = Least(p[i * n + j], p[i * n + k] + p[k * n + j]);
  return 0;
}

KERNEL(spmv) {
  const int32_t *first = INTS(0), *column = INTS(1);
  const float *value = IN(2), *x = IN(3);
  float* restrict y = OUT(4);
  for (int64_t i = 0; i < DIM(4, 0); ++i) {
    float s = 0;
    for (int64_t k = first[i]; k < first[i + 1]; ++k) s += value[k] * x[column[k]];
    y[i] = s;
  }
  return 0;
}

KERNEL(seidel) {
  float* a = OUT(1);
  const int64_t n = DIM(0, 0), m = DIM(0, 1);
  memcpy(a, params[0], n * m * sizeof(float));
  for (int t = 0; t < 4; ++t) {
    for (int64_t i = 1; i < n - 1; ++i) {
      for (int64_t j = 1; j < m - 1; ++j) {
        const float *up = a + (i - 1) * m + j, *at = a + i * m + j, *low = a + (i + 1) * m + j;
        const float above = up[-1] + up[0] + up[1], below = low[-1] + low[0] + low[1];
        a[i * m + j] = (above + at[-1] + at[0] + at[1] + below) / 9;
      }
    }
  }
  return 0;
}

static float Cross(const float* a, int64_t m) { return a[-m] + a[m] + a[-1] + a[1] - 4 * a[0]; }

KERNEL(gray_scott) {
  const int64_t n = DIM(0, 0), m = DIM(0, 1);
  float *restrict u = OUT(2), *restrict v = OUT(3);
  memcpy(u, params[0], n * m * sizeof(float));
  memcpy(v, params[1], n * m * sizeof(float));
  float *restrict un = malloc(n * m * sizeof(float)), *restrict vn = malloc(n * m * sizeof(float));
  for (int t = 0; t < 8; ++t) {
    for (int64_t i = 1; i < n - 1; ++i) {
      for (int64_t j = 1; j < m - 1; ++j) {
        const int64_t at = i * m + j;
        const float r = u[at] * v[at] * v[at];
        un[at] = u[at] + 0.16f * Cross(u + at, m) - r + 0.035f * (1 - u[at]);
        vn[at] = v[at] + 0.08f * Cross(v + at, m) + r - 0.1f * v[at];
      }
    }
    for (int64_t i = 1; i < n - 1; ++i) {
      for (int64_t j = 1; j < m - 1; ++j) {
        u[i * m + j] = un[i * m + j];
        v[i * m + j] = vn[i * m + j];
      }
    }
  }
  free(un);
  free(vn);
  return 0;
}

KERNEL(diffusion) {
  const float *a = IN(0), *c = IN(1);
  float* restrict out = OUT(2);
  const int64_t n = DIM(1, 0), m = DIM(1, 1), k = DIM(1, 2);
  float* restrict lap = malloc((n + 2) * (m + 2) * k * sizeof(float));
  float* restrict flx = malloc((n + 1) * m * k * sizeof(float));
  float* restrict fly = malloc(n * (m + 1) * k * sizeof(float));
#define A(i, j, z) a[((i) * (m + 4) + (j)) * k + (z)]
#define LAP(i, j, z) lap[((i) * (m + 2) + (j)) * k + (z)]
#define FLX(i, j, z) flx[((i) * m + (j)) * k + (z)]
#define FLY(i, j, z) fly[((i) * (m + 1) + (j)) * k + (z)]
  for (int64_t i = 0; i < n + 2; ++i)
    for (int64_t j = 0; j < m + 2; ++j)
      for (int64_t z = 0; z < k; ++z)
        LAP(i, j, z) = 4 * A(i + 1, j + 1, z) - (A(i + 2, j + 1, z) + A(i, j + 1, z) +
                                                 A(i + 1, j + 2, z) + A(i + 1, j, z));
  for (int64_t i = 0; i < n + 1; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      for (int64_t z = 0; z < k; ++z) {
        const float f = LAP(i + 1, j + 1, z) - LAP(i, j + 1, z);
        FLX(i, j, z) = f * (A(i + 2, j + 2, z) - A(i + 1, j + 2, z)) > 0 ? 0 : f;
      }
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < m + 1; ++j) {
      for (int64_t z = 0; z < k; ++z) {
        const float f = LAP(i + 1, j + 1, z) - LAP(i + 1, j, z);
        FLY(i, j, z) = f * (A(i + 2, j + 2, z) - A(i + 2, j + 1, z)) > 0 ? 0 : f;
      }
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      for (int64_t z = 0; z < k; ++z) {
        const int64_t at = (i * m + j) * k + z;
        out[at] = A(i + 2, j + 2, z) - c[at] * (FLX(i + 1, j, z) - FLX(i, j, z) +
                                                FLY(i, j + 1, z) - FLY(i, j, z));
      }
    }
  }
  free(lap);
  free(flx);
  free(fly);
  return 0;
}

KERNEL(thomas) {
  const float *a = IN(0), *b = IN(1), *c = IN(2), *d = IN(3);
  float* restrict x = OUT(4);
  const int64_t rows = DIM(1, 0) * DIM(1, 1), k = DIM(1, 2);
  float* restrict cp = malloc(rows * k * sizeof(float));
  for (int64_t z = 0; z < k; ++z) {
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t at = i * k + z;
      const float pivot = z == 0 ? b[at] : b[at] - a[at] * cp[at - 1];
      cp[at] = c[at] / pivot;
      x[at] = (z == 0 ? d[at] : d[at] - a[at] * x[at - 1]) / pivot;
    }
  }
  for (int64_t z = k - 2; z >= 0; --z)
    for (int64_t i = 0; i < rows; ++i) x[i * k + z] -= cp[i * k + z] * x[i * k + z + 1];
  free(cp);
  return 0;
}

KERNEL(mandelbrot) {
  const float *cr = IN(0), *ci = IN(1);
  float* restrict out = OUT(2);
  for (int64_t i = 0; i < DIM(0, 0) * DIM(0, 1); ++i) {
    float zr = 0, zi = 0;
    float steps = 0;
    for (int t = 0; t < 50; ++t) {
      if (zr * zr + zi * zi > 4) break;
      const float last = zr;
      zr = zr * zr - zi * zi + cr[i];
      zi = 2 * last * zi + ci[i];
      ++steps;
    }
    out[i] = steps;
  }
  return 0;
}

KERNEL(harris) {
  const float* a = IN(0);
  float* restrict out = OUT(1);
  const int64_t n = DIM(0, 0), m = DIM(0, 1);
  float* restrict dx = malloc((n - 2) * (m - 2) * sizeof(float));
  float* restrict dy = malloc((n - 2) * (m - 2) * sizeof(float));
  for (int64_t i = 0; i < n - 2; ++i) {
    for (int64_t j = 0; j < m - 2; ++j) {
      const float *top = a + i * m + j, *mid = top + m, *low = mid + m;
      dx[i * (m - 2) + j] = top[2] + 2 * mid[2] + low[2] - (top[0] + 2 * mid[0] + low[0]);
      dy[i * (m - 2) + j] = low[0] + 2 * low[1] + low[2] - (top[0] + 2 * top[1] + top[2]);
    }
  }
  for (int64_t i = 0; i < n - 4; ++i) {
    for (int64_t j = 0; j < m - 4; ++j) {
      float xx = 0, yy = 0, xy = 0;
      for (int64_t p = 0; p < 3; ++p) {
        for (int64_t q = 0; q < 3; ++q) {
          const int64_t at = (i + p) * (m - 2) + j + q;
          xx += dx[at] * dx[at];
          yy += dy[at] * dy[at];
          xy += dx[at] * dy[at];
        }
      }
      out[i * (m - 4) + j] = xx * yy - xy * xy - 0.05f * (xx + yy) * (xx + yy);
    }
  }
  free(dx);
  free(dy);
  return 0;
}

KERNEL(bilateral) {
  const float* a = IN(0);
  float* restrict out = OUT(1);
  const int64_t n = DIM(0, 0), m = DIM(0, 1);
  for (int64_t i = 0; i < n - 4; ++i) {
    for (int64_t j = 0; j < m - 4; ++j) {
      float total = 0, weights = 0;
      for (int64_t p = 0; p < 5; ++p) {
        for (int64_t q = 0; q < 5; ++q) {
          const float d = a[(i + p) * m + j + q] - a[(i + 2) * m + j + 2];
          const float far = (p - 2) * (p - 2) + (q - 2) * (q - 2);
          const float w = expf(-0.1f * far - 8 * d * d);
          total += w * a[(i + p) * m + j + q];
          weights += w;
        }
      }
      out[i * (m - 4) + j] = total / weights;
    }
  }
  return 0;
}

KERNEL(median) {
  const float* a = IN(0);
  float* restrict out = OUT(1);
  const int64_t n = DIM(0, 0), m = DIM(0, 1);
  for (int64_t i = 0; i < n - 2; ++i) {
    for (int64_t j = 0; j < m - 2; ++j) {
      float w[9];
      for (int p = 0; p < 3; ++p)
        for (int q = 0; q < 3; ++q) w[3 * p + q] = a[(i + p) * m + j + q];
      for (int p = 0; p < 5; ++p) {
        for (int q = p + 1; q < 9; ++q) {
          const float low = Least(w[p], w[q]);
          w[q] = Greatest(w[p], w[q]);
          w[p] = low;
        }
      }
      out[i * (m - 2) + j] = w[4];
    }
  }
  return 0;
}

KERNEL(dilate) {
  const float* a = IN(0);
  float* restrict out = OUT(1);
  const int64_t n = DIM(0, 0), m = DIM(0, 1);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      float greatest = a[i * m + j];
      for (int64_t p = -2; p < 3; ++p)
        for (int64_t q = -2; q < 3; ++q)
          if (0 <= i + p && i + p < n && 0 <= j + q && j + q < m)
            greatest = Greatest(greatest, a[(i + p) * m + j + q]);
      out[i * m + j] = greatest;
    }
  }
  return 0;
}

KERNEL(lstm) {
  const float *x = IN(0), *w = IN(1), *u = IN(2), *b = IN(3);
  float* restrict out = OUT(4);
  const int64_t steps = DIM(0, 0), width = DIM(0, 1), size = DIM(2, 0);
  float h[size], c[size], g[4 * size];
  memset(h, 0, sizeof h);
  memset(c, 0, sizeof c);
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t j = 0; j < 4 * size; ++j) {
      float s = b[j];
      for (int64_t d = 0; d < width; ++d) s += x[t * width + d] * w[d * 4 * size + j];
      for (int64_t d = 0; d < size; ++d) s += h[d] * u[d * 4 * size + j];
      g[j] = s;
    }
    for (int64_t j = 0; j < size; ++j) {
      const float keep = 1 / (1 + expf(-g[size + j])), add = 1 / (1 + expf(-g[j]));
      c[j] = keep * c[j] + add * tanhf(g[2 * size + j]);
      h[j] = tanhf(c[j]) / (1 + expf(-g[3 * size + j]));
      out[t * size + j] = h[j];
    }
  }
  return 0;
}

KERNEL(wkv) {
  const float *w = IN(0), *u = IN(1), *k = IN(2), *v = IN(3);
  float* restrict y = OUT(4);
  const int64_t steps = DIM(2, 0), channels = DIM(2, 1);
  for (int64_t c = 0; c < channels; ++c) {
    float a = 0, b = 0;
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t at = t * channels + c;
      const float e = expf(u[c] + k[at]);
      y[at] = (a + e * v[at]) / (b + e);
      a = expf(w[c]) * a + expf(k[at]) * v[at];
      b = expf(w[c]) * b + expf(k[at]);
    }
  }
  return 0;
}

KERNEL(attention) {
  const float *q = IN(0), *k = IN(1), *v = IN(2);
  float* restrict out = OUT(3);
  const int64_t heads = DIM(0, 0), steps = DIM(0, 1), size = DIM(0, 2);
  float s[steps];
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t head = h * steps * size;
    for (int64_t i = 0; i < steps; ++i) {
      float top = -1e30f, total = 0;
      for (int64_t j = 0; j <= i; ++j) {
        float dot = 0;
        for (int64_t d = 0; d < size; ++d) dot += q[head + i * size + d] * k[head + j * size + d];
        s[j] = dot / 8;
        top = Greatest(top, s[j]);
      }
      for (int64_t j = 0; j <= i; ++j) {
        s[j] = expf(s[j] - top);
        total += s[j];
      }
      for (int64_t d = 0; d < size; ++d) {
        float mean = 0;
        for (int64_t j = 0; j <= i; ++j) mean += s[j] * v[head + j * size + d];
        out[head + i * size + d] = mean / total;
      }
    }
  }
  return 0;
}

KERNEL(online_softmax) {
  const int64_t n = DIM(0, 0), m = DIM(0, 1);
  for (int64_t i = 0; i < n; ++i) {
    const float* x = IN(0) + i * m;
    float* restrict y = OUT(1) + i * m;
    float top = -1e30f, total = 0;
    for (int64_t j = 0; j < m; ++j) {
      const float larger = Greatest(top, x[j]);
      total = total * expf(top - larger) + expf(x[j] - larger);
      top = larger;
    }
    for (int64_t j = 0; j < m; ++j) y[j] = expf(x[j] - top) / total;
  }
  return 0;
}

KERNEL(rms_norm) {
  const float* g = IN(1);
  const int64_t n = DIM(0, 0), m = DIM(0, 1);
  for (int64_t i = 0; i < n; ++i) {
    const float* x = IN(0) + i * m;
    float* restrict y = OUT(2) + i * m;
    float s = 0;
    for (int64_t j = 0; j < m; ++j) s += x[j] * x[j];
    const float scale = 1 / sqrtf(s / m + 1e-6f);
    for (int64_t j = 0; j < m; ++j) y[j] = x[j] * scale * g[j];
  }
  return 0;
}
