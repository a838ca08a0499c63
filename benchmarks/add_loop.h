// add_loop.h: the work of both kernels, so that a comparison sees only what is around it.
#ifndef BENCHMARKS_ADD_LOOP_H_
#define BENCHMARKS_ADD_LOOP_H_

#include <cstdint>

inline void AddLoop(const float* x, const float* y, float* sum, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] = x[i] + y[i];
}

#endif  // BENCHMARKS_ADD_LOOP_H_
