// Moving entries: gather, scatter, diagonals, and lists of inputs.
#include <numeric>

#include "inc/cpu_context.h"
#include "inc/ms_cpu_kernel.h"
#include "securec/include/securec.h"
#include "utils/kernel_util.h"

namespace {
const char* const kAddN = "AddN";
const char* const kConcat = "Concat";
const char* const kDiagPart = "DiagPart";
const char* const kGatherNd = "GatherNd";
const char* const kScatterNd = "ScatterNd";
}  // namespace

namespace aicpu {

class AddNCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, kDynamicInput, 1), "[%s] check failed.", kAddN);
    const int64_t count = ctx.Output(0)->NumElements();
    float* sum = static_cast<float*>(ctx.Output(0)->GetData());
    std::fill(sum, sum + count, 0.0F);
    for (uint32_t input = 0; input < ctx.GetInputsSize(); ++input) {
      CUST_KERNEL_CHECK_FALSE(
          ctx, ctx.Input(input)->NumElements() == count, KERNEL_STATUS_PARAM_INVALID,
          "[%s] input %u has %lld entries, input 0 has %lld.", kAddN, input,
          static_cast<long long>(ctx.Input(input)->NumElements()), static_cast<long long>(count));
      const float* x = static_cast<float*>(ctx.Input(input)->GetData());
      for (int64_t i = 0; i < count; ++i) sum[i] += x[i];
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kAddN, AddNCpuKernel);

// Along attribute axis; entries of any dtype.
class ConcatCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    KERNEL_HANDLE_ERROR(NormalCheck(ctx, kDynamicInput, 1, {"axis"}), "[%s] check failed.", kConcat)
    const int64_t axis = ctx.GetAttr("axis")->GetInt();
    const auto dims = ctx.Output(0)->GetTensorShape()->GetDimSizes();
    KERNEL_CHECK_FALSE(axis >= 0 && axis < static_cast<int64_t>(dims.size()),
                       KERNEL_STATUS_PARAM_INVALID, "[%s] has no axis %lld.", kConcat,
                       static_cast<long long>(axis))
    const auto outer =
        std::accumulate(dims.begin(), dims.begin() + axis, int64_t{1}, std::multiplies<int64_t>());
    auto* to = static_cast<uint8_t*>(ctx.Output(0)->GetData());
    size_t room = ctx.Output(0)->GetDataSize();
    for (int64_t row = 0; row < outer; ++row) {
      for (uint32_t input = 0; input < ctx.GetInputsSize(); ++input) {
        const size_t bytes = ctx.Input(input)->GetDataSize() / static_cast<size_t>(outer);
        if (bytes == 0) continue;
        const auto* from =
            static_cast<uint8_t*>(ctx.Input(input)->GetData()) + static_cast<size_t>(row) * bytes;
        KERNEL_CHECK_FALSE(memcpy_s(to, room, from, bytes) == EOK, KERNEL_STATUS_INNER_ERROR,
                           "[%s] memcpy_s failed.", kConcat)
        to += bytes;
        room -= bytes;
      }
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kConcat, ConcatCpuKernel);

class DiagPartCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 1), "[%s] check failed.", kDiagPart);
    const auto dims = ctx.Input(0)->GetTensorShape()->GetDimSizes();
    CUST_KERNEL_CHECK_FALSE(ctx, IsSquareMatrix(dims), KERNEL_STATUS_PARAM_INVALID,
                            "[%s] needs a square matrix, got shape [%s].", kDiagPart,
                            VectorToString(dims).c_str());
    const int size = GetSizeByDataType(ctx.Input(0)->GetDataType());
    for (int64_t i = 0; i < dims[0]; ++i) {
      (void)memcpy_s(static_cast<char*>(ctx.Output(0)->GetData()) + i * size, size,
                     static_cast<char*>(ctx.Input(0)->GetData()) + i * (dims[0] + 1) * size, size);
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kDiagPart, DiagPartCpuKernel);

// Rows of float32; an index out of range is an error.
class GatherNdCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 2, 1), "[%s] check failed.", kGatherNd);
    const auto dims = ctx.Input(0)->GetTensorShape()->GetDimSizes();
    const auto index_shape = ctx.Input(1)->GetTensorShape();
    const int64_t depth = index_shape->GetDimSize(index_shape->GetDims() - 1);
    CUST_KERNEL_CHECK_FALSE(ctx, depth > 0 && depth <= static_cast<int64_t>(dims.size()),
                            KERNEL_STATUS_PARAM_INVALID, "[%s] cannot index with %lld numbers.",
                            kGatherNd, static_cast<long long>(depth));
    int64_t slice = 1;
    for (size_t i = static_cast<size_t>(depth); i < dims.size(); ++i) slice *= dims[i];
    const auto* x = static_cast<float*>(ctx.Input(0)->GetData());
    const auto* indices = static_cast<int32_t*>(ctx.Input(1)->GetData());
    auto* y = static_cast<float*>(ctx.Output(0)->GetData());
    for (int64_t row = 0; row < ctx.Input(1)->NumElements() / depth; ++row) {
      int64_t position = 0;
      for (int64_t i = 0; i < depth; ++i) {
        const int32_t index = indices[row * depth + i];
        CUST_KERNEL_CHECK_FALSE(
            ctx, index >= 0 && index < dims[static_cast<size_t>(i)], KERNEL_STATUS_PARAM_INVALID,
            "[%s] index %d of row %lld is out of range [0, %lld).", kGatherNd, index,
            static_cast<long long>(row), static_cast<long long>(dims[static_cast<size_t>(i)]));
        position = position * dims[static_cast<size_t>(i)] + index;
      }
      std::copy_n(x + position * slice, slice, y + row * slice);
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kGatherNd, GatherNdCpuKernel);

// Inputs: indices int32 [n, 1], updates [n, m]. Rows of equal index add up.
class ScatterNdCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 2, 1), "[%s] check failed.", kScatterNd);
    const auto* indices = static_cast<int32_t*>(ctx.Input(0)->GetData());
    const auto* updates = static_cast<float*>(ctx.Input(1)->GetData());
    auto* y = static_cast<float*>(ctx.Output(0)->GetData());
    const auto shape = ctx.Output(0)->GetTensorShape();
    const int64_t rows = shape->GetDimSize(0), width = shape->GetDimSize(1);
    std::fill_n(y, ctx.Output(0)->NumElements(), 0.0F);
    for (int64_t i = 0; i < ctx.Input(0)->NumElements(); ++i) {
      CUST_KERNEL_CHECK_FALSE(ctx, indices[i] >= 0 && indices[i] < rows,
                              KERNEL_STATUS_PARAM_INVALID, "[%s] has no row %d.", kScatterNd,
                              indices[i]);
      for (int64_t j = 0; j < width; ++j) y[indices[i] * width + j] += updates[i * width + j];
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kScatterNd, ScatterNdCpuKernel);

}  // namespace aicpu
