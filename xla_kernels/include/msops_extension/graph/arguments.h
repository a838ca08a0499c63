// arguments.h: arguments of a graph operator: null, a tensor, a number, text, or a tuple of these.
#ifndef MSOPS_EXTENSION_GRAPH_ARGUMENTS_H_
#define MSOPS_EXTENSION_GRAPH_ARGUMENTS_H_

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "msops_extension/tensor.h"

namespace mindspore {

using ShapeArray = std::vector<ShapeVector>;

// The tensor that a value is, or null.
inline tensor::TensorPtr AsTensor(const ValuePtr& value) {
  return std::dynamic_pointer_cast<tensor::Tensor>(value);
}

}  // namespace mindspore

namespace msops::extension {

using mindspore::ValuePtr;

template <typename Type>
const Type* ImmediateIn(const ValuePtr& value) {
  const auto* const found = dynamic_cast<const mindspore::Immediate<Type>*>(value.get());
  return found ? &found->value() : nullptr;
}

// The dtype of a tensor or number, else the kind of object. A float is Float32 and an int Int64, as
// everywhere in MindSpore.
inline mindspore::TypeId TypeOf(const ValuePtr& value) {
  if (!value) return mindspore::kMetaTypeNone;
  if (const auto tensor = mindspore::AsTensor(value)) return tensor->data_type();
  if (ImmediateIn<bool>(value)) return mindspore::kNumberTypeBool;
  if (ImmediateIn<int64_t>(value)) return mindspore::kNumberTypeInt64;
  if (ImmediateIn<double>(value)) return mindspore::kNumberTypeFloat32;
  if (ImmediateIn<std::string>(value)) return mindspore::kObjectTypeString;
  return mindspore::kObjectTypeTuple;
}

inline std::string KindOf(const ValuePtr& value) {
  switch (TypeOf(value)) {
    case mindspore::kMetaTypeNone:
      return "None";
    case mindspore::kObjectTypeString:
      return "text";
    case mindspore::kObjectTypeTuple:
      return "a tuple";
    default:
      return mindspore::AsTensor(value) ? "a tensor" : "a number";
  }
}

// The number or text in a value, nothing if it is of another kind or does not fit.
template <typename Type>
std::optional<Type> ScalarIn(const ValuePtr& value) {
  if constexpr (std::is_same_v<Type, bool>) {
    if (const bool* const flag = ImmediateIn<bool>(value)) return *flag;
  } else if constexpr (std::is_integral_v<Type>) {
    const int64_t* const number = ImmediateIn<int64_t>(value);
    if (number && static_cast<int64_t>(static_cast<Type>(*number)) == *number &&
        (std::is_signed_v<Type> || *number >= 0)) {
      return static_cast<Type>(*number);
    }
  } else if constexpr (std::is_floating_point_v<Type>) {
    if (const double* const number = ImmediateIn<double>(value)) return static_cast<Type>(*number);
  } else if constexpr (std::is_same_v<Type, std::string>) {
    if (const std::string* const text = ImmediateIn<std::string>(value)) return *text;
  } else {
    static_assert(std::is_same_v<Type, std::string>, "A value is a number, a bool or text.");
  }
  return std::nullopt;
}

// The numbers of a tuple; a number is a tuple of one.
template <typename Type>
std::optional<std::vector<Type>> VectorIn(const ValuePtr& value) {
  std::vector<Type> numbers;
  const auto* const tuple = dynamic_cast<const mindspore::ValueTuple*>(value.get());
  const mindspore::ValuePtrList one{value};
  for (const ValuePtr& item : tuple ? tuple->value() : one) {
    const std::optional<Type> number = ScalarIn<Type>(item);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace msops::extension

#endif  // MSOPS_EXTENSION_GRAPH_ARGUMENTS_H_
