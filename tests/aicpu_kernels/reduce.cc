// Reductions and scans.
#include <algorithm>
#include <cmath>

#include "inc/ms_cpu_kernel.h"
#include "securec.h"
#include "utils/atomic_op.h"
#include "utils/eigen_tensor.h"
#include "utils/kernel_util.h"

namespace {
const char* const kArgMaxWithValue = "ArgMaxWithValue";
const char* const kBincount = "Bincount";
const char* const kCumSum = "CumSum";
const char* const kLogSumExp = "LogSumExp";
const char* const kTrace = "Trace";
}  // namespace

namespace aicpu {

// Outputs: index int32, value. Attributes: axis, keep_dims.
class ArgMaxWithValueCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 2, {"axis"}), "[%s] check params failed.",
                             kArgMaxWithValue);
    const auto shape = ctx.Input(0)->GetTensorShape();
    int64_t axis = ctx.GetAttr("axis")->GetInt();
    const int64_t rank = shape->GetDims();
    CUST_KERNEL_CHECK_FALSE(ctx, axis >= -rank && axis < rank, KERNEL_STATUS_PARAM_INVALID,
                            "[%s] axis must lie in [%lld, %lld), got %lld.", kArgMaxWithValue,
                            static_cast<long long>(-rank), static_cast<long long>(rank),
                            static_cast<long long>(axis));
    if (axis < 0) axis += rank;
    int64_t outer = 1, inner = 1;
    for (int32_t i = 0; i < rank; ++i) {
      if (i < axis) outer *= shape->GetDimSize(i);
      if (i > axis) inner *= shape->GetDimSize(i);
    }
    const int64_t length = shape->GetDimSize(static_cast<int32_t>(axis));
    switch (ctx.Input(0)->GetDataType()) {
      case DT_FLOAT:
        return Run<float>(ctx, outer, length, inner);
      case DT_FLOAT16:
        return Run<Eigen::half>(ctx, outer, length, inner);
      default:
        CUST_KERNEL_LOG_ERROR(ctx, "[%s] does not take [%s].", kArgMaxWithValue,
                              DTypeStr(ctx.Input(0)->GetDataType()).c_str());
        return KERNEL_STATUS_PARAM_INVALID;
    }
  }

 private:
  template <typename T>
  uint32_t Run(CpuKernelContext& ctx, int64_t outer, int64_t length, int64_t inner) {
    const T* x = static_cast<T*>(ctx.Input(0)->GetData());
    auto* index = static_cast<int32_t*>(ctx.Output(0)->GetData());
    T* value = static_cast<T*>(ctx.Output(1)->GetData());
    return CpuKernelUtils::ParallelFor(ctx, outer * inner, 1, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* column = x + i / inner * length * inner + i % inner;
        int32_t best = 0;
        for (int32_t k = 1; k < length; ++k) {
          if (column[k * inner] > column[best * inner]) best = k;
        }
        index[i] = best;
        value[i] = column[best * inner];
      }
    });
  }
};
REGISTER_MS_CPU_KERNEL(kArgMaxWithValue, ArgMaxWithValueCpuKernel);

// Inputs: values int32, weights float32. Entries that threads share are added to atomically.
class BincountCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    KERNEL_HANDLE_ERROR(NormalCheck(ctx, 2, 1), "[%s] check params failed.", kBincount);
    Tensor* bins = ctx.Output(0);
    KERNEL_CHECK_FALSE(
        memset_s(bins->GetData(), bins->GetDataSize(), 0, bins->GetDataSize()) == EOK,
        KERNEL_STATUS_INNER_ERROR, "[%s] memset_s failed.", kBincount);
    const auto* values = static_cast<int32_t*>(ctx.Input(0)->GetData());
    const auto* weights = static_cast<float*>(ctx.Input(1)->GetData());
    auto* sums = static_cast<float*>(bins->GetData());
    const int64_t count = bins->NumElements();
    return CpuKernelUtils::ParallelFor(ctx, ctx.Input(0)->NumElements(), 4,
                                       [=](int64_t begin, int64_t end) {
                                         for (int64_t i = begin; i < end; ++i) {
                                           if (values[i] >= 0 && values[i] < count)
                                             AtomicAdd(&sums[values[i]], weights[i]);
                                         }
                                       });
  }
};
REGISTER_MS_CPU_KERNEL(kBincount, BincountCpuKernel);

// Attributes: axis, exclusive, reverse.
class CumSumCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 1, {"axis", "exclusive", "reverse"}),
                             "[%s] check params failed.", kCumSum);
    Tensor* x = ctx.Input(0);
    CUST_KERNEL_CHECK_FALSE(ctx,
                            x->GetDataType() == DT_DOUBLE && x->GetTensorShape()->GetDims() == 2,
                            KERNEL_STATUS_PARAM_INVALID, "[%s] needs a float64 matrix.", kCumSum);
    const auto axis = static_cast<int>(ctx.GetAttr("axis")->GetInt());
    CUST_KERNEL_CHECK_FALSE(ctx, axis == 0 || axis == 1, KERNEL_STATUS_PARAM_INVALID,
                            "[%s] axis must be 0 or 1, got %d.", kCumSum, axis);
    const bool exclusive = ctx.GetAttr("exclusive")->GetBool();
    Eigen::array<bool, 2> flipped = {axis == 0, axis == 1};
    auto input = EigenTensor(x, x->GetData()).matrix<double>();
    auto output = EigenTensor(ctx.Output(0), ctx.Output(0)->GetData()).matrix<double>();
    if (ctx.GetAttr("reverse")->GetBool()) {
      output = input.reverse(flipped).cumsum(axis, exclusive).eval().reverse(flipped);
    } else {
      output = input.cumsum(axis, exclusive);
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kCumSum, CumSumCpuKernel);

// Over the last axis.
class LogSumExpCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 1), "[%s] check params failed.", kLogSumExp);
    Tensor* x = ctx.Input(0);
    CUST_KERNEL_CHECK_FALSE(ctx, x->GetDataType() == DT_FLOAT, KERNEL_STATUS_PARAM_INVALID,
                            "[%s] needs float32.", kLogSumExp);
    auto rows = EigenTensor(x, x->GetData()).flat_inner_dims<float>();
    auto* y = static_cast<float*>(ctx.Output(0)->GetData());
    const int64_t length = rows.dimension(1);
    return CpuKernelUtils::ParallelFor(ctx, rows.dimension(0), 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Eigen::Map<Eigen::ArrayXf> row(rows.data() + i * length, length);
        const float highest = row.maxCoeff();
        y[i] = highest + std::log((row - highest).exp().sum());
      }
    });
  }
};
REGISTER_MS_CPU_KERNEL(kLogSumExp, LogSumExpCpuKernel);

class TraceCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 1), "[%s] check params failed.", kTrace);
    const auto dims = ctx.Input(0)->GetTensorShape()->GetDimSizes();
    CUST_KERNEL_CHECK_FALSE(ctx, IsMatrix(dims), KERNEL_STATUS_PARAM_INVALID,
                            "[%s] dim of matrix input must be 2, got %zu.", kTrace, dims.size());
    const auto* x = static_cast<int64_t*>(ctx.Input(0)->GetData());
    int64_t sum = 0;
    for (int64_t i = 0; i < std::min(dims[0], dims[1]); ++i) sum += x[i * (dims[1] + 1)];
    static_cast<int64_t*>(ctx.Output(0)->GetData())[0] = sum;
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kTrace, TraceCpuKernel);

}  // namespace aicpu
