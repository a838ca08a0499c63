// cpu_tensor_shape.h: the shape of a tensor.
#ifndef MSOPS_AICPU_CPU_TENSOR_SHAPE_H_
#define MSOPS_AICPU_CPU_TENSOR_SHAPE_H_

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cpu_types.h"

namespace aicpu {

class TensorShape {
 public:
  // A copy is a shape by itself: it has no room to keep to, as the shape of an output has.
  TensorShape(const TensorShape& other)
      : dims_(other.dims_), format_(other.format_), has_unknown_rank_(other.has_unknown_rank_) {}
  TensorShape& operator=(const TensorShape& other) {
    if (this != &other) Assign(other);
    return *this;
  }

  Format GetFormat() const { return format_; }
  void SetFormat(Format format) { format_ = format; }

  bool GetUnknownRank() const { return has_unknown_rank_; }
  void SetUnknownRank(bool unknown_rank) { has_unknown_rank_ = unknown_rank; }

  // On the shape of an output this says how much of it the kernel fills. Throws std::length_error
  // if there is no room for that much: what the kernel would write next is not its memory.
  void SetDimSizes(const std::vector<int64_t>& dims) {
    if (most_elements_ != kAnyNumber) CheckRoom(dims);
    dims_ = dims;
  }

  std::vector<int64_t> GetDimSizes() const { return dims_; }

  // Returns the size of one axis, 0 if there is no such axis.
  int64_t GetDimSize(int32_t index) const {
    return index >= 0 && index < GetDims() ? dims_[static_cast<size_t>(index)] : 0;
  }

  int32_t GetDims() const { return static_cast<int32_t>(dims_.size()); }

  // Returns the number of entries, 1 for a scalar; -1 if a size is not known, or there are more
  // than an int64_t counts.
  int64_t NumElements() const { return Count(dims_); }

 private:
  friend class AttrValue;
  friend class CpuKernelContext;
  friend class CpuKernelUtils;
  friend class NodeDefBuilder;
  friend class Tensor;

  static constexpr int64_t kAnyNumber = -1;

  TensorShape() = default;
  TensorShape(const int64_t* dims, int32_t rank) : dims_(dims, dims + rank) {}

  static int64_t Count(const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (const int64_t dim : dims) {
      if (dim < 0 || __builtin_mul_overflow(count, dim, &count)) return -1;
    }
    return count;
  }

  void CheckRoom(const std::vector<int64_t>& dims) const {
    const int64_t count = Count(dims);
    if (count >= 0 && count <= most_elements_) return;
    std::string shown;
    for (const int64_t dim : dims) shown += (shown.empty() ? "" : ", ") + std::to_string(dim);
    throw std::length_error("SetDimSizes: expected at most the " + std::to_string(most_elements_) +
                            " entries that out_shape declares, got the shape [" + shown + "]");
  }

  // Takes the content of another shape, not its room.
  void Assign(const TensorShape& other) {
    SetDimSizes(other.dims_);
    format_ = other.format_;
    has_unknown_rank_ = other.has_unknown_rank_;
  }

  std::vector<int64_t> dims_;
  int64_t most_elements_ = kAnyNumber;
  // What MindSpore's kernels see unless somebody sets another one: the tensors of a call arrive in
  // a message without a format, whose number is then 0. Some accept NCHW and NHWC only.
  Format format_ = FORMAT_NCHW;
  bool has_unknown_rank_ = false;
};

using TensorShapePtr = std::shared_ptr<TensorShape>;

}  // namespace aicpu

#endif  // MSOPS_AICPU_CPU_TENSOR_SHAPE_H_
