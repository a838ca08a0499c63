// Functions of each entry: real, half, bfloat16, complex and bool.
#include <cmath>
#include <complex>
#include <limits>

#include "base/bfloat16.h"
#include "context/inc/cpu_kernel_utils.h"
#include "cpu_types.h"
#include "inc/ms_cpu_kernel.h"
#include "utils/eigen_tensor.h"
#include "utils/kernel_util.h"

namespace {
const char* const kAbs = "Abs";
const char* const kConj = "Conj";
const char* const kExpBfloat16 = "ExpBfloat16";
const char* const kNanToNum = "NanToNum";
const char* const kPolar = "Polar";
const char* const kSign = "Sign";
constexpr int64_t kParallelEntries = 4096;

// Runs `entry(i)` for every entry, on the threads that a kernel of MindSpore would take.
template <typename Entry>
uint32_t ForEach(aicpu::CpuKernelContext& ctx, int64_t count, Entry entry) {
  if (count < kParallelEntries) {
    for (int64_t i = 0; i < count; ++i) entry(i);
    return aicpu::KERNEL_STATUS_OK;
  }
  const uint32_t cores = aicpu::CpuKernelUtils::GetCPUNum(ctx) - aicpu::kResvCpuNum;
  const int64_t per_core = count / std::max(1U, cores);
  return aicpu::CpuKernelUtils::ParallelFor(ctx, count, per_core, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) entry(static_cast<int64_t>(i));
  });
}

template <typename T>
T* Data(aicpu::Tensor* tensor) {
  return reinterpret_cast<T*>(tensor->GetData());
}
}  // namespace

namespace aicpu {

// y = |x|; of complex x, y is real.
class AbsCpuKernel : public CpuKernel {
 protected:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 1), "[%s] check params failed.", kAbs);
    switch (ctx.Input(kFirstInputIndex)->GetDataType()) {
      case DT_FLOAT16:
        return Run<Eigen::half, Eigen::half>(ctx);
      case DT_FLOAT:
        return Run<float, float>(ctx);
      case DT_DOUBLE:
        return Run<double, double>(ctx);
      case DT_INT8:
        return Run<int8_t, int8_t>(ctx);
      case DT_INT64:
        return Run<int64_t, int64_t>(ctx);
      case DT_COMPLEX64:
        return Run<std::complex<float>, float>(ctx);
      case DT_COMPLEX128:
        return Run<std::complex<double>, double>(ctx);
      default:
        CUST_KERNEL_LOG_ERROR(ctx, "[%s] data type of x is not supported, got [%s].", kAbs,
                              DTypeStr(ctx.Input(0)->GetDataType()).c_str());
        return KERNEL_STATUS_PARAM_INVALID;
    }
  }

 private:
  template <typename T, typename R>
  uint32_t Run(CpuKernelContext& ctx) {
    const T* x = Data<T>(ctx.Input(0));
    R* y = Data<R>(ctx.Output(0));
    return ForEach(ctx, ctx.Input(0)->NumElements(), [=](int64_t i) {
      using std::abs;
      y[i] = static_cast<R>(abs(x[i]));
    });
  }
};
REGISTER_MS_CPU_KERNEL(kAbs, AbsCpuKernel);

class ConjCpuKernel : public CpuKernel {
 public:
  ConjCpuKernel() = default;
  ~ConjCpuKernel() override = default;

 protected:
  uint32_t Compute(CpuKernelContext& ctx) override {
    KERNEL_HANDLE_ERROR(NormalCheck(ctx, 1, 1), "[%s] check params failed.", kConj);
    Tensor* x = ctx.Input(0);
    const auto type = x->GetDataType();
    KERNEL_CHECK_FALSE(type == DT_COMPLEX64 || type == DT_COMPLEX128, KERNEL_STATUS_PARAM_INVALID,
                       "[%s] needs complex numbers, got [%s].", kConj, DTypeStr(type).c_str());
    EigenTensor input(x, x->GetData()), output(ctx.Output(0), ctx.Output(0)->GetData());
    if (type == DT_COMPLEX64) {
      output.flat<std::complex<float>>() = input.flat<std::complex<float>>().conjugate();
    } else {
      output.flat<std::complex<double>>() = input.flat<std::complex<double>>().conjugate();
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kConj, ConjCpuKernel);

class ExpBfloat16CpuKernel : public CpuKernel {
 protected:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 1), "check params failed.");
    CUST_KERNEL_CHECK_FALSE(ctx, ctx.Input(0)->GetDataType() == DT_BFLOAT16,
                            KERNEL_STATUS_PARAM_INVALID, "[%s] needs DT_BFLOAT16.",
                            ctx.GetOpType().c_str());
    const bfloat16* x = Data<bfloat16>(ctx.Input(0));
    bfloat16* y = Data<bfloat16>(ctx.Output(0));
    return ForEach(ctx, ctx.Input(0)->NumElements(), [=](int64_t i) { y[i] = exp(x[i]); });
  }
};
REGISTER_MS_CPU_KERNEL(kExpBfloat16, ExpBfloat16CpuKernel);

// Attributes nan, posinf, neginf are optional, as in MindSpore.
class NanToNumCpuKernel : public CpuKernel {
 protected:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 1), "[%s] check params failed.", kNanToNum);
    switch (ctx.Input(0)->GetDataType()) {
      case DT_FLOAT16:
        return Run<Eigen::half>(ctx);
      case DT_FLOAT:
        return Run<float>(ctx);
      case DT_DOUBLE:
        return Run<double>(ctx);
      default:
        CUST_KERNEL_LOG_ERROR(ctx, "[%s] needs floats.", kNanToNum);
        return KERNEL_STATUS_PARAM_INVALID;
    }
  }

 private:
  template <typename T>
  static T Value(const CpuKernelContext& ctx, const char* name, T otherwise) {
    AttrValue* const attr = ctx.GetAttr(name);
    return attr == nullptr ? otherwise : static_cast<T>(attr->GetFloat());
  }

  template <typename T>
  uint32_t Run(CpuKernelContext& ctx) {
    const T nan = Value(ctx, "nan", static_cast<T>(0));
    const T high = Value(ctx, "posinf", std::numeric_limits<T>::max());
    const T low = Value(ctx, "neginf", std::numeric_limits<T>::lowest());
    const T* x = Data<T>(ctx.Input(0));
    T* y = Data<T>(ctx.Output(0));
    return ForEach(ctx, ctx.Input(0)->NumElements(), [=](int64_t i) {
      if (Eigen::numext::isnan(x[i])) {
        y[i] = nan;
      } else if (Eigen::numext::isinf(x[i])) {
        y[i] = x[i] > static_cast<T>(0) ? high : low;
      } else {
        y[i] = x[i];
      }
    });
  }
};
REGISTER_MS_CPU_KERNEL(kNanToNum, NanToNumCpuKernel);

// y = abs * exp(1j * angle).
class PolarCpuKernel : public CpuKernel {
 protected:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalMathCheck(ctx), "[%s] check params failed.", kPolar);
    CUST_KERNEL_HANDLE_ERROR(
        ctx,
        CheckTensorShapeSame(ctx, {{"angle", ctx.Input(1)->GetTensorShape()}},
                             ctx.Input(0)->GetTensorShape()->GetDimSizes(), kPolar),
        "[%s] check shapes failed.", kPolar);
    return ctx.Input(0)->GetDataType() == DT_DOUBLE ? Run<double>(ctx) : Run<float>(ctx);
  }

 private:
  template <typename T>
  uint32_t Run(CpuKernelContext& ctx) {
    const T* abs = Data<T>(ctx.Input(0));
    const T* angle = Data<T>(ctx.Input(1));
    auto* y = Data<std::complex<T>>(ctx.Output(0));
    return ForEach(ctx, ctx.Input(0)->NumElements(), [=](int64_t i) {
      y[i] = {abs[i] * std::cos(angle[i]), abs[i] * std::sin(angle[i])};
    });
  }
};
REGISTER_MS_CPU_KERNEL(kPolar, PolarCpuKernel);

class SignCpuKernel : public CpuKernel {
 protected:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 1), "[%s] check params failed.", kSign);
    const auto type = ctx.Input(0)->GetDataType();
    if (type == DT_FLOAT16) return Run<Eigen::half>(ctx);
    if (type == DT_FLOAT) return Run<float>(ctx);
    if (type == DT_INT32) return Run<int32_t>(ctx);
    CUST_KERNEL_LOG_ERROR(ctx, "[%s] does not take [%s].", kSign, DTypeStr(type).c_str());
    return KERNEL_STATUS_PARAM_INVALID;
  }

 private:
  template <typename T>
  uint32_t Run(CpuKernelContext& ctx) {
    using Map = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
    const int64_t count = ctx.Input(0)->NumElements();
    const int64_t grain = std::max<int64_t>(count / kThreadNum, 1);
    T* x = Data<T>(ctx.Input(0));
    T* y = Data<T>(ctx.Output(0));
    return CpuKernelUtils::ParallelFor(ctx, count, grain, [=](int64_t begin, int64_t end) {
      Map(y + begin, end - begin) = Map(x + begin, end - begin).sign();
    });
  }
};
REGISTER_MS_CPU_KERNEL(kSign, SignCpuKernel);

}  // namespace aicpu
