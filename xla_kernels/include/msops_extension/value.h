// value.h: mindspore::Value, what operators take: tensors, numbers, text, and tuples of values.
#ifndef MSOPS_EXTENSION_VALUE_H_
#define MSOPS_EXTENSION_VALUE_H_

#include <cctype>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "msops_extension/core.h"
#include "msops_extension/log.h"

using ShapeVector = std::vector<int64_t>;

namespace mindspore {

using ::ShapeVector;

// The numbers of MindSpore 2.7.2, core/include/mindapi/base/type_id.h, of the dtypes msops has.
enum TypeId : int {
  kTypeUnknown = 0,
  kMetaTypeNone = 7,
  kObjectTypeNumber = 11,
  kObjectTypeString = 12,
  kObjectTypeList = 13,
  kObjectTypeTuple = 14,
  kObjectTypeTensorType = 17,
  kNumberTypeBool = 30,
  kNumberTypeInt = 31,
  kNumberTypeInt8 = 32,
  kNumberTypeInt16 = 33,
  kNumberTypeInt32 = 34,
  kNumberTypeInt64 = 35,
  kNumberTypeUInt = 36,
  kNumberTypeUInt8 = 37,
  kNumberTypeUInt16 = 38,
  kNumberTypeUInt32 = 39,
  kNumberTypeUInt64 = 40,
  kNumberTypeFloat = 41,
  kNumberTypeFloat16 = 42,
  kNumberTypeFloat32 = 43,
  kNumberTypeFloat64 = 44,
  kNumberTypeBFloat16 = 45,
  kNumberTypeDouble = 49,
  kNumberTypeComplex = 50,
  kNumberTypeComplex64 = 51,
  kNumberTypeComplex128 = 52,
};

// "Float32" and its like, in lower case if that is asked for.
inline std::string TypeIdToString(TypeId id, bool to_lower = false) {
  static const std::map<int, const char*> names = {{kTypeUnknown, "None"},
                                                   {kMetaTypeNone, "None"},
                                                   {kNumberTypeBool, "Bool"},
                                                   {kNumberTypeInt, "int"},
                                                   {kNumberTypeInt8, "Int8"},
                                                   {kNumberTypeInt16, "Int16"},
                                                   {kNumberTypeInt32, "Int32"},
                                                   {kNumberTypeInt64, "Int64"},
                                                   {kNumberTypeUInt, "uint"},
                                                   {kNumberTypeUInt8, "UInt8"},
                                                   {kNumberTypeUInt16, "UInt16"},
                                                   {kNumberTypeUInt32, "UInt32"},
                                                   {kNumberTypeUInt64, "UInt64"},
                                                   {kNumberTypeFloat, "float"},
                                                   {kNumberTypeFloat16, "Float16"},
                                                   {kNumberTypeFloat32, "Float32"},
                                                   {kNumberTypeFloat64, "Float64"},
                                                   {kNumberTypeBFloat16, "BFloat16"},
                                                   {kNumberTypeDouble, "Float64"},
                                                   {kNumberTypeComplex64, "Complex64"},
                                                   {kNumberTypeComplex128, "Complex128"}};
  const auto found = names.find(id);
  if (found == names.end()) {
    MS_EXCEPTION(RuntimeError) << "TypeIdToString: expected the TypeId of a dtype that msops has; "
                               << "got " << static_cast<int>(id) << ".";
  }
  std::string name = found->second;
  if (to_lower) {
    for (char& letter : name) letter = static_cast<char>(std::tolower(letter));
  }
  return name;
}

namespace abstract {
// An extent, or a rank, that is not known.
struct Shape {
  static constexpr int64_t kShapeDimAny = -1;
  static constexpr int64_t kShapeRankAny = -2;
};
using TensorShape = Shape;
}  // namespace abstract

class Value : public std::enable_shared_from_this<Value> {
 public:
  virtual ~Value() = default;

  // The value as msops takes it: a tensor's handle, a number, text, a tuple of these. Needs the
  // GIL.
  virtual py::object ToPython() const = 0;

  template <typename Type>
  bool isa() const {
    return dynamic_cast<const Type*>(this) != nullptr;
  }

  // `value->cast<TensorPtr>()`; null if it is of another class.
  template <typename Pointer>
  Pointer cast() {
    return std::dynamic_pointer_cast<typename Pointer::element_type>(shared_from_this());
  }
};
using ValuePtr = std::shared_ptr<Value>;
using ValuePtrList = std::vector<ValuePtr>;

// A number, text, or a vector of them.
template <typename Type>
class Immediate final : public Value {
 public:
  explicit Immediate(Type value) : value_(std::move(value)) {}
  const Type& value() const { return value_; }
  py::object ToPython() const override { return py::cast(value_); }

 private:
  Type value_;
};

using BoolImm = Immediate<bool>;
using BoolImmPtr = std::shared_ptr<BoolImm>;
using Int64Imm = Immediate<int64_t>;
using Int64ImmPtr = std::shared_ptr<Int64Imm>;
using FP32Imm = Immediate<float>;
using FP32ImmPtr = std::shared_ptr<FP32Imm>;
using StringImm = Immediate<std::string>;
using StringImmPtr = std::shared_ptr<StringImm>;

class ValueTuple final : public Value {
 public:
  ValueTuple() = default;
  explicit ValueTuple(ValuePtrList values) : values_(std::move(values)) {}
  const ValuePtrList& value() const { return values_; }
  size_t size() const { return values_.size(); }
  const ValuePtr& operator[](size_t index) const { return values_.at(index); }

  py::object ToPython() const override {
    std::vector<py::object> items;
    for (const ValuePtr& value : values_) {
      items.push_back(value ? value->ToPython() : py::none());
    }
    return msops::extension::Tuple(std::move(items));
  }

 private:
  ValuePtrList values_;
};
using ValueTuplePtr = std::shared_ptr<ValueTuple>;

// MakeValue<int64_t>(1), MakeValue(std::string("sum")), MakeValue(std::vector<int64_t>{0, 1}).
template <typename Type>
ValuePtr MakeValue(const Type& value) {
  if constexpr (std::is_convertible_v<Type, ValuePtr>) {
    return value;
  } else if constexpr (std::is_same_v<Type, ValuePtrList>) {
    return std::make_shared<ValueTuple>(value);
  } else if constexpr (std::is_convertible_v<Type, std::string>) {
    return std::make_shared<Immediate<std::string>>(value);
  } else {
    return std::make_shared<Immediate<Type>>(value);
  }
}

// The number or text in a value. An int64_t may be asked for as an int, but not as a double.
template <typename Type>
Type GetValue(const ValuePtr& value) {
  MS_EXCEPTION_IF_NULL(value);
  if (const auto* known = dynamic_cast<const Immediate<Type>*>(value.get())) return known->value();
  const msops::extension::Gil gil;
  try {
    return value->ToPython().cast<Type>();
  } catch (const py::cast_error&) {
    MS_EXCEPTION(TypeError) << "GetValue: the value "
                            << py::str(value->ToPython()).cast<std::string>()
                            << " is not of the type that is asked for.";
  }
}

}  // namespace mindspore

#endif  // MSOPS_EXTENSION_VALUE_H_
