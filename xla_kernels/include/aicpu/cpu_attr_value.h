// cpu_attr_value.h: the value of an attribute.
#ifndef MSOPS_AICPU_CPU_ATTR_VALUE_H_
#define MSOPS_AICPU_CPU_ATTR_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cpu_tensor.h"
#include "cpu_tensor_shape.h"
#include "cpu_types.h"
#include "msops_aicpu.h"

namespace aicpu {

// A getter of another type than the value's throws std::runtime_error, as a default would be a
// wrong answer that nobody sees. An integer can be read as a float and as a DataType, a list of
// integers as floats, DataTypes and a shape, and an empty list as any list.
class AttrValue {
 public:
  MSOPS_AICPU_ONCE ~AttrValue() {}
  AttrValue(const AttrValue&) = delete;
  AttrValue& operator=(const AttrValue&) = delete;

  std::string GetString() const { return One(kText, "a string").text_; }
  void SetString(const std::string& value) { Become(kText, kOne).text_ = value; }
  std::vector<std::string> GetListString() const { return List(kText, "strings").texts_; }
  void SetListString(const std::vector<std::string>& values) {
    Become(kText, kList).texts_ = values;
  }
  int32_t ListStringSize() const { return Size(List(kText, "strings").texts_); }
  void AddListString(const std::string& value) { ToList(kText).texts_.push_back(value); }

  int64_t GetInt() const { return One(kInt, "an integer").int_; }
  void SetInt(int64_t value) { Become(kInt, kOne).int_ = value; }
  std::vector<int64_t> GetListInt() const { return List(kInt, "integers").ints_; }
  void SetListInt(const std::vector<int64_t>& values) { Become(kInt, kList).ints_ = values; }
  int32_t ListIntSize() const { return Size(List(kInt, "integers").ints_); }
  void AddListInt(int64_t value) { ToList(kInt).ints_.push_back(value); }

  std::vector<std::vector<int64_t>> GetListListInt() const {
    if (!IsEmptyList()) Check(kInt, kRows, "lists");
    std::vector<std::vector<int64_t>> rows;
    const int64_t* begin = ints_.data();
    for (const int64_t length : lengths_) {
      rows.emplace_back(begin, begin + length);
      begin += length;
    }
    return rows;
  }
  void SetListListInt(const std::vector<std::vector<int64_t>>& values) {
    Become(kInt, kRows);
    for (const std::vector<int64_t>& row : values) {
      lengths_.push_back(static_cast<int64_t>(row.size()));
      ints_.insert(ints_.end(), row.begin(), row.end());
    }
  }

  float GetFloat() const {
    if (Is(kInt, kOne)) return static_cast<float>(int_);
    return static_cast<float>(One(kFloat, "a float").float_);
  }
  void SetFloat(float value) { Become(kFloat, kOne).float_ = static_cast<double>(value); }
  std::vector<float> GetListFloat() const {
    if (Is(kInt, kList)) return Convert<float>(ints_);
    return Convert<float>(List(kFloat, "floats").floats_);
  }
  void SetListFloat(const std::vector<float>& values) {
    Become(kFloat, kList).floats_ = Convert<double>(values);
  }
  int32_t ListFloatSize() const { return Size(GetListFloat()); }
  void AddListFloat(float value) { ToList(kFloat).floats_.push_back(static_cast<double>(value)); }

  bool GetBool() const { return One(kBool, "a bool").int_ != 0; }
  void SetBool(bool value) { Become(kBool, kOne).int_ = value; }
  std::vector<bool> GetListBool() const { return Convert<bool>(List(kBool, "bools").ints_); }
  void SetListBool(const std::vector<bool>& values) {
    Become(kBool, kList).ints_ = Convert<int64_t>(values);
  }
  int32_t ListBoolSize() const { return Size(List(kBool, "bools").ints_); }
  void AddListBool(bool value) { ToList(kBool).ints_.push_back(value); }

  DataType GetDataType() const {
    if (Is(kInt, kOne)) return static_cast<DataType>(int_);
    return static_cast<DataType>(One(kDataType, "a DataType").int_);
  }
  void SetDataType(DataType value) { Become(kDataType, kOne).int_ = value; }
  std::vector<DataType> GetListDataType() const {
    if (Is(kInt, kList)) return Convert<DataType>(ints_);
    return Convert<DataType>(List(kDataType, "DataTypes").ints_);
  }
  void SetListDataType(const std::vector<DataType>& values) {
    Become(kDataType, kList).ints_ = Convert<int64_t>(values);
  }
  int32_t ListDataTypeSize() const { return Size(GetListDataType()); }
  void AddListDataType(DataType value) { ToList(kDataType).ints_.push_back(value); }

  std::shared_ptr<TensorShape> GetTensorShape() const {
    if (Is(kInt, kList)) return NewShape(ints_);
    return One(kShape, "a shape").shapes_[0];
  }
  bool SetTensorShape(const TensorShape* value) {
    if (!value) return false;
    Shapes copy = {CopyShape(*value)};
    Become(kShape, kOne).shapes_ = std::move(copy);
    return true;
  }
  std::vector<std::shared_ptr<TensorShape>> GetListTensorShape() const {
    if (!Is(kInt, kRows)) return List(kShape, "shapes").shapes_;
    Shapes shapes;
    for (const std::vector<int64_t>& dims : GetListListInt()) shapes.push_back(NewShape(dims));
    return shapes;
  }
  bool SetListTensorShape(const std::vector<TensorShape*>& values) {
    Shapes shapes;
    for (const TensorShape* value : values) {
      if (!value) return false;
      shapes.push_back(CopyShape(*value));
    }
    Become(kShape, kList).shapes_ = std::move(shapes);
    return true;
  }
  int32_t ListTensorShapeSize() const { return Size(GetListTensorShape()); }
  std::shared_ptr<TensorShape> AddListTensorShape() {
    ToList(kShape).shapes_.push_back(NewShape({}));
    return shapes_.back();
  }

  std::shared_ptr<Tensor> GetTensor() const { return One(kTensor, "a tensor").tensors_[0]; }
  bool SetTensor(const Tensor* value) {
    if (!value) return false;
    Tensors copy = {CopyTensor(*value)};
    Become(kTensor, kOne).tensors_ = std::move(copy);
    return true;
  }
  std::vector<std::shared_ptr<Tensor>> GetListTensor() const {
    return List(kTensor, "tensors").tensors_;
  }
  bool SetListTensor(const std::vector<Tensor*>& values) {
    Tensors tensors;
    for (const Tensor* value : values) {
      if (!value) return false;
      tensors.push_back(CopyTensor(*value));
    }
    Become(kTensor, kList).tensors_ = std::move(tensors);
    return true;
  }
  int32_t ListTensorSize() const { return Size(List(kTensor, "tensors").tensors_); }
  std::shared_ptr<Tensor> AddListTensor() {
    ToList(kTensor).tensors_.push_back(std::shared_ptr<Tensor>(new Tensor()));
    return tensors_.back();
  }

 private:
  friend class CpuKernelContext;
  friend class CpuKernelUtils;
  friend class NodeDefBuilder;

  using Shapes = std::vector<std::shared_ptr<TensorShape>>;
  using Tensors = std::vector<std::shared_ptr<Tensor>>;

  // The first ones are those of MsopsAicpuKind.
  enum Kind { kBool, kInt, kFloat, kText, kDataType, kShape, kTensor, kNotSet };
  enum Depth { kOne, kList, kRows };

  AttrValue() = default;
  explicit AttrValue(std::string name) : name_(std::move(name)) {}

  MSOPS_AICPU_ONCE explicit AttrValue(const MsopsAicpuAttribute& from)
      : kind_(static_cast<Kind>(from.kind)),
        depth_(static_cast<Depth>(from.depth)),
        name_(from.name) {
    switch (kind_) {
      case kBool:
        Read(static_cast<const uint8_t*>(from.values), from.count, &int_, &ints_);
        break;
      case kInt:
        Read(static_cast<const int64_t*>(from.values), from.count, &int_, &ints_);
        break;
      case kFloat:
        Read(static_cast<const double*>(from.values), from.count, &float_, &floats_);
        break;
      default:
        for (uint64_t i = 0; i < from.count; ++i) {
          const auto& text = static_cast<const MsopsAicpuText*>(from.values)[i];
          if (depth_ == kOne) {
            text_.assign(text.data, text.size);
          } else {
            texts_.emplace_back(text.data, text.size);
          }
        }
    }
    if (depth_ == kRows) lengths_.assign(from.lengths, from.lengths + from.rows);
  }

  template <typename From, typename To>
  void Read(const From* from, uint64_t count, To* one, std::vector<To>* list) {
    if (depth_ == kOne) {
      *one = from[0];
    } else {
      list->assign(from, from + count);
    }
  }

  template <typename To, typename From>
  static std::vector<To> Convert(const std::vector<From>& from) {
    std::vector<To> to;
    to.reserve(from.size());
    for (const auto& value : from) to.push_back(static_cast<To>(value));
    return to;
  }

  template <typename T>
  static int32_t Size(const std::vector<T>& values) {
    return static_cast<int32_t>(values.size());
  }

  static std::shared_ptr<TensorShape> NewShape(const std::vector<int64_t>& dims) {
    std::shared_ptr<TensorShape> shape(new TensorShape());
    shape->SetDimSizes(dims);
    return shape;
  }

  static std::shared_ptr<TensorShape> CopyShape(const TensorShape& from) {
    std::shared_ptr<TensorShape> shape(new TensorShape());
    shape->Assign(from);
    return shape;
  }

  static std::shared_ptr<Tensor> CopyTensor(const Tensor& from) {
    std::shared_ptr<Tensor> tensor(new Tensor());
    tensor->SetTensorShape(from.shape_.get());
    tensor->data_ = from.data_;
    tensor->size_bytes_ = from.size_bytes_;
    tensor->dtype_ = from.dtype_;
    tensor->name_ = from.name_;
    return tensor;
  }

  bool Is(Kind kind, Depth depth) const { return kind_ == kind && depth_ == depth; }

  bool IsEmptyList() const {
    return depth_ != kOne && ints_.empty() && floats_.empty() && texts_.empty() &&
           shapes_.empty() && tensors_.empty() && lengths_.empty();
  }

  MSOPS_AICPU_ONCE void Check(Kind kind, Depth depth, const char* expected) const {
    if (Is(kind, depth)) return;
    constexpr const char* kNames[][3] = {
        {"a bool", "bools", "lists of bools"},
        {"an integer", "integers", "lists of integers"},
        {"a float", "floats", "lists of floats"},
        {"a string", "strings", "lists of strings"},
        {"a DataType", "DataTypes", "lists of DataTypes"},
        {"a shape", "shapes", "lists of shapes"},
        {"a tensor", "tensors", "lists of tensors"},
        {"not set", "not set", "not set"},
    };
    throw std::runtime_error("attribute '" + name_ + "' was asked for as " + expected +
                             ", but is " + kNames[kind_][depth_]);
  }

  const AttrValue& One(Kind kind, const char* expected) const {
    Check(kind, kOne, expected);
    return *this;
  }

  // Where the list is empty, the members of all kinds are.
  const AttrValue& List(Kind kind, const char* expected) const {
    if (!IsEmptyList()) Check(kind, kList, expected);
    return *this;
  }

  // Forgets the value, for one of this kind.
  AttrValue& Become(Kind kind, Depth depth) {
    kind_ = kind;
    depth_ = depth;
    ints_.clear();
    floats_.clear();
    texts_.clear();
    shapes_.clear();
    tensors_.clear();
    lengths_.clear();
    return *this;
  }

  AttrValue& ToList(Kind kind) { return Is(kind, kList) ? *this : Become(kind, kList); }

  // Plain members, as a std::variant of them takes a compiler longer than all that a simple kernel
  // does. Only those of the kind have values: a bool and a DataType are integers here, and the
  // entries of lists in a list follow each other.
  Kind kind_ = kNotSet;
  Depth depth_ = kOne;
  int64_t int_ = 0;
  double float_ = 0;
  std::string text_;
  std::vector<int64_t> ints_;
  std::vector<double> floats_;
  std::vector<std::string> texts_;
  Shapes shapes_;
  Tensors tensors_;
  std::vector<int64_t> lengths_;
  std::string name_;
};

}  // namespace aicpu

#endif  // MSOPS_AICPU_CPU_ATTR_VALUE_H_
