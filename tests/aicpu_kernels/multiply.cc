// A product of two inputs that are broadcast against each other. It needs little of Eigen, and so
// builds in little time: the tests of all kinds of ops use it.
#include <vector>

#include "cpu_kernel.h"
#include "utils/broadcast_iterator.h"
#include "utils/kernel_util.h"

namespace {
const char* kMul = "Mul";
}  // namespace

namespace aicpu {

// By an iterator.
class MulCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalMathCheck(ctx), "[%s] check params failed.", kMul);
    CUST_KERNEL_CHECK_FALSE(ctx, ctx.Input(0)->GetDataType() == DT_FLOAT,
                            KERNEL_STATUS_PARAM_INVALID, "[%s] needs float32.", kMul);
    const auto x_shape = ctx.Input(0)->GetTensorShape()->GetDimSizes();
    const auto y_shape = ctx.Input(1)->GetTensorShape()->GetDimSizes();
    std::vector<int64_t> shape;
    CUST_KERNEL_CHECK_FALSE(ctx, GetBroadcastShape(x_shape, y_shape, shape) == KERNEL_STATUS_OK,
                            KERNEL_STATUS_PARAM_INVALID, "[%s] shapes do not match.", kMul);
    const BroadcastIterator base(x_shape, y_shape, shape);
    const float* x = static_cast<float*>(ctx.Input(0)->GetData());
    const float* y = static_cast<float*>(ctx.Input(1)->GetData());
    float* z = static_cast<float*>(ctx.Output(0)->GetData());
    return CpuKernelUtils::ParallelFor(
        ctx, ctx.Output(0)->NumElements(), 8, [&](size_t begin, size_t end) {
          BroadcastIterator iterator = base;
          iterator.SetPos(begin);
          for (size_t i = begin; i < end; ++i, iterator.GenNextPos()) {
            z[i] = x[iterator.GetInputPosA()] * y[iterator.GetInputPosB()];
          }
        });
  }
};
REGISTER_MS_CPU_KERNEL(kMul, MulCpuKernel);

}  // namespace aicpu
