// call_table.h: the ndims, shapes and dtypes arrays of a kernel's signature, built once.
#ifndef MSOPS_CALL_TABLE_H_
#define MSOPS_CALL_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace msops {

// Owns what the three arrays point to. Movable: the pointers stay valid.
//
// Every array can be read up to the number of parameters, and every shape up to at least 8 entries
// or that number: kernels in the wild, the add.cc of MindSpore's tutorial among them, loop to
// `nparam` over a shape of lower rank. Shapes are padded with 1 so that products come out right.
class CallTable {
 public:
  // Describes `shapes.size()` arrays; reads stay inside up to `parameter_count` of them.
  CallTable(const std::vector<std::vector<int64_t>>& shapes, std::vector<std::string> dtypes,
            size_t parameter_count);
  CallTable(CallTable&&) = default;
  CallTable& operator=(CallTable&&) = default;

  // Null if there is nothing to describe, as in MindSpore.
  int* ndims() { return ndims_.empty() ? nullptr : ndims_.data(); }
  int64_t** shapes() { return shapes_.empty() ? nullptr : shapes_.data(); }
  const char** dtypes() { return dtypes_.empty() ? nullptr : dtypes_.data(); }

  // Whether both say the same: a kernel can write to what it is given.
  bool operator==(const CallTable& other) const;

 private:
  std::vector<std::vector<int64_t>> padded_shapes_;
  std::vector<std::string> dtype_names_;
  std::vector<int> ndims_;
  std::vector<int64_t*> shapes_;
  std::vector<const char*> dtypes_;
};

// Cuts "float32,int64" at the commas, or at another separator; no text is no name.
std::vector<std::string> SplitNames(const std::string& text, char separator = ',');

}  // namespace msops

#endif  // MSOPS_CALL_TABLE_H_
