// row_normalise.cu: attributes, a workspace and kernel data. For float32 x of shape
// (rows, columns): y = scale * x / sqrt(mean(x^2, axis=1) + epsilon). One launch leaves the factor
// of each row in the workspace, a second one multiplies.
#include "custom_aot_extra.h"
#include "kernel_tools.h"

namespace {

struct Settings : public AotKernelData {
  float scale;
  float epsilon;
};

__global__ void FactorKernel(const float* x, float* factor, int64_t columns, float scale,
                             float epsilon) {
  __shared__ float sums[kThreads];
  const float* const row = x + int64_t{blockIdx.x} * columns;
  const int thread = static_cast<int>(threadIdx.x);
  float sum = 0.0f;
  for (int64_t j = thread; j < columns; j += kThreads) sum += row[j] * row[j];
  sums[thread] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) sums[thread] += sums[thread + half];
    __syncthreads();
  }
  if (thread == 0) {
    factor[blockIdx.x] = scale / sqrtf(sums[0] / static_cast<float>(columns) + epsilon);
  }
}

__global__ void ScaleKernel(const float* x, const float* factor, float* y, int64_t columns,
                            int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) y[i] = x[i] * factor[i / columns];
}

}  // namespace

extern "C" int RowNormaliseInit(int* ndims, int64_t** shapes, const char** dtypes,
                                AotExtra* extra) {
  if (ndims[0] != 2 || !HaveDtypes(dtypes, "float32", "float32")) return kBadParameters;
  auto* const settings = new Settings;
  settings->scale = extra->Attr<float>("scale");
  settings->epsilon = extra->Attr<float>("epsilon");
  extra->SetKernelData(settings);
  extra->SetWorkSpace({static_cast<size_t>(shapes[0][0]) * sizeof(float)});
  return 0;
}

extern "C" int RowNormalise(int nparam, void** params, int* ndims, int64_t** shapes,
                            const char** dtypes, void* stream, void* extra) {
  if (nparam != 3) return kBadParameters;
  const auto* const settings =
      static_cast<const Settings*>(static_cast<AotExtra*>(extra)->KernelData());
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  const auto* const x = static_cast<const float*>(params[0]);
  auto* const y = static_cast<float*>(params[1]);
  auto* const factor = static_cast<float*>(params[2]);
  const int64_t rows = shapes[0][0];
  const int64_t columns = shapes[0][1];
  const int64_t count = rows * columns;
  if (count == 0) return 0;
  FactorKernel<<<static_cast<unsigned>(rows), kThreads, 0, cuda_stream>>>(
      x, factor, columns, settings->scale, settings->epsilon);
  if (const int status = LaunchStatus()) return status;
  ScaleKernel<<<Blocks(count), kThreads, 0, cuda_stream>>>(x, factor, y, columns, count);
  return LaunchStatus();
}
