// input_copies.h: copies of a call's inputs, for kernels that may write to them. Arrays of a
// program belong to it: they may be in use elsewhere, and must keep their values.
#ifndef MSOPS_INPUT_COPIES_H_
#define MSOPS_INPUT_COPIES_H_

#include <cstddef>
#include <vector>

#include "workspace_pool.h"

namespace msops {

// The inputs of one call. Whether a kernel writes to them depends on attributes and values, so no
// earlier call shows that it does not: each call gets copies.
class InputCopies {
 public:
  // `parameters` points to inputs, of `sizes_bytes`, then to outputs. Pointers to inputs are
  // replaced by those to copies. An input that is an output as well is left as it is: the program
  // gave it away. Large inputs are copied on the calling thread's pool. Throws std::bad_alloc if
  // there is no memory for them.
  InputCopies(const std::vector<size_t>& sizes_bytes, void** parameters, size_t parameter_count);

 private:
  struct Copy {
    size_t input;
    const char* original;
    size_t size_bytes;
    size_t offset;
  };

  static std::vector<Copy> Choose(const std::vector<size_t>& sizes_bytes, void** parameters,
                                  size_t parameter_count);
  static size_t EndOf(const std::vector<Copy>& copies);

  const std::vector<Copy> copies_;
  const WorkspaceLease memory_;
};

}  // namespace msops

#endif  // MSOPS_INPUT_COPIES_H_
