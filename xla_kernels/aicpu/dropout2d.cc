// Dropout2D: drops whole channels of a batch of images.
//
// Inputs: x [N, C, H, W], of any dtype of fixed size. Outputs: y, like x, and mask, bool of the
// same shape. Each channel x[n, c] is kept with probability keep_prob and then divided by it,
// integers towards zero; else it is 0. Attributes: keep_prob (float in [0, 1]); seed (int,
// optional): equal seeds drop equal channels, without one each call draws anew.
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "inc/ms_cpu_kernel.h"
#include "utils/kernel_util.h"

namespace {

const char* const kDropout2D = "Dropout2D";

// Rounds to nearest, ties to even. Neither format has a type without Eigen, and multiplying is all
// that is needed of them here.
float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f, fraction = half & 0x3ff;
  float magnitude;
  if (exponent == 0) {
    magnitude = static_cast<float>(fraction) * 0x1p-24f;
  } else {
    const uint32_t bits = ((exponent == 31 ? 255 : exponent + 112) << 23) | (fraction << 13);
    std::memcpy(&magnitude, &bits, sizeof magnitude);
  }
  uint32_t bits;
  std::memcpy(&bits, &magnitude, sizeof bits);
  bits |= sign;
  std::memcpy(&magnitude, &bits, sizeof bits);
  return magnitude;
}

uint16_t FloatToHalf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return sign | 0x7e00;
  // From 65520 on the nearest half is infinite.
  if (bits >= 0x477ff000) return sign | 0x7c00;
  if (bits < 0x38800000) {
    // Below the normal halves one unit is 2**-24; the sum rounds to it.
    float magnitude;
    std::memcpy(&magnitude, &bits, sizeof magnitude);
    const float shifted = magnitude + 0.5f;
    std::memcpy(&bits, &shifted, sizeof bits);
    return static_cast<uint16_t>(sign | (bits - 0x3f000000));
  }
  return static_cast<uint16_t>(sign | ((bits - 0x38000000 + 0xfff + ((bits >> 13) & 1)) >> 13));
}

float Bfloat16ToFloat(uint16_t value) {
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

uint16_t FloatToBfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// Returns 64 bits of a stream that `seed` begins: splitmix64.
uint64_t NextBits(uint64_t* state) {
  uint64_t bits = *state += 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

}  // namespace

namespace aicpu {

class Dropout2DCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 2, {"keep_prob"}),
                             "[%s] needs an input, two outputs and the attribute keep_prob.",
                             kDropout2D);
    const Tensor& x = *ctx.Input(0);
    const std::vector<int64_t> dims = x.GetTensorShape()->GetDimSizes();
    CUST_KERNEL_CHECK_FALSE(ctx, dims.size() == 4, KERNEL_STATUS_PARAM_INVALID,
                            "[%s] needs an input of shape [N, C, H, W], got one of %zu axes.",
                            kDropout2D, dims.size());
    for (const uint32_t i : {0u, 1u}) {
      CUST_KERNEL_CHECK_FALSE(
          ctx, ctx.Output(i)->GetTensorShape()->GetDimSizes() == dims, KERNEL_STATUS_PARAM_INVALID,
          "[%s] needs output %u to have the shape of the input.", kDropout2D, i);
    }
    CUST_KERNEL_CHECK_FALSE(
        ctx,
        ctx.Output(0)->GetDataType() == x.GetDataType() && ctx.Output(1)->GetDataType() == DT_BOOL,
        KERNEL_STATUS_PARAM_INVALID,
        "[%s] needs outputs of the dtypes %s and DT_BOOL, got %s and %s.", kDropout2D,
        DTypeStr(x.GetDataType()).c_str(), DTypeStr(ctx.Output(0)->GetDataType()).c_str(),
        DTypeStr(ctx.Output(1)->GetDataType()).c_str());
    const float keep_prob = ctx.GetAttr("keep_prob")->GetFloat();
    CUST_KERNEL_CHECK_FALSE(ctx, keep_prob >= 0 && keep_prob <= 1, KERNEL_STATUS_PARAM_INVALID,
                            "[%s] needs keep_prob in [0, 1], got %g.", kDropout2D,
                            static_cast<double>(keep_prob));
    DrawMask(ctx, dims, keep_prob);
    return Drop(ctx, dims, keep_prob);
  }

 private:
  static void DrawMask(const CpuKernelContext& ctx, const std::vector<int64_t>& dims,
                       double keep_prob) {
    const AttrValue* const seed = ctx.GetAttr("seed");
    std::random_device device;
    uint64_t state = seed ? static_cast<uint64_t>(seed->GetInt())
                          : static_cast<uint64_t>(device()) << 32 | device();
    auto* mask = static_cast<uint8_t*>(ctx.Output(1)->GetData());
    const int64_t area = dims[2] * dims[3];
    for (int64_t channel = 0; channel < dims[0] * dims[1] && area; ++channel, mask += area) {
      const double uniform = static_cast<double>(NextBits(&state) >> 11) * 0x1p-53;
      std::memset(mask, uniform < keep_prob, static_cast<size_t>(area));
    }
  }

  static uint32_t Drop(const CpuKernelContext& ctx, const std::vector<int64_t>& dims,
                       float keep_prob) {
    switch (ctx.Input(0)->GetDataType()) {
      case DT_FLOAT:
        return Fill<float>(ctx, dims, [=](float v) { return v / keep_prob; });
      case DT_DOUBLE:
        return Fill<double>(ctx, dims, [=](double v) { return v / keep_prob; });
      case DT_FLOAT16:
        return Fill<uint16_t>(ctx, dims,
                              [=](uint16_t v) { return FloatToHalf(HalfToFloat(v) / keep_prob); });
      case DT_BFLOAT16:
        return Fill<uint16_t>(
            ctx, dims, [=](uint16_t v) { return FloatToBfloat16(Bfloat16ToFloat(v) / keep_prob); });
      case DT_BOOL:
        return Fill<uint8_t>(ctx, dims, [](uint8_t v) { return v; });
      case DT_INT8:
        return FillIntegers<int8_t>(ctx, dims, keep_prob);
      case DT_INT16:
        return FillIntegers<int16_t>(ctx, dims, keep_prob);
      case DT_INT32:
        return FillIntegers<int32_t>(ctx, dims, keep_prob);
      case DT_INT64:
        return FillIntegers<int64_t>(ctx, dims, keep_prob);
      case DT_UINT8:
        return FillIntegers<uint8_t>(ctx, dims, keep_prob);
      case DT_UINT16:
        return FillIntegers<uint16_t>(ctx, dims, keep_prob);
      case DT_UINT32:
        return FillIntegers<uint32_t>(ctx, dims, keep_prob);
      case DT_UINT64:
        return FillIntegers<uint64_t>(ctx, dims, keep_prob);
      default:
        CUST_KERNEL_LOG_ERROR(ctx, "[%s] does not take the dtype %s.", kDropout2D,
                              DTypeStr(ctx.Input(0)->GetDataType()).c_str());
        return KERNEL_STATUS_PARAM_INVALID;
    }
  }

  // A quotient that the dtype cannot hold becomes the nearest value that it can.
  template <typename T>
  static uint32_t FillIntegers(const CpuKernelContext& ctx, const std::vector<int64_t>& dims,
                               float keep_prob) {
    // A double does not hold every entry, and this leaves them as they are.
    if (keep_prob == 1) return Fill<T>(ctx, dims, [](T v) { return v; });
    return Fill<T>(ctx, dims, [=](T v) {
      using Limits = std::numeric_limits<T>;
      const double quotient = static_cast<double>(v) / static_cast<double>(keep_prob);
      if (quotient >= static_cast<double>(Limits::max())) return Limits::max();
      if (quotient <= static_cast<double>(Limits::min())) return Limits::min();
      return static_cast<T>(quotient);
    });
  }

  // Writes `scale` of the entries that are kept, zeros for the others.
  template <typename T, typename Scale>
  static uint32_t Fill(const CpuKernelContext& ctx, const std::vector<int64_t>& dims, Scale scale) {
    const int64_t channels = dims[0] * dims[1], area = dims[2] * dims[3];
    const T* const x = static_cast<const T*>(ctx.Input(0)->GetData());
    T* const y = static_cast<T*>(ctx.Output(0)->GetData());
    const auto* const mask = static_cast<const uint8_t*>(ctx.Output(1)->GetData());
    constexpr int64_t kEntriesPerBlock = 16384;
    const int64_t grain = area ? kEntriesPerBlock / area + 1 : channels;
    return CpuKernelUtils::ParallelFor(ctx, channels, grain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin * area; i < end * area; ++i) y[i] = mask[i] ? scale(x[i]) : T(0);
    });
  }
};

REGISTER_MS_CPU_KERNEL(kDropout2D, Dropout2DCpuKernel);

}  // namespace aicpu
