// call_site.h: one aot kernel bound to one call of a program. Knows MindSpore's ABI, not XLA's.
#ifndef MSOPS_CALL_SITE_H_
#define MSOPS_CALL_SITE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "attributes.h"
#include "call_table.h"
#include "extra_host.h"
#include "frame_spec.h"
#include "library_store.h"

namespace msops {

// What a program says about a call.
struct CallSpec : FrameSpec {
  std::string library_hash;
  std::string library_name;  // for messages
  std::string symbol;
  Attributes attributes;
  bool reentrant = true;
  // Of a kernel that has no Init to ask for them; they come before those that an Init asks for.
  std::vector<size_t> workspace_sizes_bytes;
};

// Everything that can be done before the first call is done by the constructor; afterwards the
// object does not change, so overlapping executions share it.
class CallSite {
 public:
  using Spec = CallSpec;

  // Opens the library, finds the kernel and runs its Init. Throws std::runtime_error with a
  // message for the user.
  explicit CallSite(CallSpec spec);

  const CallSpec& spec() const { return spec_; }

  std::string Who() const { return spec_.Who(); }

  // Number of pointers Run expects: inputs, outputs, workspaces.
  size_t parameter_count() const { return parameter_count_; }

  // Sizes of the workspaces in bytes, as far as kernels may use them.
  std::vector<size_t> workspace_sizes_bytes() const;

  // Size of the one block that holds all workspaces, in bytes.
  size_t workspace_bytes() const { return workspace_bytes_; }

  // Whether the kernel has left the ranks, shapes and dtypes that all its calls share as they were.
  bool is_intact() const {
    return table_ == CallTable(spec_.shapes, spec_.dtypes, parameter_count_);
  }

  // Writes the workspaces' pointers into `parameters`, behind the inputs and outputs.
  void PlaceWorkspaces(char* block, void** parameters) const;

  // Calls the kernel. `stream` is null on the CPU. Throws std::runtime_error with a message for
  // the user if the kernel returns other than 0 or throws. The meaning of a code comes from the
  // library's `const char* <symbol>Message(int code)`, if it has one.
  void Run(void** parameters, void* stream);

 private:
  using Kernel = int (*)(int, void**, int*, int64_t**, const char**, void*, void*);
  using Init = int (*)(int*, int64_t**, const char**, void*);
  using Message = const char* (*)(int);

  void RunInit(Init init);
  void LayOutWorkspaces();
  std::string Location(const std::string& symbol) const;
  int Call(void** parameters, void* stream);
  std::string DescribeCode(int code) const;

  const CallSpec spec_;
  Library& library_;
  Kernel kernel_;
  std::unique_ptr<ExtraHost> extra_;
  // The tables that Init saw and that the kernel sees. Init may have kept pointers into its own.
  CallTable init_table_;
  CallTable table_;
  size_t parameter_count_ = 0;
  std::vector<size_t> workspace_offsets_;
  size_t workspace_bytes_ = 0;
  // Held by calls of a kernel with data: such kernels were written for a single stream.
  std::mutex data_mutex_;
  bool has_kernel_data_ = false;
};

}  // namespace msops

#endif  // MSOPS_CALL_SITE_H_
