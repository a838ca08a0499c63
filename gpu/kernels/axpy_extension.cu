// axpy_extension.cu: a module of CustomOpBuilder. axpy(a, x, y) = a * x + y for float32 x and y of
// one shape; one launch leaves a * x in the workspace, a second one adds.
#include <cuda_runtime.h>

#include "ms_extension/api.h"

namespace {

constexpr int kThreads = 256;

__global__ void ScaleKernel(float a, const float* x, float* scaled, size_t count) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) scaled[i] = a * x[i];
}

__global__ void AddKernel(const float* scaled, const float* y, float* out, size_t count) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) out[i] = scaled[i] + y[i];
}

class AxpyRunner : public ms::pynative::PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;

  void LaunchKernel() override {
    const size_t count = inputs()[0].numel();
    if (!count) return;
    const auto blocks = static_cast<unsigned>((count + kThreads - 1) / kThreads);
    const auto on_stream = static_cast<cudaStream_t>(stream());
    float* const scaled = static_cast<float*>(workspace_ptr());
    ScaleKernel<<<blocks, kThreads, 0, on_stream>>>(a, inputs()[0].data_ptr<float>(), scaled,
                                                    count);
    AddKernel<<<blocks, kThreads, 0, on_stream>>>(scaled, inputs()[1].data_ptr<float>(),
                                                  outputs()[0].data_ptr<float>(), count);
  }

  size_t CalcWorkspace() override { return inputs()[0].numel() * sizeof(float); }

  float a = 0.0f;
};

ms::Tensor Axpy(float a, const ms::Tensor& x, const ms::Tensor& y) {
  ms::Tensor out(x.data_type(), x.shape());
  auto runner = std::make_shared<AxpyRunner>("Axpy");
  runner->a = a;
  runner->Run({x, y}, {out});
  return out;
}

}  // namespace

PYBIND11_MODULE(MS_EXTENSION_NAME, m) { m.def("axpy", &Axpy); }
