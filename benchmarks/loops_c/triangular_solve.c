// Solves a x = y for lower triangular a: (n, n), (n, m) -> (n, m).
#include "aot.h"

static void Solve(const float* restrict a, const float* restrict y, float* restrict x, int64_t n,
                  int64_t m) {
  memcpy(x, y, n * m * sizeof(float));
  for (int64_t i = 0; i < n; ++i) {
    float* restrict row = x + i * m;
    for (int64_t k = 0; k < i; ++k) {
      const float factor = a[i * n + k];
#pragma GCC ivdep
      for (int64_t r = 0; r < m; ++r) row[r] -= factor * x[k * m + r];
    }
    for (int64_t r = 0; r < m; ++r) row[r] /= a[i * n + i];
  }
}

KERNEL(triangular_solve) {
  Solve(params[0], params[1], params[2], shapes[1][0], shapes[1][1]);
  return 0;
}
