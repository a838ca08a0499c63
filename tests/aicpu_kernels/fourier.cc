// Fourier and cosine transforms along some axes, after the input is cut or padded with zeros.
#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include "cpu_kernel/utils/fft_helper.h"
#include "inc/ms_cpu_kernel.h"
#include "include/securec.h"
#include "utils/kernel_util.h"

namespace {
const char* const kFourier = "Fourier";
const char* const kIFourier = "IFourier";
const char* const kCosine = "Cosine";
}  // namespace

namespace aicpu {

class FourierCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 1, {"dim", "norm"}), "[%s] check failed.",
                             ctx.GetOpType().c_str());
    const DataType from = ctx.Input(0)->GetDataType(), to = ctx.Output(0)->GetDataType();
    if (from == DT_FLOAT && to == DT_COMPLEX64) return Transform<float, std::complex<float>>(ctx);
    if (from == DT_DOUBLE && to == DT_COMPLEX128) {
      return Transform<double, std::complex<double>>(ctx);
    }
    if (from == DT_COMPLEX64 && to == DT_COMPLEX64) {
      return Transform<std::complex<float>, std::complex<float>>(ctx);
    }
    if (from == DT_COMPLEX64 && to == DT_FLOAT) return Transform<std::complex<float>, float>(ctx);
    CUST_KERNEL_LOG_ERROR(ctx, "[%s] does not lead from %s to %s.", ctx.GetOpType().c_str(),
                          DTypeStr(from).c_str(), DTypeStr(to).c_str());
    return KERNEL_STATUS_PARAM_INVALID;
  }

 private:
  template <typename In, typename Out>
  uint32_t Transform(CpuKernelContext& ctx) {
    const bool forward = IsForwardOp(GetOpName(ctx));
    const auto norm = static_cast<NormMode>(ctx.GetAttr("norm")->GetInt());
    const std::vector<int64_t> dim = ctx.GetAttr("dim")->GetListInt();
    const auto out_shape = ctx.Output(0)->GetTensorShape()->GetDimSizes();
    std::vector<int64_t> shape = out_shape;
    constexpr bool kFromReal = std::is_same_v<In, float> || std::is_same_v<In, double>;
    constexpr bool kToReal = std::is_same_v<Out, float>;
    // The size that is transformed: of a real result, or of the real input.
    const auto in_shape = ctx.Input(0)->GetTensorShape()->GetDimSizes();
    if (kFromReal) shape = in_shape;
    std::vector<int64_t> sizes;
    for (const int64_t axis : dim) sizes.push_back(shape[axis]);
    int64_t count = 1;
    for (const int64_t size : sizes) count *= size;
    auto* const in = static_cast<In*>(ctx.Input(0)->GetData());
    auto* const out = static_cast<Out*>(ctx.Output(0)->GetData());
    if constexpr (kFromReal) {
      PocketFFTR2C(in, out, forward, static_cast<In>(GetNormalized(count, norm, forward)), shape,
                   dim);
    } else if constexpr (kToReal) {
      // As MindSpore's kernels do: the input lies in the corner of an array of the whole shape.
      std::vector<In> padded(static_cast<size_t>(ctx.Output(0)->NumElements()));
      ShapeCopy(in, padded.data(), in_shape, shape);
      PocketFFTC2R(padded.data(), out, forward,
                   static_cast<Out>(GetNormalized(count, norm, forward)), shape, dim);
    } else {
      const int64_t entries =
          GetCalculateElementNum(in_shape, dim, sizes, ctx.Input(0)->NumElements());
      std::vector<In> padded(static_cast<size_t>(entries));
      ShapeCopy(in, padded.data(), in_shape, shape);
      PocketFFTC2C(padded.data(), out, forward,
                   static_cast<typename Out::value_type>(GetNormalized(count, norm, forward)),
                   shape, dim);
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kFourier, FourierCpuKernel);
REGISTER_MS_CPU_KERNEL(kIFourier, FourierCpuKernel);

class CosineCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 1, {"type", "dim", "ortho"}),
                             "[%s] check failed.", kCosine);
    auto* const in = static_cast<double*>(ctx.Input(0)->GetData());
    auto* const out = static_cast<double*>(ctx.Output(0)->GetData());
    const auto shape = ctx.Input(0)->GetTensorShape()->GetDimSizes();
    const auto dim = ctx.GetAttr("dim")->GetListInt();
    const int64_t type = ctx.GetAttr("type")->GetInt();
    const bool ortho = ctx.GetAttr("ortho")->GetBool();
    double factor = 1;
    for (const int64_t axis : dim) {
      const int64_t period = 2 * (type == 1 ? shape[axis] - 1 : shape[axis]);
      if (ortho) factor /= std::sqrt(static_cast<double>(period));
    }
    PocketFFTDCT(in, out, static_cast<int>(type), factor, shape, dim, ortho);
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kCosine, CosineCpuKernel);

}  // namespace aicpu
