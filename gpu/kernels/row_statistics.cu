// row_statistics.cu: three outputs of two dtypes. For float32 x of shape (rows, columns): the mean
// and the maximum of each row, float32, and the position of the maximum, int32, first if tied.
#include <cfloat>

#include "kernel_tools.h"

namespace {

__global__ void RowStatisticsKernel(const float* x, float* mean, float* maximum, int32_t* position,
                                    int64_t columns) {
  __shared__ float sums[kThreads];
  __shared__ float maxima[kThreads];
  __shared__ int32_t positions[kThreads];
  const float* const row = x + int64_t{blockIdx.x} * columns;
  const int thread = static_cast<int>(threadIdx.x);
  float sum = 0.0f;
  float best = -FLT_MAX;
  int32_t best_position = INT32_MAX;
  for (int64_t j = thread; j < columns; j += kThreads) {
    sum += row[j];
    if (best_position == INT32_MAX || row[j] > best) {
      best = row[j];
      best_position = static_cast<int32_t>(j);
    }
  }
  sums[thread] = sum;
  maxima[thread] = best;
  positions[thread] = best_position;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) {
      const int other = thread + half;
      sums[thread] += sums[other];
      const bool is_tied = maxima[other] == maxima[thread];
      if (maxima[other] > maxima[thread] || (is_tied && positions[other] < positions[thread])) {
        maxima[thread] = maxima[other];
        positions[thread] = positions[other];
      }
    }
    __syncthreads();
  }
  if (thread == 0) {
    mean[blockIdx.x] = sums[0] / static_cast<float>(columns);
    maximum[blockIdx.x] = maxima[0];
    position[blockIdx.x] = positions[0];
  }
}

}  // namespace

extern "C" int RowStatistics(int nparam, void** params, int* ndims, int64_t** shapes,
                             const char** dtypes, void* stream, void* extra) {
  if (nparam != 4 || ndims[0] != 2 || shapes[0][1] == 0 ||
      !HaveDtypes(dtypes, "float32", "float32", "float32", "int32")) {
    return kBadParameters;
  }
  const int64_t rows = shapes[0][0];
  if (rows == 0) return 0;
  RowStatisticsKernel<<<static_cast<unsigned>(rows), kThreads, 0,
                        static_cast<cudaStream_t>(stream)>>>(
      static_cast<const float*>(params[0]), static_cast<float*>(params[1]),
      static_cast<float*>(params[2]), static_cast<int32_t*>(params[3]), shapes[0][1]);
  return LaunchStatus();
}
