// cuda_call.h: one generated kernel bound to one call of a program. Knows the driver, not XLA.
#ifndef MSOPS_CUDA_CALL_H_
#define MSOPS_CUDA_CALL_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "cubin_store.h"
#include "cuda_driver.h"
#include "frame_spec.h"
#include "launch_plan.h"

namespace msops {

// What a program says about a call.
struct CudaCallSpec : FrameSpec {
  // The same code for devices of different architectures, by hash.
  std::vector<std::string> cubins;
  // The functions that the plan launches.
  std::vector<std::string> functions;
  std::vector<int64_t> plan;
  std::vector<int64_t> workspace_sizes_bytes;
  // What is wrong if the int32 in the last workspace is 1, 2, ... after the run. It is read only if
  // there is such a text: reading waits for the device.
  std::vector<std::string> checks;
};

// Overlapping executions share the object; what they add to it is guarded.
class CudaCall {
 public:
  using Spec = CudaCallSpec;

  // Where accesses of any type and width may start, and no two arrays share a cache line.
  static constexpr size_t kAlignmentBytes = 256;

  // Finds the cubins; loads nothing. Throws std::runtime_error with a message for the user.
  explicit CudaCall(CudaCallSpec spec);

  // "Custom '<op>' on GPU", the beginning of every message.
  const std::string& who() const { return who_; }

  // Number of pointers Run expects: inputs, outputs, workspaces.
  size_t parameter_count() const { return array_count_ + workspace_offsets_.size(); }

  // Size of the one block that holds all workspaces, in bytes.
  size_t workspace_bytes() const { return workspace_bytes_; }

  // Writes the workspaces' pointers into `buffers`, behind the inputs and outputs.
  void PlaceWorkspaces(char* block, void** buffers) const;

  // Puts the kernel on the stream; with checks, waits for it. Throws std::runtime_error with a
  // message for the user.
  void Run(void* const* buffers, CudaDriver::Stream stream);

 private:
  using Functions = std::vector<CudaDriver::Function>;

  void ReadChecks(const CudaDriver& driver, void* const* buffers, CudaDriver::Stream stream) const;
  const Functions& FunctionsIn(const CudaDriver& driver, CudaDriver::Context context);
  CudaDriver::Module LoadFirst(const CudaDriver& driver, CudaDriver::Context context) const;

  const std::string who_;
  const std::vector<std::string> function_names_;
  const size_t array_count_;
  std::vector<size_t> workspace_offsets_;
  size_t workspace_bytes_ = 0;
  const LaunchPlan plan_;
  const std::vector<std::string> checks_;
  std::vector<Cubin*> cubins_;
  std::mutex mutex_;
  std::unordered_map<CudaDriver::Context, Functions> functions_;
};

}  // namespace msops

#endif  // MSOPS_CUDA_CALL_H_
