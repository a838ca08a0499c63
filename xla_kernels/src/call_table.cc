#include "call_table.h"

#include <algorithm>
#include <utility>

namespace msops {

constexpr size_t kMinReadableDims = 8;

CallTable::CallTable(const std::vector<std::vector<int64_t>>& shapes,
                     std::vector<std::string> dtypes, size_t parameter_count)
    : padded_shapes_(shapes), dtype_names_(std::move(dtypes)) {
  const size_t readable = std::max(parameter_count, shapes.size());
  for (const auto& shape : shapes) ndims_.push_back(static_cast<int>(shape.size()));
  ndims_.resize(readable, 0);
  padded_shapes_.resize(readable);
  dtype_names_.resize(readable);
  for (auto& shape : padded_shapes_) {
    shape.resize(std::max({shape.size(), readable, kMinReadableDims}), 1);
    shapes_.push_back(shape.data());
  }
  for (const auto& name : dtype_names_) dtypes_.push_back(name.c_str());
}

bool CallTable::operator==(const CallTable& other) const {
  return ndims_ == other.ndims_ && padded_shapes_ == other.padded_shapes_ &&
         dtype_names_ == other.dtype_names_;
}

std::vector<std::string> SplitNames(const std::string& text, char separator) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    names.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

}  // namespace msops
