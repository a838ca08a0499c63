#include "ffi_attributes.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace msops {
namespace {

std::string_view View(const XLA_FFI_ByteSpan& span) { return {span.ptr, span.len}; }

template <typename T>
T Read(const XLA_FFI_Scalar& scalar) {
  T value;
  std::memcpy(&value, scalar.value, sizeof value);
  return value;
}

template <typename T>
std::vector<T> Read(const XLA_FFI_Array& array) {
  // The data of an empty array may be null.
  if (array.size == 0) return {};
  const T* const data = static_cast<const T*>(array.data);
  return std::vector<T>(data, data + array.size);
}

[[noreturn]] void ThrowDtype(const char* what, XLA_FFI_DataType dtype) {
  throw std::runtime_error(std::string("expected ") + what + ", got XLA dtype number " +
                           std::to_string(dtype));
}

AttributeValue DecodeScalar(const XLA_FFI_Scalar& scalar) {
  switch (scalar.dtype) {
    case XLA_FFI_DataType_PRED:
      return Read<bool>(scalar);
    case XLA_FFI_DataType_S64:
      return Read<int64_t>(scalar);
    case XLA_FFI_DataType_F64:
      return Read<double>(scalar);
    default:
      ThrowDtype("a bool, int64 or float64 scalar", scalar.dtype);
  }
}

AttributeValue DecodeArray(const XLA_FFI_Array& array) {
  switch (array.dtype) {
    case XLA_FFI_DataType_S64:
      return Read<int64_t>(array);
    case XLA_FFI_DataType_F64:
      return Read<double>(array);
    default:
      ThrowDtype("an int64 or float64 array", array.dtype);
  }
}

const XLA_FFI_Array* FindArray(const XLA_FFI_Attrs& attrs, std::string_view name) {
  for (int64_t i = 0; i < attrs.size; ++i) {
    if (View(*attrs.names[i]) == name && attrs.types[i] == XLA_FFI_AttrType_ARRAY) {
      return static_cast<const XLA_FFI_Array*>(attrs.attrs[i]);
    }
  }
  return nullptr;
}

// Decodes a list that is a dictionary from positions to texts, or to bools.
AttributeValue DecodeList(const XLA_FFI_Attrs& attrs) {
  std::vector<Text> texts(static_cast<size_t>(attrs.size));
  Bools bools(texts.size());
  int64_t text_count = 0, bool_count = 0;
  for (int64_t i = 0; i < attrs.size; ++i) {
    // The dictionary is sorted by name, and "10" comes before "2".
    const std::string name(View(*attrs.names[i]));
    char* end = nullptr;
    const unsigned long position = std::strtoul(name.c_str(), &end, 10);
    if (name.empty() || *end || position >= texts.size()) return Unreadable{};
    if (attrs.types[i] == XLA_FFI_AttrType_STRING) {
      const std::string_view text = View(*static_cast<const XLA_FFI_ByteSpan*>(attrs.attrs[i]));
      texts[position].assign(text.begin(), text.end());
      ++text_count;
    } else if (attrs.types[i] == XLA_FFI_AttrType_SCALAR) {
      const auto& scalar = *static_cast<const XLA_FFI_Scalar*>(attrs.attrs[i]);
      if (scalar.dtype != XLA_FFI_DataType_PRED) return Unreadable{};
      bools[position] = Read<bool>(scalar);
      ++bool_count;
    }
  }
  if (text_count == attrs.size) return texts;
  if (bool_count == attrs.size) return bools;
  return Unreadable{};
}

AttributeValue DecodeNested(const XLA_FFI_Attrs& attrs) {
  const XLA_FFI_Array* const data = FindArray(attrs, "data");
  const XLA_FFI_Array* const splits = FindArray(attrs, "splits");
  if (!data || !splits || splits->dtype != XLA_FFI_DataType_S64) return DecodeList(attrs);
  const auto lengths = Read<int64_t>(*splits);
  const AttributeValue values = DecodeArray(*data);
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&values)) {
    return SplitRows(*ints, lengths);
  }
  return SplitRows(std::get<std::vector<double>>(values), lengths);
}

AttributeValue DecodeValue(XLA_FFI_AttrType type, const void* attr) {
  switch (type) {
    case XLA_FFI_AttrType_SCALAR:
      return DecodeScalar(*static_cast<const XLA_FFI_Scalar*>(attr));
    case XLA_FFI_AttrType_ARRAY:
      return DecodeArray(*static_cast<const XLA_FFI_Array*>(attr));
    case XLA_FFI_AttrType_STRING: {
      const std::string_view text = View(*static_cast<const XLA_FFI_ByteSpan*>(attr));
      return Text(text.begin(), text.end());
    }
    case XLA_FFI_AttrType_DICTIONARY:
      return DecodeNested(*static_cast<const XLA_FFI_Attrs*>(attr));
  }
  throw std::runtime_error("expected a scalar, array, text or dictionary, got kind " +
                           std::to_string(type));
}

}  // namespace
}  // namespace msops

std::optional<msops::Attributes> xla::ffi::AttrDecoding<msops::Attributes>::Decode(
    XLA_FFI_AttrType type, void* attr, DiagnosticEngine& diagnostic) {
  if (type != XLA_FFI_AttrType_DICTIONARY) {
    return diagnostic.Emit("attributes of the op: expected a dictionary, got kind ")
           << static_cast<int>(type);
  }
  const auto& attrs = *static_cast<const XLA_FFI_Attrs*>(attr);
  msops::Attributes attributes;
  for (int64_t i = 0; i < attrs.size; ++i) {
    const std::string_view name = msops::View(*attrs.names[i]);
    try {
      attributes.Set(name, msops::DecodeValue(attrs.types[i], attrs.attrs[i]));
    } catch (const std::exception& error) {
      return diagnostic.Emit("attribute '") << std::string(name) << "': " << error.what();
    }
  }
  return attributes;
}
