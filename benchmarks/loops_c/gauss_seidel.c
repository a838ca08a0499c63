// Four sweeps of Gauss-Seidel for the Laplacian: (n, m) -> (n, m).
#include "aot.h"

static void Sweep(float* b, int64_t n, int64_t m) {
  for (int64_t i = 1; i < n - 1; ++i) {
    const float* const above = b + (i - 1) * m;
    const float* const below = b + (i + 1) * m;
    float* const row = b + i * m;
    float left = row[0];
    for (int64_t j = 1; j < m - 1; ++j) {
      row[j] = left = 0.25f * (((above[j] + below[j]) + left) + row[j + 1]);
    }
  }
}

KERNEL(gauss_seidel) {
  const int64_t n = shapes[0][0], m = shapes[0][1];
  memcpy(params[1], params[0], n * m * sizeof(float));
  for (int t = 0; t < 4; ++t) Sweep(params[1], n, m);
  return 0;
}
