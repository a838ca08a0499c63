// mixed_axpy.cu: z = w * x + y with w of float16 and x, y, z of float32; computed in float32.
#include <cuda_fp16.h>

#include "kernel_tools.h"

namespace {

__global__ void MixedAxpyKernel(const __half* w, const float* x, const float* y, float* z,
                                int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) z[i] = __half2float(w[i]) * x[i] + y[i];
}

}  // namespace

extern "C" int MixedAxpy(int nparam, void** params, int* ndims, int64_t** shapes,
                         const char** dtypes, void* stream, void* extra) {
  if (nparam != 4 || !HaveDtypes(dtypes, "float16", "float32", "float32", "float32")) {
    return kBadParameters;
  }
  const int64_t count = Count(ndims[3], shapes[3]);
  if (count == 0) return 0;
  MixedAxpyKernel<<<Blocks(count), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<const __half*>(params[0]), static_cast<const float*>(params[1]),
      static_cast<const float*>(params[2]), static_cast<float*>(params[3]), count);
  return LaunchStatus();
}
