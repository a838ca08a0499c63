// add_aicpu.cc: float32 x + y as an AICPU kernel, over the loop of the aot kernel.
#include "add_loop.h"
#include "inc/ms_cpu_kernel.h"
#include "utils/kernel_util.h"

namespace {
const char* const kAdd = "Add";
}

namespace aicpu {

class AddCpuKernel : public CpuKernel {
 protected:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalMathCheck(ctx), "[%s] check failed.", kAdd);
    AddLoop(static_cast<const float*>(ctx.Input(0)->GetData()),
            static_cast<const float*>(ctx.Input(1)->GetData()),
            static_cast<float*>(ctx.Output(0)->GetData()), ctx.Output(0)->NumElements());
    return KERNEL_STATUS_OK;
  }
};

REGISTER_MS_CPU_KERNEL(kAdd, AddCpuKernel);

}  // namespace aicpu
