// kernel_tensor.h: mindspore::kernel::KernelTensor, an argument or result as a kernel sees it.
#ifndef MSOPS_EXTENSION_GRAPH_KERNEL_TENSOR_H_
#define MSOPS_EXTENSION_GRAPH_KERNEL_TENSOR_H_

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "msops_extension/element.h"
#include "msops_extension/graph/arguments.h"

namespace mindspore::kernel {

// In Launch a tensor has memory; in Init and Resize it has none yet. A number or text is a value
// that never changes, and has memory with that value.
class KernelTensor {
 public:
  explicit KernelTensor(ValuePtr value)
      : value_(std::move(value)),
        tensor_(AsTensor(value_)),
        type_(msops::extension::TypeOf(value_)) {
    if (tensor_) {
      shape_ = tensor_->shape();
    } else {
      KeepBytes();
    }
  }

  // kMetaTypeNone for an optional argument that is absent.
  TypeId type_id() const {
    if (tensor_) return kObjectTypeTensorType;
    return type_ < kNumberTypeBool ? type_ : kObjectTypeNumber;
  }
  TypeId dtype_id() const { return type_; }
  const ShapeVector& GetShapeVector() const { return shape_; }
  const ShapeVector& GetDeviceShapeVector() const { return shape_; }
  bool IsDynamicShape() const { return false; }
  std::string GetStringFormat() const { return "DefaultFormat"; }
  uint32_t device_id() const { return 0; }
  uint32_t stream_id() const { return 0; }

  // Address of the first element; null for a tensor in Init and Resize, and for what is absent.
  void* device_ptr() const {
    if (tensor_) return tensor_->is_memory() ? tensor_->data_c() : nullptr;
    return bytes_.empty() ? nullptr : const_cast<char*>(bytes_.data());
  }
  size_t size() const {
    if (!tensor_) return bytes_.size();
    return tensor_->DataSize() * msops::extension::ElementOf(type_).size;
  }

  const ValuePtr& GetValue() const { return value_; }
  // A number, text, or a vector of numbers; of a tensor only in Launch, and on the host.
  template <typename T>
  std::optional<T> GetValue() const {
    if constexpr (msops::extension::IsVector<T>::value) {
      if (!tensor_) return msops::extension::VectorIn<typename T::value_type>(value_);
      return Elements<typename T::value_type>();
    } else {
      return tensor_ ? std::nullopt : msops::extension::ScalarIn<T>(value_);
    }
  }
  template <typename T>
  T GetValueWithCheck() const {
    std::optional<T> value = GetValue<T>();
    if (!value) {
      MS_EXCEPTION(ValueError) << "GetValueWithCheck: the argument is "
                               << msops::extension::KindOf(value_)
                               << (tensor_ ? ", whose value is not known here."
                                           : " of another type than is asked for.");
    }
    return *value;
  }
  template <typename T>
  std::optional<T> GetOptionalValueWithCheck() const {
    if (!value_) return std::nullopt;
    return GetValueWithCheck<T>();
  }

  const tensor::TensorPtr& tensor() const { return tensor_; }

 private:
  template <typename T>
  std::optional<std::vector<T>> Elements() const {
    const auto* const first = static_cast<const T*>(device_ptr());
    if (!first || !msops::extension::Holds<T>(type_)) return std::nullopt;
    return std::vector<T>(first, first + tensor_->DataSize());
  }

  template <typename T>
  void Append(const T& number) {
    const size_t size = bytes_.size();
    bytes_.resize(size + sizeof(T));
    std::memcpy(bytes_.data() + size, &number, sizeof(T));
  }
  void AppendNumber(const ValuePtr& value) {
    using msops::extension::ImmediateIn;
    if (const auto* const flag = ImmediateIn<bool>(value)) Append(*flag);
    if (const auto* const number = ImmediateIn<int64_t>(value)) Append(*number);
    if (const auto* const number = ImmediateIn<double>(value)) Append(static_cast<float>(*number));
  }
  void KeepBytes() {
    if (const auto* const text = msops::extension::ImmediateIn<std::string>(value_)) {
      bytes_.assign(text->begin(), text->end());
    } else if (const auto* const tuple = dynamic_cast<const ValueTuple*>(value_.get())) {
      for (const ValuePtr& item : tuple->value()) AppendNumber(item);
      shape_ = {static_cast<int64_t>(tuple->size())};
      if (tuple->size()) type_ = msops::extension::TypeOf((*tuple)[0]);
    } else {
      AppendNumber(value_);
    }
  }

  ValuePtr value_;
  tensor::TensorPtr tensor_;
  TypeId type_;
  ShapeVector shape_;
  std::vector<char> bytes_;
};
using KernelTensorPtr = std::shared_ptr<KernelTensor>;

}  // namespace mindspore::kernel

#endif  // MSOPS_EXTENSION_GRAPH_KERNEL_TENSOR_H_
