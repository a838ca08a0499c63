// z[i, j] = x[i, j] * w[j], for tests of programs on several devices.
#include "cpu_kernel.h"

namespace {
const char* kScaleRows = "ScaleRows";
}  // namespace

namespace aicpu {

class ScaleRowsCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    const int64_t rows = ctx.Input(0)->GetTensorShape()->GetDimSize(0);
    const int64_t columns = ctx.Input(1)->GetTensorShape()->GetDimSize(0);
    if (ctx.Input(0)->NumElements() != rows * columns) return KERNEL_STATUS_PARAM_INVALID;
    const auto* x = static_cast<const float*>(ctx.Input(0)->GetData());
    const auto* w = static_cast<const float*>(ctx.Input(1)->GetData());
    auto* z = static_cast<float*>(ctx.Output(0)->GetData());
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) z[i * columns + j] = x[i * columns + j] * w[j];
    }
    return KERNEL_STATUS_OK;
  }
};

REGISTER_CPU_KERNEL(kScaleRows, ScaleRowsCpuKernel);

}  // namespace aicpu
