// infer.h: output shapes and types as a kernel's own companions infer them.
#ifndef MSOPS_INFER_H_
#define MSOPS_INFER_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "attributes.h"

namespace msops {

// The library lacks the companion that was asked for.
class MissingCompanion : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A kernel whose companions are to be asked.
struct InferSpec {
  std::string library_hash;
  std::string symbol;
  Attributes attributes;
  // Whether the op has several outputs (or a dynamic one). A companion's return type follows from
  // it, and a wrong value is undefined behaviour: the library does not say which it has.
  bool multiple = false;
};

// Calls <symbol>InferShape. Returns one shape per output. Throws MissingCompanion, or
// std::runtime_error with what the companion threw.
std::vector<std::vector<int64_t>> InferShape(const InferSpec& spec,
                                             const std::vector<std::vector<int64_t>>& input_shapes,
                                             const std::vector<std::string>& input_dtypes);

// Calls <symbol>InferType. Takes and returns MindSpore's TypeId numbers, one per array. Throws as
// InferShape does.
std::vector<int> InferType(const InferSpec& spec, const std::vector<int>& input_type_ids);

}  // namespace msops

#endif  // MSOPS_INFER_H_
