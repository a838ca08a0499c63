// attributes.h: the attributes of one op, and how a kernel may read them.
//
// No std::string appears in any type here. This header is compiled under both std::string ABIs of
// libstdc++ (see extra_host.h), and a type that held a string would have two layouts.
#ifndef MSOPS_ATTRIBUTES_H_
#define MSOPS_ATTRIBUTES_H_

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

namespace msops {

using Text = std::vector<char>;

template <typename T>
using Rows = std::vector<std::vector<T>>;

// A list of bool, in a type that the vector of characters above is not.
using Bools = std::vector<uint8_t>;

// A value that no getter returns, such as a list of lists of strings. It can be asked for by
// HasAttr only.
struct Unreadable {};

using AttributeValue =
    std::variant<bool, int64_t, double, Text, std::vector<int64_t>, std::vector<double>,
                 Rows<int64_t>, Rows<double>, std::vector<Text>, Bools, Unreadable>;

// Named values. Getters throw std::runtime_error for a name that is not there and for a value of
// another type; integers can be read as floats, as can an empty list as any list.
class Attributes {
 public:
  struct Entry {
    Text name;
    AttributeValue value;
  };

  void Set(std::string_view name, AttributeValue value);

  const std::vector<Entry>& entries() const { return entries_; }

  bool Has(std::string_view name) const;
  bool Bool(std::string_view name) const;
  int64_t Int(std::string_view name) const;
  float Float(std::string_view name) const;
  const Text& Str(std::string_view name) const;
  std::vector<int64_t> Ints(std::string_view name) const;
  std::vector<float> Floats(std::string_view name) const;
  Rows<int64_t> IntRows(std::string_view name) const;
  Rows<float> FloatRows(std::string_view name) const;

 private:
  const AttributeValue* Find(std::string_view name) const;
  const AttributeValue& Get(std::string_view name) const;

  std::vector<Entry> entries_;
};

// Cuts `data` into rows of the given lengths. Throws std::runtime_error unless they add up.
template <typename T>
Rows<T> SplitRows(const std::vector<T>& data, const std::vector<int64_t>& lengths);

}  // namespace msops

#endif  // MSOPS_ATTRIBUTES_H_
