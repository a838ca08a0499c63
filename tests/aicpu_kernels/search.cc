// Sorting and searching; Unique and NonZero fill as much of their outputs as there is.
#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "cpu_kernel.h"
#include "status.h"
#include "utils/kernel_util.h"

namespace {
const char* const kBucketize = "Bucketize";
const char* const kListDiff = "ListDiff";
const char* const kLowerBound = "LowerBound";
const char* const kNonZero = "NonZero";
const char* const kTopK = "TopK";
const char* const kUnique = "Unique";
}  // namespace

namespace aicpu {

// Attribute: boundaries, a sorted list of float.
class BucketizeCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    KERNEL_HANDLE_ERROR(NormalCheck(ctx, 1, 1, {"boundaries"}), "[%s] check failed.", kBucketize);
    const std::vector<float> bounds = ctx.GetAttr("boundaries")->GetListFloat();
    KERNEL_CHECK_FALSE(std::is_sorted(bounds.begin(), bounds.end()), KERNEL_STATUS_PARAM_INVALID,
                       "[%s] expected sorted boundaries.", kBucketize);
    const auto* x = static_cast<float*>(ctx.Input(0)->GetData());
    auto* y = static_cast<int32_t*>(ctx.Output(0)->GetData());
    for (int64_t i = 0; i < ctx.Input(0)->NumElements(); ++i) {
      y[i] = static_cast<int32_t>(std::upper_bound(bounds.begin(), bounds.end(), x[i]) -
                                  bounds.begin());
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kBucketize, BucketizeCpuKernel);

// Outputs: the entries of the first input that the second one lacks, and where they are, as
// attribute out_idx says: int32 or int64.
class ListDiffCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 2, 2, {"out_idx"}), "[%s] check failed.",
                             kListDiff);
    const DataType type = ctx.GetAttr("out_idx")->GetDataType();
    CUST_KERNEL_CHECK_FALSE(ctx, type == ctx.Output(1)->GetDataType(), KERNEL_STATUS_PARAM_INVALID,
                            "[%s] out_idx is %s, but output 1 is %s.", kListDiff,
                            DTypeStr(type).c_str(), DTypeStr(ctx.Output(1)->GetDataType()).c_str());
    return type == DT_INT64 ? Compare<int64_t>(ctx) : Compare<int32_t>(ctx);
  }

 private:
  template <typename Index>
  uint32_t Compare(CpuKernelContext& ctx) {
    const auto* x = static_cast<float*>(ctx.Input(0)->GetData());
    const auto* known = static_cast<float*>(ctx.Input(1)->GetData());
    const std::unordered_set<float> others(known, known + ctx.Input(1)->NumElements());
    auto* y = static_cast<float*>(ctx.Output(0)->GetData());
    auto* places = static_cast<Index*>(ctx.Output(1)->GetData());
    int64_t found = 0;
    for (int64_t i = 0; i < ctx.Input(0)->NumElements(); ++i) {
      if (others.count(x[i]) != 0) continue;
      y[found] = x[i];
      places[found++] = static_cast<Index>(i);
    }
    for (uint32_t output = 0; output < 2; ++output) {
      auto shape = ctx.Output(output)->GetTensorShape();
      shape->SetDimSizes({found});
      ctx.Output(output)->SetTensorShape(shape.get());
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kListDiff, ListDiffCpuKernel);

// Per row: where the values would go into the sorted row.
class LowerBoundCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalMathCheck(ctx), "[%s] check failed.", kLowerBound);
    auto sorted_shape = ctx.Input(0)->GetTensorShape();
    auto values_shape = ctx.Input(1)->GetTensorShape();
    CUST_KERNEL_CHECK_FALSE(ctx,
                            sorted_shape->GetDims() == 2 && values_shape->GetDims() == 2 &&
                                sorted_shape->GetDimSize(0) == values_shape->GetDimSize(0),
                            KERNEL_STATUS_PARAM_INVALID,
                            "[%s] needs two matrices of equally many rows.", kLowerBound);
    const auto* sorted = static_cast<float*>(ctx.Input(0)->GetData());
    const auto* values = static_cast<float*>(ctx.Input(1)->GetData());
    auto* y = static_cast<int32_t*>(ctx.Output(0)->GetData());
    const int64_t length = sorted_shape->GetDimSize(1), width = values_shape->GetDimSize(1);
    return CpuKernelUtils::ParallelFor(
        ctx, ctx.Input(1)->NumElements(), 1, [=](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) {
            const float* row = sorted + static_cast<int64_t>(i) / width * length;
            y[i] = static_cast<int32_t>(std::lower_bound(row, row + length, values[i]) - row);
          }
        });
  }
};
REGISTER_MS_CPU_KERNEL(kLowerBound, LowerBoundCpuKernel);

// The indices of entries other than 0, a row each; int32.
class NonZeroCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 1), "[%s] check failed.", kNonZero);
    const auto dims = ctx.Input(0)->GetTensorShape()->GetDimSizes();
    const auto* x = static_cast<float*>(ctx.Input(0)->GetData());
    auto* y = static_cast<int32_t*>(ctx.Output(0)->GetData());
    int64_t found = 0;
    for (int64_t i = 0; i < ctx.Input(0)->NumElements(); ++i) {
      if (x[i] == 0) continue;
      int64_t rest = i;
      for (size_t axis = dims.size(); axis-- > 0; rest /= dims[axis]) {
        y[found * static_cast<int64_t>(dims.size()) + static_cast<int64_t>(axis)] =
            static_cast<int32_t>(rest % dims[axis]);
      }
      ++found;
    }
    ctx.Output(0)->GetTensorShape()->SetDimSizes({found, static_cast<int64_t>(dims.size())});
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kNonZero, NonZeroCpuKernel);

// Outputs: values, indices int32. Attributes: k, sorted.
class TopKCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 2, {"k"}), "[%s] check failed.", kTopK);
    const auto shape = ctx.Input(0)->GetTensorShape();
    const int64_t length = shape->GetDimSize(shape->GetDims() - 1);
    const int64_t k = ctx.GetAttr("k")->GetInt();
    CUST_KERNEL_CHECK_FALSE(ctx, k > 0 && k <= length, KERNEL_STATUS_PARAM_INVALID,
                            "[%s] k must lie in [1, %lld], got %lld.", kTopK,
                            static_cast<long long>(length), static_cast<long long>(k));
    const auto* x = static_cast<float*>(ctx.Input(0)->GetData());
    auto* values = static_cast<float*>(ctx.Output(0)->GetData());
    auto* indices = static_cast<int32_t*>(ctx.Output(1)->GetData());
    const int64_t rows = ctx.Input(0)->NumElements() / length;
    return CpuKernelUtils::ParallelFor(ctx, rows, 1, [=](int64_t begin, int64_t end) {
      std::vector<int32_t> order(static_cast<size_t>(length));
      for (int64_t row = begin; row < end; ++row) {
        const float* from = x + row * length;
        std::iota(order.begin(), order.end(), 0);
        std::partial_sort(order.begin(), order.begin() + k, order.end(), [=](int a, int b) {
          return from[a] > from[b] || (from[a] == from[b] && a < b);
        });
        for (int64_t i = 0; i < k; ++i) {
          indices[row * k + i] = order[static_cast<size_t>(i)];
          values[row * k + i] = from[order[static_cast<size_t>(i)]];
        }
      }
    });
  }
};
REGISTER_MS_CPU_KERNEL(kTopK, TopKCpuKernel);

// Outputs: the different values in the order of their first place; for each entry which it is.
class UniqueCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 2), "[%s] check failed.", kUnique);
    const auto* x = static_cast<int32_t*>(ctx.Input(0)->GetData());
    auto* y = static_cast<int32_t*>(ctx.Output(0)->GetData());
    auto* index = static_cast<int32_t*>(ctx.Output(1)->GetData());
    std::unordered_map<int32_t, int32_t> known;
    for (int64_t i = 0; i < ctx.Input(0)->NumElements(); ++i) {
      const auto [place, is_new] = known.emplace(x[i], static_cast<int32_t>(known.size()));
      if (is_new) y[place->second] = x[i];
      index[i] = place->second;
    }
    auto shape = ctx.Output(0)->GetTensorShape();
    shape->SetDimSizes({static_cast<int64_t>(known.size())});
    ctx.Output(0)->SetTensorShape(shape.get());
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kUnique, UniqueCpuKernel);

}  // namespace aicpu
