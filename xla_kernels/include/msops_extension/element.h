// element.h: the C++ type of the entries of a tensor, for each dtype.
#ifndef MSOPS_EXTENSION_ELEMENT_H_
#define MSOPS_EXTENSION_ELEMENT_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "msops_extension/value.h"

namespace msops::extension {

enum class ElementKind { kBool, kInt, kUInt, kFloat, kComplex, kOther };

struct Element {
  ElementKind kind;
  size_t size;
};

inline Element ElementOf(mindspore::TypeId type_id) {
  switch (type_id) {
    case mindspore::kNumberTypeBool:
      return {ElementKind::kBool, 1};
    case mindspore::kNumberTypeInt8:
      return {ElementKind::kInt, 1};
    case mindspore::kNumberTypeInt16:
      return {ElementKind::kInt, 2};
    case mindspore::kNumberTypeInt:
    case mindspore::kNumberTypeInt32:
      return {ElementKind::kInt, 4};
    case mindspore::kNumberTypeInt64:
      return {ElementKind::kInt, 8};
    case mindspore::kNumberTypeUInt8:
      return {ElementKind::kUInt, 1};
    case mindspore::kNumberTypeUInt16:
      return {ElementKind::kUInt, 2};
    case mindspore::kNumberTypeUInt:
    case mindspore::kNumberTypeUInt32:
      return {ElementKind::kUInt, 4};
    case mindspore::kNumberTypeUInt64:
      return {ElementKind::kUInt, 8};
    case mindspore::kNumberTypeFloat16:
    case mindspore::kNumberTypeBFloat16:
      return {ElementKind::kFloat, 2};
    case mindspore::kNumberTypeFloat:
    case mindspore::kNumberTypeFloat32:
      return {ElementKind::kFloat, 4};
    case mindspore::kNumberTypeFloat64:
    case mindspore::kNumberTypeDouble:
      return {ElementKind::kFloat, 8};
    case mindspore::kNumberTypeComplex:
    case mindspore::kNumberTypeComplex64:
      return {ElementKind::kComplex, 8};
    case mindspore::kNumberTypeComplex128:
      return {ElementKind::kComplex, 16};
    default:
      return {ElementKind::kOther, 0};
  }
}

template <typename T>
constexpr Element ElementOf() {
  if constexpr (std::is_same_v<T, bool>) {
    return {ElementKind::kBool, sizeof(T)};
  } else if constexpr (std::is_integral_v<T>) {
    return {std::is_signed_v<T> ? ElementKind::kInt : ElementKind::kUInt, sizeof(T)};
  } else if constexpr (std::is_floating_point_v<T>) {
    return {ElementKind::kFloat, sizeof(T)};
  } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                       std::is_same_v<T, std::complex<double>>) {
    return {ElementKind::kComplex, sizeof(T)};
  } else {
    return {ElementKind::kOther, sizeof(T)};
  }
}

// Whether a T* may point to entries of that dtype. C++17 has no float of 16 bits: uint16_t is for
// the bits of one, and a type we do not know, say the half of a library, needs the right size only.
template <typename T>
bool Holds(mindspore::TypeId type_id) {
  constexpr Element mine = ElementOf<T>();
  const Element entry = ElementOf(type_id);
  if (mine.size != entry.size) return false;
  const bool are_bits = entry.kind == ElementKind::kFloat && mine.size == 2;
  return mine.kind == entry.kind || mine.kind == ElementKind::kOther ||
         (are_bits && mine.kind == ElementKind::kUInt);
}

// "Float32"; "entries of 2 bytes" for a type that names no dtype.
inline std::string NameOf(const Element& element) {
  const std::string bits = std::to_string(element.size * 8);
  switch (element.kind) {
    case ElementKind::kBool:
      return "Bool";
    case ElementKind::kInt:
      return "Int" + bits;
    case ElementKind::kUInt:
      return "UInt" + bits;
    case ElementKind::kFloat:
      return "Float" + bits;
    case ElementKind::kComplex:
      return "Complex" + bits;
    default:
      return "entries of " + std::to_string(element.size) + " bytes";
  }
}

inline std::string NameOf(mindspore::TypeId type_id) {
  return type_id == mindspore::kNumberTypeBFloat16 ? "BFloat16" : NameOf(ElementOf(type_id));
}

}  // namespace msops::extension

#endif  // MSOPS_EXTENSION_ELEMENT_H_
