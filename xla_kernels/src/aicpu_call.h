// aicpu_call.h: an AICPU kernel bound to one call of a program. Knows the C interface of
// aicpu/msops_aicpu.h, not XLA's.
#ifndef MSOPS_AICPU_CALL_H_
#define MSOPS_AICPU_CALL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "aicpu/msops_aicpu.h"
#include "attributes.h"
#include "frame_spec.h"
#include "library_store.h"

namespace msops {

// What a program says about a call.
struct AicpuSpec : FrameSpec {
  std::string type;  // the name the kernel is registered under
  std::string library_hash;
  std::string library_name;  // for messages
  Attributes attributes;
  bool reentrant = true;
  // The last output is int32 [outputs, highest rank] and gets the shapes that the kernel gave the
  // others, with ones behind a shape of lower rank. Without it a kernel that changes one fails.
  bool dynamic_outputs = false;
  // Whether the kernel may write to its inputs, which then are copies.
  bool writable = true;
};

// Does not change after its constructor, so overlapping executions share it. Each makes a kernel
// object of its own.
class AicpuCall {
 public:
  using Spec = AicpuSpec;

  // Opens the library and finds the kernel. Throws std::runtime_error with a message for the user.
  explicit AicpuCall(AicpuSpec spec);

  const AicpuSpec& spec() const { return spec_; }

  std::string Who() const { return spec_.Who(); }

  // Number of pointers Run expects: inputs and outputs.
  size_t parameter_count() const { return spec_.shapes.size(); }

  // Runs the kernel on `threads` threads. `parameters` points to inputs and outputs. Throws
  // std::runtime_error with a message for the user if Compute fails, throws, or gives an output a
  // shape that it cannot have.
  void Run(void** parameters, int64_t threads);

  // Does what Run does, on copies of the inputs if the kernel may write to them. Changes
  // `parameters`.
  void RunOnCopies(void** parameters, int64_t threads);

 private:
  class Execution;
  using Compute = uint32_t (*)(const MsopsAicpuCall*);

  void CheckLibrary();
  void ReadTensors();
  void ReadAttributes();
  void Finish(const Execution& execution, void** parameters) const;
  std::string Location() const;

  const AicpuSpec spec_;
  Library& library_;
  Compute compute_ = nullptr;
  // Tensors without data, and attributes, as kernels see them; they point into what follows.
  std::vector<MsopsAicpuTensor> tensors_;
  std::vector<MsopsAicpuAttribute> attributes_;
  std::vector<std::string> names_;
  std::vector<std::vector<MsopsAicpuText>> texts_;
  std::vector<std::vector<char>> flat_values_;
  std::vector<std::vector<int64_t>> lengths_;
};

}  // namespace msops

#endif  // MSOPS_AICPU_CALL_H_
