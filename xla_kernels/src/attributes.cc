#include "attributes.h"

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace msops {
namespace {

std::string_view View(const Text& text) { return {text.data(), text.size()}; }

// The names are those a kernel author writes in Attr<T>, in the order of AttributeValue.
const char* TypeName(const AttributeValue& value) {
  static constexpr const char* kNames[] = {
      "bool",
      "int64_t",
      "float",
      "std::string",
      "std::vector<int64_t>",
      "std::vector<float>",
      "std::vector<std::vector<int64_t>>",
      "std::vector<std::vector<float>>",
      "std::vector<std::string>",
      "std::vector<bool>",
      "a value that kernels cannot read",
  };
  static_assert(std::size(kNames) == std::variant_size_v<AttributeValue>);
  return kNames[value.index()];
}

[[noreturn]] void ThrowWrongType(std::string_view name, const char* expected,
                                 const AttributeValue& value) {
  throw std::runtime_error("attribute '" + std::string(name) + "' was asked for as " + expected +
                           ", but is " + TypeName(value));
}

// An empty list says nothing about the type of its elements, nor about its nesting.
bool IsEmptyList(const AttributeValue& value) {
  return std::visit(
      [](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, Text> || !std::is_class_v<Held> ||
                      std::is_same_v<Held, Unreadable>) {
          return false;
        } else {
          return held.empty();
        }
      },
      value);
}

template <typename To, typename From>
std::vector<To> Convert(const std::vector<From>& from) {
  return std::vector<To>(from.begin(), from.end());
}

template <typename To, typename From>
Rows<To> Convert(const Rows<From>& from) {
  Rows<To> to;
  to.reserve(from.size());
  for (const auto& row : from) to.push_back(Convert<To>(row));
  return to;
}

bool HasNoElement(const Rows<double>& rows) {
  for (const auto& row : rows) {
    if (!row.empty()) return false;
  }
  return true;
}

}  // namespace

void Attributes::Set(std::string_view name, AttributeValue value) {
  entries_.push_back({Text(name.begin(), name.end()), std::move(value)});
}

const AttributeValue* Attributes::Find(std::string_view name) const {
  for (const Entry& entry : entries_) {
    if (View(entry.name) == name) return &entry.value;
  }
  return nullptr;
}

const AttributeValue& Attributes::Get(std::string_view name) const {
  if (const AttributeValue* value = Find(name)) return *value;
  std::string known;
  for (const Entry& entry : entries_) {
    known.append(known.empty() ? "" : ", ").append(View(entry.name));
  }
  throw std::runtime_error("there is no attribute called " + std::string(name) + "; this op has " +
                           (known.empty() ? "none" : known) + "; give it by attrs={\"" +
                           std::string(name) + "\": ...}, or list it in op info");
}

bool Attributes::Has(std::string_view name) const { return Find(name) != nullptr; }

bool Attributes::Bool(std::string_view name) const {
  const AttributeValue& value = Get(name);
  if (const auto* held = std::get_if<bool>(&value)) return *held;
  ThrowWrongType(name, "bool", value);
}

int64_t Attributes::Int(std::string_view name) const {
  const AttributeValue& value = Get(name);
  if (const auto* held = std::get_if<int64_t>(&value)) return *held;
  ThrowWrongType(name, "int64_t", value);
}

float Attributes::Float(std::string_view name) const {
  const AttributeValue& value = Get(name);
  if (const auto* held = std::get_if<double>(&value)) return static_cast<float>(*held);
  if (const auto* held = std::get_if<int64_t>(&value)) return static_cast<float>(*held);
  ThrowWrongType(name, "float", value);
}

const Text& Attributes::Str(std::string_view name) const {
  const AttributeValue& value = Get(name);
  if (const auto* held = std::get_if<Text>(&value)) return *held;
  ThrowWrongType(name, "std::string", value);
}

std::vector<int64_t> Attributes::Ints(std::string_view name) const {
  const AttributeValue& value = Get(name);
  if (const auto* held = std::get_if<std::vector<int64_t>>(&value)) return *held;
  if (IsEmptyList(value)) return {};
  ThrowWrongType(name, "std::vector<int64_t>", value);
}

std::vector<float> Attributes::Floats(std::string_view name) const {
  const AttributeValue& value = Get(name);
  if (const auto* held = std::get_if<std::vector<double>>(&value)) return Convert<float>(*held);
  if (const auto* held = std::get_if<std::vector<int64_t>>(&value)) return Convert<float>(*held);
  if (IsEmptyList(value)) return {};
  ThrowWrongType(name, "std::vector<float>", value);
}

Rows<int64_t> Attributes::IntRows(std::string_view name) const {
  const AttributeValue& value = Get(name);
  if (const auto* held = std::get_if<Rows<int64_t>>(&value)) return *held;
  if (const auto* held = std::get_if<Rows<double>>(&value); held && HasNoElement(*held)) {
    return Rows<int64_t>(held->size());
  }
  if (IsEmptyList(value)) return {};
  ThrowWrongType(name, "std::vector<std::vector<int64_t>>", value);
}

Rows<float> Attributes::FloatRows(std::string_view name) const {
  const AttributeValue& value = Get(name);
  if (const auto* held = std::get_if<Rows<double>>(&value)) return Convert<float>(*held);
  if (const auto* held = std::get_if<Rows<int64_t>>(&value)) return Convert<float>(*held);
  if (IsEmptyList(value)) return {};
  ThrowWrongType(name, "std::vector<std::vector<float>>", value);
}

template <typename T>
Rows<T> SplitRows(const std::vector<T>& data, const std::vector<int64_t>& lengths) {
  Rows<T> rows;
  size_t begin = 0;
  for (int64_t length : lengths) {
    if (length < 0 || static_cast<size_t>(length) > data.size() - begin) {
      throw std::runtime_error("the row lengths of a list of lists exceed its data");
    }
    rows.emplace_back(data.begin() + begin, data.begin() + begin + length);
    begin += length;
  }
  if (begin != data.size()) {
    throw std::runtime_error("the row lengths of a list of lists do not cover its data");
  }
  return rows;
}

template Rows<int64_t> SplitRows(const std::vector<int64_t>&, const std::vector<int64_t>&);
template Rows<double> SplitRows(const std::vector<double>&, const std::vector<int64_t>&);

}  // namespace msops
