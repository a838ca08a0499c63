// infer_info.h: what the infer functions of a graph operator see of an argument.
//
// Shapes and dtypes are known whenever an operator is called or traced, so nothing here is dynamic.
// The value of a tensor is known only if the operator asks for it (GetValueDependArgIndices) and it
// is not being traced.
#ifndef MSOPS_EXTENSION_GRAPH_INFER_INFO_H_
#define MSOPS_EXTENSION_GRAPH_INFER_INFO_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "msops_extension/graph/arguments.h"

namespace mindspore {

// The elements of a sequence, or of a tensor, as numbers.
template <typename T>
class ArrayValue {
 public:
  explicit ArrayValue(std::vector<T> values) : values_(std::move(values)) {}
  size_t size() const { return values_.size(); }
  const T& operator[](size_t index) const { return values_.at(index); }
  const std::vector<T>& ToVector() const { return values_; }
  bool HasUnknownValue() const { return false; }
  bool IsValueUnknown(size_t) const { return false; }

 private:
  std::vector<T> values_;
};

}  // namespace mindspore

namespace mindspore::ops {

class InferInfo;
using InferInfoPtr = std::unique_ptr<InferInfo>;
using InferInfoPtrList = std::vector<InferInfoPtr>;

class InferInfo {
 public:
  // value: the argument, null for an optional one that is absent.
  // contents: the numbers of a tensor as one tuple, null if they are unknown.
  InferInfo(std::string name, ValuePtr value, ValuePtr contents = nullptr)
      : name_(std::move(name)), value_(std::move(value)), contents_(std::move(contents)) {}

  bool IsNone() const { return value_ == nullptr; }
  bool IsSequence() const { return value_ && value_->isa<ValueTuple>(); }
  bool IsDynamic() const { return false; }
  bool IsDynamicRank() const { return false; }
  bool IsDynamicSequence() const { return false; }

  // A number and text have shape ().
  ShapeVector GetShape() const {
    if (const auto tensor = AsTensor(value_)) return tensor->shape();
    Refuse(IsNone() || IsSequence(), "GetShape", "a tensor or a number");
    return {};
  }

  TypeId GetType() const { return msops::extension::TypeOf(value_); }

  template <typename T>
  std::optional<T> GetScalarValue() const {
    Refuse(IsNone() || IsSequence(), "GetScalarValue", "a number, text or a tensor of one element");
    if (!AsTensor(value_)) return msops::extension::ScalarIn<T>(value_);
    const auto* const numbers = dynamic_cast<const ValueTuple*>(contents_.get());
    if (!numbers || numbers->size() != 1) return std::nullopt;
    return msops::extension::ScalarIn<T>((*numbers)[0]);
  }

  template <typename T>
  T GetScalarValueWithCheck() const {
    const std::optional<T> value = GetScalarValue<T>();
    Refuse(!value, "GetScalarValueWithCheck", "a known value of the type that is asked for");
    return *value;
  }

  template <typename T>
  std::optional<ArrayValue<T>> GetArrayValue() const {
    Refuse(IsNone(), "GetArrayValue", "a sequence or a tensor");
    std::optional<std::vector<T>> numbers =
        msops::extension::VectorIn<T>(AsTensor(value_) ? contents_ : value_);
    if (!numbers) return std::nullopt;
    return ArrayValue<T>(std::move(*numbers));
  }

  InferInfoPtrList GetSequenceElements() const {
    Refuse(!IsSequence(), "GetSequenceElements", "a tuple or list");
    InferInfoPtrList elements;
    for (const ValuePtr& item : dynamic_cast<const ValueTuple&>(*value_).value()) {
      elements.push_back(std::make_unique<InferInfo>(name_, item));
    }
    return elements;
  }

  std::string DebugInfo() const { return "argument " + name_; }

 private:
  void Refuse(bool is_refused, const char* method, const char* expected) const {
    if (!is_refused) return;
    MS_EXCEPTION(ValueError) << method << ": expected " << expected << "; argument " << name_
                             << " is " << msops::extension::KindOf(value_)
                             << (AsTensor(value_) ? " without a known value. List it in "
                                                    "GetValueDependArgIndices, and do not trace it."
                                                  : ".");
  }

  const std::string name_;
  const ValuePtr value_;
  const ValuePtr contents_;
};

}  // namespace mindspore::ops

#endif  // MSOPS_EXTENSION_GRAPH_INFER_INFO_H_
