// launch_plan.h: what a generated kernel has the device do, in order. Knows the driver, not XLA.
#ifndef MSOPS_LAUNCH_PLAN_H_
#define MSOPS_LAUNCH_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda_driver.h"

namespace msops {

// A sequence of steps as msops/_calls/cuda_call.py writes it: a number for the kind, then its
// operands.
//   0 clear   buffer, size in bytes
//   1 copy    to, from, size in bytes
//   2 launch  function, blocks, threads a block, count of arguments, then each one, a buffer
// Buffers are positions among inputs, outputs and workspaces.
class LaunchPlan {
 public:
  // Throws std::runtime_error, in the name of `who`, if the words are no plan over so many
  // functions and buffers. Running needs no checks after that.
  LaunchPlan(std::vector<int64_t> words, size_t function_count, size_t buffer_count,
             std::string who);

  // Puts every step on the stream. Throws std::runtime_error with the driver's error.
  void Run(const CudaDriver& driver, const std::vector<CudaDriver::Function>& functions,
           void* const* buffers, CudaDriver::Stream stream) const;

 private:
  // Returns the position behind the step at `position`; `position` itself if that begins no step.
  size_t CheckStep(size_t position) const;

  const std::vector<int64_t> words_;
  const size_t function_count_;
  const size_t buffer_count_;
  const std::string who_;
};

}  // namespace msops

#endif  // MSOPS_LAUNCH_PLAN_H_
