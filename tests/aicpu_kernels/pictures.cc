// Pictures of either format: NHWC, or NCHW.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "context/inc/cpu_kernel_utils.h"
#include "inc/ms_cpu_kernel.h"
#include "utils/eigen_tensor.h"
#include "utils/kernel_util.h"

namespace {
const char* const kDepthToSpace = "DepthToSpace";
const char* const kResizeNearestNeighborV2 = "ResizeNearestNeighborV2";
}  // namespace

namespace aicpu {

// Attributes: block_size, data_format.
class DepthToSpaceCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 1, 1, {"block_size", "data_format"}),
                             "[%s] check failed.", kDepthToSpace);
    const std::string format = ctx.GetAttr("data_format")->GetString();
    CUST_KERNEL_CHECK_FALSE(ctx, format == "NHWC" || format == "NCHW", KERNEL_STATUS_PARAM_INVALID,
                            "[%s] data_format must be NHWC or NCHW, got [%s].", kDepthToSpace,
                            format.c_str());
    switch (ctx.Input(0)->GetDataType()) {
      case DT_FLOAT:
        return Move<float>(ctx, format);
      case DT_INT64:
        return Move<int64_t>(ctx, format);
      default:
        return KERNEL_STATUS_PARAM_INVALID;
    }
  }

 private:
  template <typename T>
  uint32_t Move(CpuKernelContext& ctx, const std::string& format) {
    const int64_t block = ctx.GetAttr("block_size")->GetInt();
    auto shape = ctx.Input(0)->GetTensorShape();
    const auto size = [&](char axis) {
      return shape->GetDimSize(static_cast<int32_t>(format.find(axis)));
    };
    const int64_t depth = size('C') / (block * block);
    EigenTensor in(ctx.Input(0), ctx.Input(0)->GetData());
    EigenTensor out(ctx.Output(0), ctx.Output(0)->GetData());
    using Axes = Eigen::array<Eigen::DenseIndex, 6>;
    if (format == "NHWC") {
      const Axes split = {size('N'), size('H'), size('W'), block, block, depth};
      out.shaped<T, 6>({split[0], split[1], block, split[2], block, depth}) =
          in.flat<T>().reshape(split).shuffle(Axes{0, 1, 3, 2, 4, 5});
    } else {
      const Axes split = {size('N'), block, block, depth, size('H'), size('W')};
      out.shaped<T, 6>({split[0], depth, split[4], block, split[5], block}) =
          in.flat<T>().reshape(split).shuffle(Axes{0, 3, 4, 1, 5, 2});
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kDepthToSpace, DepthToSpaceCpuKernel);

// Inputs: pictures, their new height and width. Attributes: align_corners, half_pixel_centers,
// data_format.
class ResizeNearestNeighborV2CpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, 2, 1), "[%s] check failed.",
                             kResizeNearestNeighborV2);
    const AttrValue* format = ctx.GetAttr("data_format");
    const bool is_last = format != nullptr && format->GetString() == "NHWC";
    auto shape = ctx.Input(0)->GetTensorShape();
    shape->SetFormat(is_last ? FORMAT_NHWC : FORMAT_NCHW);
    const auto* size = static_cast<int32_t*>(ctx.Input(1)->GetData());
    CUST_KERNEL_CHECK_FALSE(ctx, size[0] > 0 && size[1] > 0, KERNEL_STATUS_PARAM_INVALID,
                            "[%s] sizes must be positive, got %d and %d.", kResizeNearestNeighborV2,
                            size[0], size[1]);
    align_corners_ = Flag(ctx, "align_corners");
    half_pixel_centers_ = Flag(ctx, "half_pixel_centers");
    auto x = EigenTensor(ctx.Input(0), ctx.Input(0)->GetData()).tensor<float, 4>();
    auto y = EigenTensor(ctx.Output(0), ctx.Output(0)->GetData()).tensor<float, 4>();
    const int height = is_last ? kFormatNHWCIndexH : kFormatNCHWIndexH;
    const int width = is_last ? kFormatNHWCIndexW : kFormatNCHWIndexW;
    const int64_t total = ctx.Output(0)->NumElements();
    const uint32_t cores = std::max(1U, CpuKernelUtils::GetCPUNum(ctx) - kResvCpuNum);
    return CpuKernelUtils::ParallelFor(
        ctx, total, std::max<int64_t>(1, total / cores), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            Eigen::array<Eigen::DenseIndex, 4> place;
            int64_t rest = i;
            for (int axis = 3; axis >= 0; --axis) {
              place[axis] = rest % y.dimension(axis);
              rest /= y.dimension(axis);
            }
            place[height] = Source(place[height], x.dimension(height), y.dimension(height));
            place[width] = Source(place[width], x.dimension(width), y.dimension(width));
            y.data()[i] = x(place);
          }
        });
  }

 private:
  static bool Flag(CpuKernelContext& ctx, const char* name) {
    const AttrValue* const value = ctx.GetAttr(name);
    return value != nullptr && value->GetBool();
  }

  int64_t Source(int64_t place, int64_t from, int64_t to) const {
    const float scale = align_corners_ && to > 1
                            ? static_cast<float>(from - 1) / static_cast<float>(to - 1)
                            : static_cast<float>(from) / static_cast<float>(to);
    const float exact = (static_cast<float>(place) + (half_pixel_centers_ ? 0.5F : 0.0F)) * scale;
    const float rounded = align_corners_ ? std::round(exact) : std::floor(exact);
    return std::min(static_cast<int64_t>(rounded), from - 1);
  }

  bool align_corners_ = false;
  bool half_pixel_centers_ = false;
};
REGISTER_MS_CPU_KERNEL(kResizeNearestNeighborV2, ResizeNearestNeighborV2CpuKernel);

}  // namespace aicpu
