// accessor.h: ms::TensorAccessor, indexing of a tensor's memory by its strides.
#ifndef MSOPS_EXTENSION_ACCESSOR_H_
#define MSOPS_EXTENSION_ACCESSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ms {

// a(i, j) is one entry, unchecked; a[i] is the row, checked. `shape` must outlive the accessor.
template <typename T, size_t N>
class TensorAccessor {
  static_assert(N > 0, "TensorAccessor needs a tensor of one dimension or more.");

 public:
  TensorAccessor(T* data, const int64_t* shape, std::shared_ptr<std::vector<int64_t>> strides)
      : data_(data),
        shape_(shape),
        strides_(std::move(strides)),
        own_strides_(strides_->data() + (strides_->size() - N)) {}

  template <typename... Indices>
  T& operator()(Indices... indices) const {
    static_assert(sizeof...(Indices) == N, "TensorAccessor needs one index per dimension.");
    const int64_t* stride = own_strides_;
    int64_t offset = 0;
    ((offset += static_cast<int64_t>(indices) * *stride++), ...);
    return data_[offset];
  }

  // The row at `index`, or the entry itself of a one-dimensional tensor.
  decltype(auto) operator[](size_t index) const {
    if (index >= static_cast<size_t>(shape_[0])) {
      throw std::runtime_error("Index " + std::to_string(index) +
                               " is out of bounds for dimension with size " +
                               std::to_string(shape_[0]) + ".");
    }
    T* const row = data_ + static_cast<int64_t>(index) * own_strides_[0];
    if constexpr (N == 1) {
      return static_cast<T&>(*row);
    } else {
      return TensorAccessor<T, N - 1>(row, shape_ + 1, strides_);
    }
  }

  T* data_ptr() const { return data_; }

  bool is_contiguous() const {
    int64_t dense = 1;
    for (size_t i = N; i-- > 0; dense *= shape_[i]) {
      if (shape_[i] != 1 && own_strides_[i] != dense) return false;
    }
    return true;
  }

 private:
  T* data_;
  const int64_t* shape_;
  std::shared_ptr<std::vector<int64_t>> strides_;
  const int64_t* own_strides_;
};

}  // namespace ms

#endif  // MSOPS_EXTENSION_ACCESSOR_H_
