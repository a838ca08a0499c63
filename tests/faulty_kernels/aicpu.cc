// AICPU kernels for msops.testing.opcheck: y = x + 1, right and with one fault each.
#include <atomic>
#include <cstdlib>

#include "inc/ms_cpu_kernel.h"
#include "utils/kernel_util.h"

namespace {
const char* const kAicpuRight = "AicpuRight";
const char* const kAicpuBeyond = "AicpuBeyond";
const char* const kAicpuWritesInput = "AicpuWritesInput";
const char* const kAicpuNull = "AicpuNull";
const char* const kAicpuAbort = "AicpuAbort";
const char* const kAicpuExit = "AicpuExit";
const char* const kAicpuEndless = "AicpuEndless";
}  // namespace

namespace aicpu {

class AddOne : public CpuKernel {
 protected:
  uint32_t Add(CpuKernelContext& ctx, int64_t more) {
    if (ctx.Input(0)->GetDataType() != DT_FLOAT) return KERNEL_STATUS_PARAM_INVALID;
    const auto* x = static_cast<float*>(ctx.Input(0)->GetData());
    auto* y = static_cast<float*>(ctx.Output(0)->GetData());
    const int64_t count = ctx.Input(0)->NumElements();
    for (int64_t i = 0; i < count; ++i) y[i] = x[i] + 1;
    for (int64_t i = count; i < count + more; ++i) y[i] = 1;
    return KERNEL_STATUS_OK;
  }
};

class AicpuRightCpuKernel : public AddOne {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override { return Add(ctx, 0); }
};
REGISTER_MS_CPU_KERNEL(kAicpuRight, AicpuRightCpuKernel);

class AicpuBeyondCpuKernel : public AddOne {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override { return Add(ctx, 1); }
};
REGISTER_MS_CPU_KERNEL(kAicpuBeyond, AicpuBeyondCpuKernel);

class AicpuWritesInputCpuKernel : public AddOne {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    const uint32_t status = Add(ctx, 0);
    if (status == KERNEL_STATUS_OK) static_cast<float*>(ctx.Input(0)->GetData())[1] = 0;
    return status;
  }
};
REGISTER_MS_CPU_KERNEL(kAicpuWritesInput, AicpuWritesInputCpuKernel);

class AicpuNullCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    volatile float* volatile nowhere = nullptr;
    *nowhere = 1;
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kAicpuNull, AicpuNullCpuKernel);

class AicpuAbortCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext&) override { std::abort(); }
};
REGISTER_MS_CPU_KERNEL(kAicpuAbort, AicpuAbortCpuKernel);

class AicpuExitCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext&) override { std::_Exit(3); }
};
REGISTER_MS_CPU_KERNEL(kAicpuExit, AicpuExitCpuKernel);

class AicpuEndlessCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext&) override {
    for (std::atomic<bool> is_done{false}; !is_done;) {
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kAicpuEndless, AicpuEndlessCpuKernel);

}  // namespace aicpu
