// gather.cu: rows of a float32 table by int64 index; an index outside the table gives a row of 0.
#include "kernel_tools.h"

namespace {

__global__ void GatherKernel(const float* table, const int64_t* index, float* out, int64_t rows,
                             int64_t columns, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int64_t row = index[i / columns];
  const bool is_inside = row >= 0 && row < rows;
  out[i] = is_inside ? table[row * columns + i % columns] : 0.0f;
}

}  // namespace

extern "C" int Gather(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                      void* stream, void* extra) {
  if (nparam != 3 || ndims[0] != 2 || ndims[1] != 1 ||
      !HaveDtypes(dtypes, "float32", "int64", "float32")) {
    return kBadParameters;
  }
  const int64_t count = Count(ndims[2], shapes[2]);
  if (count == 0) return 0;
  GatherKernel<<<Blocks(count), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<const float*>(params[0]), static_cast<const int64_t*>(params[1]),
      static_cast<float*>(params[2]), shapes[0][0], shapes[0][1], count);
  return LaunchStatus();
}
