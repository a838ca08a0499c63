// tensor_iterator.h: walks over the coordinates of a shape, the last axis first.
#ifndef MSOPS_AICPU_UTILS_TENSOR_ITERATOR_H_
#define MSOPS_AICPU_UTILS_TENSOR_ITERATOR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

class TensorIterator {
 public:
  explicit TensorIterator(const std::vector<int64_t>& shape)
      : shape_(shape), coordinates_(shape.size(), 0) {}
  // Starts at coordinates within the shape.
  TensorIterator(const std::vector<int64_t>& shape, const std::vector<int64_t>& coordinates)
      : shape_(shape), coordinates_(coordinates) {}

  TensorIterator& begin() { return *this; }

  // What the coordinates are behind the last entry.
  std::vector<int64_t> end() { return {}; }
  const std::vector<int64_t>& operator*() const { return coordinates_; }
  bool operator!=(const std::vector<int64_t>& other) const { return coordinates_ != other; }
  void operator++() { step(); }

  void step() {
    for (size_t i = coordinates_.size(); i-- > 0; coordinates_[i] = 0) {
      if (++coordinates_[i] < shape_[i]) return;
    }
    coordinates_.clear();
  }

 private:
  const std::vector<int64_t> shape_;
  std::vector<int64_t> coordinates_;
};

#endif  // MSOPS_AICPU_UTILS_TENSOR_ITERATOR_H_
