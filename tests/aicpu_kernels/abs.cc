#include <cmath>

#include "inc/ms_cpu_kernel.h"
#include "utils/kernel_util.h"
namespace {
const char* const kAbs = "Abs";
}
namespace aicpu {
class AbsCpuKernel : public CpuKernel {
 protected:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 1), "[%s] check failed.", kAbs);
    Tensor* x = ctx.Input(0);
    CUST_KERNEL_CHECK_FALSE(ctx, x->GetDataType() == DT_FLOAT, KERNEL_STATUS_PARAM_INVALID,
                            "[%s] wants DT_FLOAT, got %s.", kAbs,
                            DTypeStr(x->GetDataType()).c_str());
    const float* in = static_cast<float*>(x->GetData());
    float* out = static_cast<float*>(ctx.Output(0)->GetData());
    return CpuKernelUtils::ParallelFor(ctx, x->NumElements(), 1, [&](size_t a, size_t b) {
      for (size_t i = a; i < b; ++i) out[i] = std::abs(in[i]);
    });
  }
};
REGISTER_MS_CPU_KERNEL(kAbs, AbsCpuKernel);
}  // namespace aicpu
