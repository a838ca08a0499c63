// broadcast_iterator.h: walks over the entries of two shapes that are broadcast to a third.
#ifndef MSOPS_AICPU_UTILS_BROADCAST_ITERATOR_H_
#define MSOPS_AICPU_UTILS_BROADCAST_ITERATOR_H_

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernel_util.h"

namespace aicpu {

class BroadcastIterator {
 public:
  BroadcastIterator(std::vector<int64_t> input_shape_a, std::vector<int64_t> input_shape_b,
                    std::vector<int64_t> output_shape)
      : shape_(std::move(output_shape)),
        coordinates_(shape_.size(), 0),
        strides_a_(Strides(input_shape_a)),
        strides_b_(Strides(input_shape_b)) {}
  virtual ~BroadcastIterator() = default;

  size_t GetInputPosA() const { return static_cast<size_t>(position_a_); }
  size_t GetInputPosB() const { return static_cast<size_t>(position_b_); }

  // Moves to the entry at a row-major position of the output.
  void SetPos(size_t position) {
    position_a_ = position_b_ = 0;
    auto rest = static_cast<int64_t>(position);
    for (size_t i = shape_.size(); i-- > 0; rest /= shape_[i]) {
      coordinates_[i] = rest % shape_[i];
      position_a_ += coordinates_[i] * strides_a_[i];
      position_b_ += coordinates_[i] * strides_b_[i];
    }
  }

  // Moves on by one entry; behind the last stands the first.
  void GenNextPos() {
    for (size_t i = shape_.size(); i-- > 0;) {
      position_a_ += strides_a_[i];
      position_b_ += strides_b_[i];
      if (++coordinates_[i] < shape_[i]) return;
      position_a_ -= coordinates_[i] * strides_a_[i];
      position_b_ -= coordinates_[i] * strides_b_[i];
      coordinates_[i] = 0;
    }
  }

 private:
  // Returns a step per axis of the output, 0 where the input repeats.
  std::vector<int64_t> Strides(const std::vector<int64_t>& shape) const {
    if (shape.size() > shape_.size()) {
      throw std::invalid_argument("BroadcastIterator: the shape [" + VectorToString(shape) +
                                  "] is not broadcast to [" + VectorToString(shape_) + "]");
    }
    std::vector<int64_t> strides(shape_.size(), 0);
    const size_t offset = shape_.size() - shape.size();
    int64_t stride = 1;
    for (size_t i = shape.size(); i-- > 0; stride *= shape[i]) {
      if (shape[i] != 1) strides[offset + i] = stride;
    }
    return strides;
  }

  const std::vector<int64_t> shape_;
  std::vector<int64_t> coordinates_;
  const std::vector<int64_t> strides_a_;
  const std::vector<int64_t> strides_b_;
  int64_t position_a_ = 0;
  int64_t position_b_ = 0;
};

// Writes the shape of two that are broadcast by each other.
inline uint32_t GetBroadcastShape(const std::vector<int64_t>& x, const std::vector<int64_t>& y,
                                  std::vector<int64_t>& broadcast_shape) {
  const size_t rank = x.size() > y.size() ? x.size() : y.size();
  broadcast_shape.assign(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t a = i < x.size() ? x[x.size() - 1 - i] : 1;
    const int64_t b = i < y.size() ? y[y.size() - 1 - i] : 1;
    KERNEL_CHECK_FALSE(a == b || a == 1 || b == 1, KERNEL_STATUS_PARAM_INVALID,
                       "The shapes [%s] and [%s] cannot be broadcast.", VectorToString(x).c_str(),
                       VectorToString(y).c_str())
    broadcast_shape[rank - 1 - i] = a == 1 ? b : a;
  }
  return KERNEL_STATUS_OK;
}

}  // namespace aicpu

#endif  // MSOPS_AICPU_UTILS_BROADCAST_ITERATOR_H_
