// soft_sign.cc: x / (1 + |x|) as an AICPU kernel.
#include <cmath>

#include "inc/ms_cpu_kernel.h"
#include "utils/kernel_util.h"

namespace {
const char* const kSoftSign = "SoftSign";
}

namespace aicpu {

class SoftSignCpuKernel : public CpuKernel {
 protected:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 1), "[%s] check failed.", kSoftSign);
    const auto* x = static_cast<const float*>(ctx.Input(0)->GetData());
    auto* y = static_cast<float*>(ctx.Output(0)->GetData());
    constexpr int64_t kEntriesPerBlock = 65536;
    return CpuKernelUtils::ParallelFor(ctx, ctx.Input(0)->NumElements(), kEntriesPerBlock,
                                       [=](int64_t begin, int64_t end) {
                                         for (int64_t i = begin; i < end; ++i)
                                           y[i] = x[i] / (1 + std::abs(x[i]));
                                       });
  }
};

REGISTER_MS_CPU_KERNEL(kSoftSign, SoftSignCpuKernel);

}  // namespace aicpu
