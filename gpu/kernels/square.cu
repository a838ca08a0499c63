// square.cu: y = x^2 for float32, and its gradient dx = 2 x dy.
#include "kernel_tools.h"

namespace {

__global__ void SquareKernel(const float* x, float* y, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) y[i] = x[i] * x[i];
}

__global__ void SquareGradKernel(const float* x, const float* dy, float* dx, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) dx[i] = 2.0f * x[i] * dy[i];
}

}  // namespace

extern "C" int Square(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                      void* stream, void* extra) {
  if (nparam != 2 || !HaveDtypes(dtypes, "float32", "float32")) return kBadParameters;
  const int64_t count = Count(ndims[0], shapes[0]);
  if (count == 0) return 0;
  SquareKernel<<<Blocks(count), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<const float*>(params[0]), static_cast<float*>(params[1]), count);
  return LaunchStatus();
}

extern "C" int SquareGrad(int nparam, void** params, int* ndims, int64_t** shapes,
                          const char** dtypes, void* stream, void* extra) {
  if (nparam != 3 || !HaveDtypes(dtypes, "float32", "float32", "float32")) return kBadParameters;
  const int64_t count = Count(ndims[0], shapes[0]);
  if (count == 0) return 0;
  SquareGradKernel<<<Blocks(count), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<const float*>(params[0]), static_cast<const float*>(params[1]),
      static_cast<float*>(params[2]), count);
  return LaunchStatus();
}
