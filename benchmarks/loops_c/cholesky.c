// Cholesky decomposition by rows of the lower triangle: (n, n) -> (n, n).
#include "aot.h"

static float Dot(const float* restrict x, const float* restrict y, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t k = 0; k < n; ++k) sum += x[k] * y[k];
  return sum;
}

static void Cholesky(const float* restrict a, float* restrict b, int64_t n) {
  memset(b, 0, n * n * sizeof(float));
  for (int64_t j = 0; j < n; ++j) {
    b[j * n + j] = sqrtf(a[j * n + j] - Dot(b + j * n, b + j * n, j));
    for (int64_t i = j + 1; i < n; ++i) {
      b[i * n + j] = (a[i * n + j] - Dot(b + i * n, b + j * n, j)) / b[j * n + j];
    }
  }
}

KERNEL(cholesky) {
  Cholesky(params[0], params[1], shapes[0][0]);
  return 0;
}
