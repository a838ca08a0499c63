// LU decomposition without pivoting, right-looking: (n, n) -> (n, n).
#include "aot.h"

static void Lu(float* restrict b, int64_t n) {
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t i = k + 1; i < n; ++i) {
      const float factor = b[i * n + k] / b[k * n + k];
      b[i * n + k] = factor;
      for (int64_t j = k + 1; j < n; ++j) b[i * n + j] -= factor * b[k * n + j];
    }
  }
}

KERNEL(lu) {
  const int64_t n = shapes[0][0];
  memcpy(params[1], params[0], n * n * sizeof(float));
  Lu(params[1], n);
  return 0;
}
