// Running sums of each row: (n, m) -> (n, m).
#include "aot.h"

KERNEL(cumulative_sum) {
  const int64_t n = shapes[0][0], m = shapes[0][1];
  const float* restrict a = params[0];
  float* restrict b = params[1];
  for (int64_t i = 0; i < n; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < m; ++j) b[i * m + j] = sum += a[i * m + j];
  }
  return 0;
}
