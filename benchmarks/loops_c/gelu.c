// Gelu by its tanh form, elementwise.
#include "aot.h"

static void Gelu(const float* restrict a, float* restrict b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const float x = a[i];
    b[i] = 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
  }
}

KERNEL(gelu) {
  int64_t n = 1;
  for (int d = 0; d < ndims[0]; ++d) n *= shapes[0][d];
  Gelu(params[0], params[1], n);
  return 0;
}
