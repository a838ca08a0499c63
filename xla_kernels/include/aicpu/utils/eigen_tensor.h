// eigen_tensor.h: tensors as Eigen sees them. Without Eigen it is empty, as kernels include it
// that use none of it.
#ifndef MSOPS_AICPU_UTILS_EIGEN_TENSOR_H_
#define MSOPS_AICPU_UTILS_EIGEN_TENSOR_H_

#include "kernel_util.h"

#if __has_include(<unsupported/Eigen/CXX11/Tensor>)

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <unsupported/Eigen/CXX11/Tensor>
#include <vector>

namespace aicpu {

template <typename T, int NDIMS = 1, typename IndexType = Eigen::DenseIndex>
struct TTypes {
  using Tensor =
      Eigen::TensorMap<Eigen::Tensor<T, NDIMS, Eigen::RowMajor, IndexType>, Eigen::Aligned>;
  using ConstTensor =
      Eigen::TensorMap<Eigen::Tensor<const T, NDIMS, Eigen::RowMajor, IndexType>, Eigen::Aligned>;
  using UnalignedTensor = Eigen::TensorMap<Eigen::Tensor<T, NDIMS, Eigen::RowMajor, IndexType>>;
  using UnalignedConstTensor =
      Eigen::TensorMap<Eigen::Tensor<const T, NDIMS, Eigen::RowMajor, IndexType>>;
  using Scalar =
      Eigen::TensorMap<Eigen::TensorFixedSize<T, Eigen::Sizes<>, Eigen::RowMajor, IndexType>,
                       Eigen::Aligned>;
  using ConstScalar =
      Eigen::TensorMap<Eigen::TensorFixedSize<const T, Eigen::Sizes<>, Eigen::RowMajor, IndexType>,
                       Eigen::Aligned>;
  using UnalignedScalar =
      Eigen::TensorMap<Eigen::TensorFixedSize<T, Eigen::Sizes<>, Eigen::RowMajor, IndexType>>;
  using UnalignedConstScalar =
      Eigen::TensorMap<Eigen::TensorFixedSize<const T, Eigen::Sizes<>, Eigen::RowMajor, IndexType>>;
  using Flat = Eigen::TensorMap<Eigen::Tensor<T, 1, Eigen::RowMajor, IndexType>, Eigen::Aligned>;
  using ConstFlat =
      Eigen::TensorMap<Eigen::Tensor<const T, 1, Eigen::RowMajor, IndexType>, Eigen::Aligned>;
  using UnalignedFlat = Eigen::TensorMap<Eigen::Tensor<T, 1, Eigen::RowMajor, IndexType>>;
  using UnalignedConstFlat =
      Eigen::TensorMap<Eigen::Tensor<const T, 1, Eigen::RowMajor, IndexType>>;
  using Vec = Flat;
  using ConstVec = ConstFlat;
  using UnalignedVec = UnalignedFlat;
  using UnalignedConstVec = UnalignedConstFlat;
  using Matrix = Eigen::TensorMap<Eigen::Tensor<T, 2, Eigen::RowMajor, IndexType>, Eigen::Aligned>;
  using ConstMatrix =
      Eigen::TensorMap<Eigen::Tensor<const T, 2, Eigen::RowMajor, IndexType>, Eigen::Aligned>;
  using UnalignedMatrix = Eigen::TensorMap<Eigen::Tensor<T, 2, Eigen::RowMajor, IndexType>>;
  using UnalignedConstMatrix =
      Eigen::TensorMap<Eigen::Tensor<const T, 2, Eigen::RowMajor, IndexType>>;
};

// A tensor's memory as Eigen tensors. The maps are Aligned: memory that XLA allocates is. A rank
// other than the tensor's throws std::invalid_argument.
using ShapeVector = std::vector<int64_t>;

class EigenTensor {
 public:
  EigenTensor() = delete;
  EigenTensor(Tensor* tensor, void* data)
      : tensor_(tensor), shape_(tensor->GetTensorShape()->GetDimSizes()), data_(data) {}
  // Memory of a shape, whatever tensor it belongs to.
  EigenTensor(std::vector<int64_t>& shape, void* data) : shape_(shape), data_(data) {}

  const Tensor* GetTensor() const { return tensor_; }

  // The shape as Eigen's sizes; with padding, ones follow where there are fewer axes.
  template <int NDIMS, typename IndexType = Eigen::DenseIndex>
  Eigen::DSizes<IndexType, NDIMS> AsEigenDSizes() const {
    return Eigen::DSizes<IndexType, NDIMS>(Sizes<static_cast<size_t>(NDIMS), IndexType>(shape_));
  }
  template <int NDIMS, typename IndexType = Eigen::DenseIndex>
  Eigen::DSizes<IndexType, NDIMS> AsEigenDSizesWithPadding() const {
    std::vector<int64_t> padded = shape_;
    padded.resize(std::max<size_t>(padded.size(), NDIMS), 1);
    return Eigen::DSizes<IndexType, NDIMS>(Sizes<static_cast<size_t>(NDIMS), IndexType>(padded));
  }

  template <typename T>
  typename TTypes<T>::Vec vec() {
    return tensor<T, 1>();
  }
  template <typename T>
  typename TTypes<T>::ConstVec vec() const {
    return tensor<T, 1>();
  }

  template <typename T>
  typename TTypes<T>::Matrix matrix() {
    return tensor<T, 2>();
  }
  template <typename T>
  typename TTypes<T>::ConstMatrix matrix() const {
    return tensor<T, 2>();
  }

  template <typename T, size_t NDIMS>
  typename TTypes<T, static_cast<int>(NDIMS)>::Tensor tensor() {
    return typename TTypes<T, static_cast<int>(NDIMS)>::Tensor(Data<T>(), Sizes<NDIMS>(shape_));
  }
  template <typename T, size_t NDIMS>
  typename TTypes<T, static_cast<int>(NDIMS)>::ConstTensor tensor() const {
    return typename TTypes<T, static_cast<int>(NDIMS)>::ConstTensor(Data<const T>(),
                                                                    Sizes<NDIMS>(shape_));
  }

  template <typename T>
  typename TTypes<T>::Flat flat() {
    return typename TTypes<T>::Flat(Data<T>(), Sizes<1>({Count(shape_)}));
  }
  template <typename T>
  typename TTypes<T>::ConstFlat flat() const {
    return typename TTypes<T>::ConstFlat(Data<const T>(), Sizes<1>({Count(shape_)}));
  }

  template <typename T>
  typename TTypes<T>::Scalar scalar() {
    CheckElements(1);
    return typename TTypes<T>::Scalar(Data<T>());
  }
  template <typename T>
  typename TTypes<T>::ConstScalar scalar() const {
    CheckElements(1);
    return typename TTypes<T>::ConstScalar(Data<const T>());
  }

  // The same entries in another shape.
  template <typename T, size_t NDIMS>
  typename TTypes<T, static_cast<int>(NDIMS)>::Tensor shaped(const std::vector<int64_t>& sizes) {
    return typename TTypes<T, static_cast<int>(NDIMS)>::Tensor(Data<T>(), Reshaped<NDIMS>(sizes));
  }
  template <typename T, size_t NDIMS>
  typename TTypes<T, static_cast<int>(NDIMS)>::ConstTensor shaped(
      const std::vector<int64_t>& sizes) const {
    return typename TTypes<T, static_cast<int>(NDIMS)>::ConstTensor(Data<const T>(),
                                                                    Reshaped<NDIMS>(sizes));
  }

  // All leading axes as one, or all trailing ones, so that NDIMS are left.
  template <typename T, size_t NDIMS = 2>
  typename TTypes<T, static_cast<int>(NDIMS)>::Tensor flat_inner_dims() {
    std::vector<int64_t> dims = shape_;
    while (dims.size() < NDIMS) dims.insert(dims.begin(), 1);
    while (dims.size() > NDIMS) {
      dims[1] *= dims[0];
      dims.erase(dims.begin());
    }
    return shaped<T, NDIMS>(dims);
  }
  template <typename T, size_t NDIMS = 2>
  typename TTypes<T, static_cast<int>(NDIMS)>::Tensor flat_outer_dims() {
    std::vector<int64_t> dims = shape_;
    while (dims.size() < NDIMS) dims.push_back(1);
    while (dims.size() > NDIMS) {
      dims[dims.size() - 2] *= dims.back();
      dims.pop_back();
    }
    return shaped<T, NDIMS>(dims);
  }

 private:
  template <size_t NDIMS, typename IndexType = Eigen::DenseIndex>
  using Array = Eigen::array<IndexType, NDIMS>;

  static int64_t Count(const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    return count;
  }

  template <typename T>
  T* Data() const {
    return static_cast<T*>(data_);
  }

  template <size_t NDIMS, typename IndexType = Eigen::DenseIndex>
  static Array<NDIMS, IndexType> Sizes(const std::vector<int64_t>& dims) {
    if (dims.size() != NDIMS) {
      throw std::invalid_argument("expected a tensor of rank " + std::to_string(NDIMS) +
                                  ", got one of the shape [" + VectorToString(dims) + "]");
    }
    Array<NDIMS, IndexType> sizes{};
    for (size_t i = 0; i < NDIMS; ++i) sizes[i] = static_cast<IndexType>(dims[i]);
    return sizes;
  }

  template <size_t NDIMS>
  Array<NDIMS> Reshaped(const std::vector<int64_t>& dims) const {
    CheckElements(Count(dims));
    return Sizes<NDIMS>(dims);
  }

  void CheckElements(int64_t count) const {
    if (Count(shape_) != count) {
      throw std::invalid_argument("expected a tensor of " + std::to_string(count) +
                                  " entries, got one of the shape [" + VectorToString(shape_) +
                                  "]");
    }
  }

  Tensor* const tensor_ = nullptr;
  const std::vector<int64_t> shape_;
  void* const data_;
};

}  // namespace aicpu

#endif

#endif  // MSOPS_AICPU_UTILS_EIGEN_TENSOR_H_
