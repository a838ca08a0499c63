// Random numbers: equal seeds give equal numbers.
#include <algorithm>
#include <numeric>
#include <random>

#include "inc/ms_cpu_kernel.h"
#include "random/utils.h"
#include "utils/kernel_util.h"

namespace {
const char* const kMultinomial = "Multinomial";
const char* const kRandperm = "Randperm";
const char* const kStandardNormal = "StandardNormal";

std::mt19937_64 Generator(const aicpu::CpuKernelContext& ctx) {
  const auto seed = [&](const char* name) {
    aicpu::AttrValue* const attr = ctx.GetAttr(name);
    return attr == nullptr ? uint64_t{0} : static_cast<uint64_t>(attr->GetInt());
  };
  return std::mt19937_64(aicpu::random::GetSeed(seed("seed"), seed("seed2")));
}
}  // namespace

namespace aicpu {

// Draws from the weights of each row of a matrix.
class MultinomialCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 1), "[%s] check failed.", kMultinomial);
    const auto dims = ctx.Input(0)->GetTensorShape()->GetDimSizes();
    CUST_KERNEL_CHECK_FALSE(ctx, dims.size() == 2, KERNEL_STATUS_PARAM_INVALID,
                            "[%s] needs a matrix of weights.", kMultinomial);
    auto generator = Generator(ctx);
    const float* weights = static_cast<float*>(ctx.Input(0)->GetData());
    auto* y = static_cast<int32_t*>(ctx.Output(0)->GetData());
    const int64_t draws = ctx.Output(0)->GetTensorShape()->GetDimSize(1);
    for (int64_t row = 0; row < dims[0]; ++row, weights += dims[1]) {
      CUST_KERNEL_CHECK_FALSE(ctx, *std::min_element(weights, weights + dims[1]) >= 0,
                              KERNEL_STATUS_PARAM_INVALID, "[%s] needs weights of at least 0.",
                              kMultinomial);
      std::discrete_distribution<int32_t> distribution(weights, weights + dims[1]);
      for (int64_t i = 0; i < draws; ++i) *y++ = distribution(generator);
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kMultinomial, MultinomialCpuKernel);

class RandpermCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 1), "[%s] check failed.", kRandperm);
    auto* y = static_cast<int32_t*>(ctx.Output(0)->GetData());
    const int64_t n = ctx.Output(0)->NumElements();
    std::iota(y, y + n, 0);
    auto generator = Generator(ctx);
    for (int64_t i = n - 1; i > 0; --i) {
      std::swap(y[i], y[std::uniform_int_distribution<int64_t>(0, i)(generator)]);
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kRandperm, RandpermCpuKernel);

// Keeps its distribution, which has a state, in a member, as some kernels do.
class StandardNormalCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 1), "[%s] check failed.", kStandardNormal);
    auto generator = Generator(ctx);
    auto* y = static_cast<float*>(ctx.Output(0)->GetData());
    std::generate_n(y, ctx.Output(0)->NumElements(), [&] { return distribution_(generator); });
    return KERNEL_STATUS_OK;
  }

 private:
  std::normal_distribution<float> distribution_;
};
REGISTER_MS_CPU_KERNEL(kStandardNormal, StandardNormalCpuKernel);

}  // namespace aicpu
