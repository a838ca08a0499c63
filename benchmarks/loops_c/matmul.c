// Matrix product: (n, m), (m, l) -> (n, l).
#include "aot.h"

static void Matmul(const float* restrict a, const float* restrict b, float* restrict c, int64_t n,
                   int64_t m, int64_t l) {
  memset(c, 0, n * l * sizeof(float));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < m; ++k) {
      const float factor = a[i * m + k];
      for (int64_t j = 0; j < l; ++j) c[i * l + j] += factor * b[k * l + j];
    }
  }
}

KERNEL(matmul) {
  Matmul(params[0], params[1], params[2], shapes[0][0], shapes[0][1], shapes[1][1]);
  return 0;
}
