// Forces between n bodies: positions (n, 3), masses (n) -> (n, 3).
#include "aot.h"

static void NBody(const float* restrict p, const float* restrict q, float* restrict f, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    float fx = 0, fy = 0, fz = 0;
#pragma omp simd reduction(+ : fx, fy, fz)
    for (int64_t j = 0; j < n; ++j) {
      const float x = p[j * 3] - p[i * 3];
      const float y = p[j * 3 + 1] - p[i * 3 + 1];
      const float z = p[j * 3 + 2] - p[i * 3 + 2];
      const float r = x * x + y * y + z * z + 0.01f;
      const float w = q[j] / (r * sqrtf(r));
      fx += w * x;
      fy += w * y;
      fz += w * z;
    }
    f[i * 3] = fx;
    f[i * 3 + 1] = fy;
    f[i * 3 + 2] = fz;
  }
}

KERNEL(n_body) {
  NBody(params[0], params[1], params[2], shapes[1][0]);
  return 0;
}
