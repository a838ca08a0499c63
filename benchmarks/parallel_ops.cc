// parallel_ops.cc: a long computation on each element, by one thread and by all.
#include <cstdint>

#include "msops_parallel_for.h"

// The logistic map, 64 times: bound by computing, not by memory.
static void Map(const float* x, float* y, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    float value = x[i];
    for (int step = 0; step < 64; ++step) value = 3.7f * value * (1.0f - value);
    y[i] = value;
  }
}

extern "C" int OneThread(int, void** params, int*, int64_t** shapes, const char**, void*, void*) {
  Map(static_cast<const float*>(params[0]), static_cast<float*>(params[1]), 0, shapes[0][0]);
  return 0;
}

extern "C" int AllThreads(int, void** params, int*, int64_t** shapes, const char**, void*,
                          void* extra) {
  const auto* x = static_cast<const float*>(params[0]);
  auto* y = static_cast<float*>(params[1]);
  msops::ParallelFor(extra, shapes[0][0], 1024,
                     [&](int64_t begin, int64_t end) { Map(x, y, begin, end); });
  return 0;
}
