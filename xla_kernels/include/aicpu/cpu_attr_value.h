// cpu_attr_value.h: the value of an attribute.
#ifndef MSOPS_AICPU_CPU_ATTR_VALUE_H_
#define MSOPS_AICPU_CPU_ATTR_VALUE_H_

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cpu_tensor.h"
#include "cpu_tensor_shape.h"
#include "cpu_types.h"

namespace aicpu {

// A getter of another type than the value's throws std::runtime_error, as a default would be a
// wrong answer that nobody sees. An integer can be read as a float and as a DataType, a list of
// integers as floats, DataTypes and a shape, and an empty list as any list.
class AttrValue {
 public:
  AttrValue(const AttrValue&) = delete;
  AttrValue& operator=(const AttrValue&) = delete;

  std::string GetString() const { return Get<std::string>("a string"); }
  void SetString(const std::string& value) { value_ = value; }
  std::vector<std::string> GetListString() const { return GetList<std::string>("strings"); }
  void SetListString(const std::vector<std::string>& values) { value_ = values; }
  int32_t ListStringSize() const { return Size(GetListString()); }
  void AddListString(const std::string& value) { Add(value); }

  int64_t GetInt() const { return Get<int64_t>("an integer"); }
  void SetInt(int64_t value) { value_ = value; }
  std::vector<int64_t> GetListInt() const { return GetList<int64_t>("integers"); }
  void SetListInt(const std::vector<int64_t>& values) { value_ = values; }
  int32_t ListIntSize() const { return Size(GetListInt()); }
  void AddListInt(int64_t value) { Add(value); }

  std::vector<std::vector<int64_t>> GetListListInt() const { return GetList<Ints>("lists"); }
  void SetListListInt(const std::vector<std::vector<int64_t>>& values) { value_ = values; }

  float GetFloat() const {
    if (const auto* held = std::get_if<int64_t>(&value_)) return static_cast<float>(*held);
    return static_cast<float>(Get<double>("a float"));
  }
  void SetFloat(float value) { value_ = static_cast<double>(value); }
  std::vector<float> GetListFloat() const {
    if (const auto* held = std::get_if<Ints>(&value_)) return Convert<float>(*held);
    return Convert<float>(GetList<double>("floats"));
  }
  void SetListFloat(const std::vector<float>& values) { value_ = Convert<double>(values); }
  int32_t ListFloatSize() const { return Size(GetListFloat()); }
  void AddListFloat(float value) { Add(static_cast<double>(value)); }

  bool GetBool() const { return Get<bool>("a bool"); }
  void SetBool(bool value) { value_ = value; }
  std::vector<bool> GetListBool() const { return GetList<bool>("bools"); }
  void SetListBool(const std::vector<bool>& values) { value_ = values; }
  int32_t ListBoolSize() const { return Size(GetListBool()); }
  void AddListBool(bool value) { Add(value); }

  DataType GetDataType() const {
    if (const auto* held = std::get_if<int64_t>(&value_)) return static_cast<DataType>(*held);
    return Get<DataType>("a DataType");
  }
  void SetDataType(DataType value) { value_ = value; }
  std::vector<DataType> GetListDataType() const {
    if (const auto* held = std::get_if<Ints>(&value_)) return Convert<DataType>(*held);
    return GetList<DataType>("DataTypes");
  }
  void SetListDataType(const std::vector<DataType>& values) { value_ = values; }
  int32_t ListDataTypeSize() const { return Size(GetListDataType()); }
  void AddListDataType(DataType value) { Add(value); }

  std::shared_ptr<TensorShape> GetTensorShape() const {
    if (const auto* held = std::get_if<Ints>(&value_)) return NewShape(*held);
    return Get<Shape>("a shape");
  }
  bool SetTensorShape(const TensorShape* value) {
    if (!value) return false;
    value_ = CopyShape(*value);
    return true;
  }
  std::vector<std::shared_ptr<TensorShape>> GetListTensorShape() const {
    if (const auto* held = std::get_if<std::vector<Ints>>(&value_)) {
      std::vector<Shape> shapes;
      for (const Ints& dims : *held) shapes.push_back(NewShape(dims));
      return shapes;
    }
    return GetList<Shape>("shapes");
  }
  bool SetListTensorShape(const std::vector<TensorShape*>& values) {
    std::vector<Shape> shapes;
    for (const TensorShape* value : values) {
      if (!value) return false;
      shapes.push_back(CopyShape(*value));
    }
    value_ = std::move(shapes);
    return true;
  }
  int32_t ListTensorShapeSize() const { return Size(GetListTensorShape()); }
  std::shared_ptr<TensorShape> AddListTensorShape() { return Add(NewShape({})); }

  std::shared_ptr<Tensor> GetTensor() const { return Get<TensorPtr>("a tensor"); }
  bool SetTensor(const Tensor* value) {
    if (!value) return false;
    value_ = CopyTensor(*value);
    return true;
  }
  std::vector<std::shared_ptr<Tensor>> GetListTensor() const {
    return GetList<TensorPtr>("tensors");
  }
  bool SetListTensor(const std::vector<Tensor*>& values) {
    std::vector<TensorPtr> tensors;
    for (const Tensor* value : values) {
      if (!value) return false;
      tensors.push_back(CopyTensor(*value));
    }
    value_ = std::move(tensors);
    return true;
  }
  int32_t ListTensorSize() const { return Size(GetListTensor()); }
  std::shared_ptr<Tensor> AddListTensor() { return Add(TensorPtr(new Tensor())); }

 private:
  friend class CpuKernelContext;
  friend class CpuKernelUtils;
  friend class NodeDefBuilder;

  using Ints = std::vector<int64_t>;
  using Shape = std::shared_ptr<TensorShape>;
  using TensorPtr = std::shared_ptr<Tensor>;

  AttrValue() = default;
  explicit AttrValue(std::string name) : name_(std::move(name)) {}

  template <typename To, typename From>
  static std::vector<To> Convert(const std::vector<From>& from) {
    std::vector<To> to;
    to.reserve(from.size());
    for (const From& value : from) to.push_back(static_cast<To>(value));
    return to;
  }

  template <typename T>
  static int32_t Size(const std::vector<T>& values) {
    return static_cast<int32_t>(values.size());
  }

  static Shape NewShape(const Ints& dims) {
    Shape shape(new TensorShape());
    shape->SetDimSizes(dims);
    return shape;
  }

  static Shape CopyShape(const TensorShape& from) {
    Shape shape(new TensorShape());
    shape->Assign(from);
    return shape;
  }

  static TensorPtr CopyTensor(const Tensor& from) {
    TensorPtr tensor(new Tensor());
    tensor->SetTensorShape(from.shape_.get());
    tensor->data_ = from.data_;
    tensor->size_bytes_ = from.size_bytes_;
    tensor->dtype_ = from.dtype_;
    tensor->name_ = from.name_;
    return tensor;
  }

  [[noreturn]] void ThrowWrongType(const std::string& expected) const {
    constexpr const char* kHeld[] = {
        "not set",           "a bool",    "an integer", "a float",  "a string",        "a DataType",
        "a shape",           "a tensor",  "bools",      "integers", "floats",          "strings",
        "lists of integers", "DataTypes", "shapes",     "tensors",  "lists of floats",
    };
    static_assert(std::size(kHeld) == std::variant_size_v<decltype(value_)>);
    throw std::runtime_error("attribute '" + name_ + "' was asked for as " + expected +
                             ", but is " + kHeld[value_.index()]);
  }

  template <typename T>
  const T& Get(const char* expected) const {
    if (const T* held = std::get_if<T>(&value_)) return *held;
    ThrowWrongType(expected);
  }

  template <typename T>
  std::vector<T> GetList(const char* expected) const {
    if (const auto* held = std::get_if<std::vector<T>>(&value_)) return *held;
    const bool is_empty = std::visit(
        [](const auto& held) {
          using Held = std::decay_t<decltype(held)>;
          if constexpr (IsList<Held>::value) return held.empty();
          return false;
        },
        value_);
    if (is_empty) return {};
    ThrowWrongType(expected);
  }

  template <typename T>
  T Add(T value) {
    if (!std::holds_alternative<std::vector<T>>(value_)) value_ = std::vector<T>();
    std::get<std::vector<T>>(value_).push_back(value);
    return value;
  }

  template <typename T>
  struct IsList : std::false_type {};
  template <typename T>
  struct IsList<std::vector<T>> : std::true_type {};

  std::variant<std::monostate, bool, int64_t, double, std::string, DataType, Shape, TensorPtr,
               std::vector<bool>, Ints, std::vector<double>, std::vector<std::string>,
               std::vector<Ints>, std::vector<DataType>, std::vector<Shape>, std::vector<TensorPtr>,
               std::vector<std::vector<double>>>
      value_;
  std::string name_;
};

}  // namespace aicpu

#endif  // MSOPS_AICPU_CPU_ATTR_VALUE_H_
