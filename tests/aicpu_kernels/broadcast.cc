// Functions of two inputs that are broadcast against each other, in two of the three ways that
// kernels do it; the third is in multiply.cc.
#include <numeric>

#include "cpu_kernel.h"
#include "utils/bcast.h"
#include "utils/broadcast_iterator.h"
#include "utils/eigen_tensor.h"
#include "utils/kernel_util.h"

namespace {
const char* kAdd = "Add";
const char* kGcd = "Gcd";
const char* kLogicalXor = "LogicalXor";
}  // namespace

namespace aicpu {

// By Eigen's reshape and broadcast, for up to four merged axes.
class AddCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalMathCheck(ctx), "[%s] check params failed.", kAdd);
    switch (ctx.Input(0)->GetDataType()) {
      case DT_FLOAT16:
        return Run<Eigen::half>(ctx);
      case DT_BFLOAT16:
        return Run<Eigen::bfloat16>(ctx);
      case DT_FLOAT:
        return Run<float>(ctx);
      case DT_INT32:
        return Run<int32_t>(ctx);
      case DT_COMPLEX64:
        return Run<std::complex<float>>(ctx);
      default:
        CUST_KERNEL_LOG_ERROR(ctx, "[%s] does not take [%s].", kAdd,
                              DTypeStr(ctx.Input(0)->GetDataType()).c_str());
        return KERNEL_STATUS_PARAM_INVALID;
    }
  }

 private:
  template <typename T>
  uint32_t Run(CpuKernelContext& ctx) {
    BCalcInfo info;
    info.input_0 = ctx.Input(0);
    info.input_1 = ctx.Input(1);
    info.output = ctx.Output(0);
    Bcast bcast(ctx);
    CUST_KERNEL_CHECK_FALSE(ctx, bcast.GenerateBcastInfo(info) == KERNEL_STATUS_OK,
                            KERNEL_STATUS_PARAM_INVALID, "[%s] broadcast failed.", kAdd);
    bcast.GetBcastVec(info);
    switch (info.shape_out.size()) {
      case 1:
        return Add<1, T>(info);
      case 2:
        return Add<2, T>(info);
      case 3:
        return Add<3, T>(info);
      case 4:
        return Add<4, T>(info);
      default:
        CUST_KERNEL_LOG_ERROR(ctx, "[%s] has too many axes.", kAdd);
        return KERNEL_STATUS_INNER_ERROR;
    }
  }

  template <int32_t RANK, typename T>
  uint32_t Add(const BCalcInfo& info) {
    Eigen::DSizes<Eigen::DenseIndex, RANK> reshape_0, reshape_1, shape_out;
    Eigen::array<Eigen::DenseIndex, RANK> bcast_0, bcast_1;
    for (int32_t i = 0; i < RANK; ++i) {
      reshape_0[i] = info.reshape_0[i];
      reshape_1[i] = info.reshape_1[i];
      shape_out[i] = info.shape_out[i];
      bcast_0[i] = info.bcast_0[i];
      bcast_1[i] = info.bcast_1[i];
    }
    using Map = Eigen::TensorMap<Eigen::Tensor<T, 1, Eigen::RowMajor>, Eigen::Aligned>;
    Map x(static_cast<T*>(info.input_0->GetData()), info.input_0->NumElements());
    Map y(static_cast<T*>(info.input_1->GetData()), info.input_1->NumElements());
    Map z(static_cast<T*>(info.output->GetData()), info.output->NumElements());
    z.reshape(shape_out) =
        x.reshape(reshape_0).broadcast(bcast_0) + y.reshape(reshape_1).broadcast(bcast_1);
    return KERNEL_STATUS_OK;
  }
};
REGISTER_CPU_KERNEL(kAdd, AddCpuKernel);

// By the position of the operands of each entry.
class GcdCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    KERNEL_HANDLE_ERROR(NormalMathCheck(ctx), "[%s] check params failed.", kGcd);
    const auto type = ctx.Input(0)->GetDataType();
    KERNEL_CHECK_FALSE(type == DT_INT32, KERNEL_STATUS_PARAM_INVALID, "[%s] needs int32, got %s.",
                       kGcd, DTypeStr(type).c_str());
    auto x_shape = ctx.Input(0)->GetTensorShape()->GetDimSizes();
    auto y_shape = ctx.Input(1)->GetTensorShape()->GetDimSizes();
    Bcast bcast(x_shape, y_shape);
    KERNEL_CHECK_FALSE(bcast.IsValid(), KERNEL_STATUS_PARAM_INVALID, "[%s] broadcast failed.",
                       kGcd);
    const auto* x = static_cast<int32_t*>(ctx.Input(0)->GetData());
    const auto* y = static_cast<int32_t*>(ctx.Input(1)->GetData());
    auto* z = static_cast<int32_t*>(ctx.Output(0)->GetData());
    return CpuKernelUtils::ParallelFor(
        ctx, ctx.Output(0)->NumElements(), 16, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            z[i] = std::gcd(x[bcast.GetBroadcastXIndex(i)], y[bcast.GetBroadcastYIndex(i)]);
          }
        });
  }
};
REGISTER_MS_CPU_KERNEL(kGcd, GcdCpuKernel);

// By a table of those positions.
class LogicalXorCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    KERNEL_HANDLE_ERROR(NormalMathCheck(ctx), "[%s] check params failed.", kLogicalXor);
    BCalcInfo info{ctx.Input(0), ctx.Input(1), ctx.Output(0), {}, {}, {}, {}, {}, {}, {}};
    Bcast bcast;
    KERNEL_CHECK_FALSE(bcast.GenerateBcastInfo(info) == KERNEL_STATUS_OK,
                       KERNEL_STATUS_PARAM_INVALID, "[%s] broadcast failed.", kLogicalXor);
    bcast.BCastIndexes(info.x_indexes, info.y_indexes);
    const bool* x = static_cast<bool*>(info.input_0->GetData());
    const bool* y = static_cast<bool*>(info.input_1->GetData());
    bool* z = static_cast<bool*>(info.output->GetData());
    for (size_t i = 0; i < info.x_indexes.size(); ++i) {
      z[i] = x[info.x_indexes[i]] != y[info.y_indexes[i]];
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kLogicalXor, LogicalXorCpuKernel);

}  // namespace aicpu
