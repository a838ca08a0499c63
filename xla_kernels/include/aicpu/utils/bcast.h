// bcast.h: broadcasting of two shapes by numpy's rules.
#ifndef MSOPS_AICPU_UTILS_BCAST_H_
#define MSOPS_AICPU_UTILS_BCAST_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernel_util.h"

namespace aicpu {

// How the shapes of two inputs stand to each other; the numbers are MindSpore's.
enum class BcastShapeType {
  SAME_SHAPE = 0,
  X_ONE_ELEMENT = 1,
  Y_ONE_ELEMENT = 2,
  DIFF_SHAPE = 3,
};

// What a kernel broadcasts with: inputs of shapes reshape_0 and reshape_1, repeated bcast_0 and
// bcast_1 times along each axis, have the shape shape_out. Neighbouring axes that broadcast alike
// are one axis here. The indexes are, per entry of the output, where its operands are.
struct BCalcInfo {
  Tensor* input_0 = nullptr;
  Tensor* input_1 = nullptr;
  Tensor* output = nullptr;
  std::vector<int64_t> reshape_0;
  std::vector<int64_t> reshape_1;
  std::vector<int64_t> shape_out;
  std::vector<int64_t> bcast_0;
  std::vector<int64_t> bcast_1;
  std::vector<int64_t> x_indexes;
  std::vector<int64_t> y_indexes;
};

class Bcast {
 public:
  using Vec = std::vector<int64_t>;

  Bcast() = default;
  explicit Bcast(CpuKernelContext& ctx) : ctx_(&ctx) {}
  Bcast(const Vec& x_shape, const Vec& y_shape) { is_valid_ = Init(x_shape, y_shape); }
  Bcast(CpuKernelContext& ctx, const Vec& x_shape, const Vec& y_shape) : ctx_(&ctx) {
    is_valid_ = Init(x_shape, y_shape);
    if (!is_valid_) LogMismatch(x_shape, y_shape);
  }

  // Takes the shapes from `info`'s inputs.
  uint32_t GenerateBcastInfo(const BCalcInfo& info) {
    const Vec x_shape = info.input_0->GetTensorShape()->GetDimSizes();
    const Vec y_shape = info.input_1->GetTensorShape()->GetDimSizes();
    is_valid_ = Init(x_shape, y_shape);
    if (is_valid_) return KERNEL_STATUS_OK;
    LogMismatch(x_shape, y_shape);
    return KERNEL_STATUS_PARAM_INVALID;
  }

  // Writes reshapes, repeats and the output's shape to `info`.
  void GetBcastVec(BCalcInfo& info) const {
    info.reshape_0 = x_reshape_;
    info.reshape_1 = y_reshape_;
    info.shape_out = merged_shape_;
    info.bcast_0 = x_bcast_;
    info.bcast_1 = y_bcast_;
  }

  // Writes where the operands of each entry of the output are.
  void BCastIndexes(Vec& x_indexes, Vec& y_indexes) const {
    const int64_t count = Count();
    x_indexes.clear();
    y_indexes.clear();
    x_indexes.reserve(static_cast<size_t>(count));
    y_indexes.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      x_indexes.push_back(GetBroadcastXIndex(i));
      y_indexes.push_back(GetBroadcastYIndex(i));
    }
  }

  int64_t GetBroadcastXIndex(int64_t index) const { return OperandIndex(index, x_strides_); }
  int64_t GetBroadcastYIndex(int64_t index) const { return OperandIndex(index, y_strides_); }

  bool IsValid() const { return is_valid_; }
  const Vec& x_reshape() const { return x_reshape_; }
  const Vec& y_reshape() const { return y_reshape_; }
  const Vec& x_bcast() const { return x_bcast_; }
  const Vec& y_bcast() const { return y_bcast_; }
  const Vec& result_shape() const { return merged_shape_; }
  const Vec& output_shape() const { return output_shape_; }

 private:
  bool Init(const Vec& x_shape, const Vec& y_shape) {
    const size_t rank = std::max(x_shape.size(), y_shape.size());
    const Vec x = Padded(x_shape, rank), y = Padded(y_shape, rank);
    output_shape_.clear();
    x_reshape_.clear();
    y_reshape_.clear();
    merged_shape_.clear();
    int previous = -1;
    for (size_t i = 0; i < rank; ++i) {
      if (x[i] != y[i] && x[i] != 1 && y[i] != 1) return false;
      const int64_t size = x[i] == 1 ? y[i] : x[i];
      output_shape_.push_back(size);
      if (x[i] == 1 && y[i] == 1) continue;
      // 0: both have the axis, 1: x repeats, 2: y repeats.
      const int kind = x[i] == y[i] ? 0 : x[i] == 1 ? 1 : 2;
      if (kind == previous) {
        x_reshape_.back() *= x[i];
        y_reshape_.back() *= y[i];
        merged_shape_.back() *= size;
      } else {
        x_reshape_.push_back(x[i]);
        y_reshape_.push_back(y[i]);
        merged_shape_.push_back(size);
        previous = kind;
      }
    }
    if (merged_shape_.empty()) x_reshape_ = y_reshape_ = merged_shape_ = {1};
    SetRepeats(x_reshape_, &x_bcast_, &x_strides_);
    SetRepeats(y_reshape_, &y_bcast_, &y_strides_);
    return true;
  }

  static Vec Padded(const Vec& shape, size_t rank) {
    Vec padded(rank - shape.size(), 1);
    padded.insert(padded.end(), shape.begin(), shape.end());
    return padded;
  }

  void SetRepeats(const Vec& shape, Vec* repeats, Vec* strides) const {
    const size_t rank = shape.size();
    repeats->assign(rank, 1);
    strides->assign(rank, 0);
    int64_t stride = 1;
    for (size_t i = rank; i-- > 0; stride *= shape[i]) {
      if (shape[i] != merged_shape_[i]) {
        (*repeats)[i] = merged_shape_[i];
      } else {
        (*strides)[i] = stride;
      }
    }
  }

  int64_t OperandIndex(int64_t index, const Vec& strides) const {
    int64_t position = 0;
    for (size_t i = merged_shape_.size(); i-- > 0; index /= merged_shape_[i]) {
      position += index % merged_shape_[i] * strides[i];
    }
    return position;
  }

  int64_t Count() const {
    int64_t count = 1;
    for (const int64_t dim : merged_shape_) count *= dim;
    return count;
  }

  void LogMismatch(const Vec& x_shape, const Vec& y_shape) const {
    const MsopsAicpuCall* const call = ctx_ ? HostCall::Of(*ctx_) : HostCall::Current();
    MSOPS_AICPU_LOG(call, MSOPS_AICPU_ERROR,
                    "Broadcast failed: the shapes [%s] and [%s] do not match.",
                    VectorToString(x_shape).c_str(), VectorToString(y_shape).c_str());
  }

  CpuKernelContext* ctx_ = nullptr;
  bool is_valid_ = true;
  Vec output_shape_;
  Vec x_reshape_, y_reshape_, merged_shape_;
  Vec x_bcast_, y_bcast_;
  Vec x_strides_, y_strides_;
};

}  // namespace aicpu

#endif  // MSOPS_AICPU_UTILS_BCAST_H_
