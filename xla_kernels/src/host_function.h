// host_function.h: a Python function of this process, bound to one call of a program. Knows Python,
// not XLA.
//
// A program names a function by its id, never by a pointer. The Python side keeps the functions and
// finds them; see msops/_calls/python_call.py.
#ifndef MSOPS_HOST_FUNCTION_H_
#define MSOPS_HOST_FUNCTION_H_

#include <cstddef>
#include <string>
#include <vector>

#include "frame_spec.h"

namespace msops {

// Returns whether the calling thread is one of Python's, rather than XLA's.
bool IsPythonThread();

// Waits until no function runs, for at most so long; returns whether none does. Without the GIL.
bool AwaitFunctions(double seconds);

// Sets for how long a view that is held after a call may yet be released before that is an error.
void SetReleasePatience(double seconds);

// What a program says about a call.
struct HostFunctionSpec : FrameSpec {
  std::string id;
};

class HostFunction {
 public:
  using Spec = HostFunctionSpec;

  // Finds the function and asks it how its arrays look. Throws std::runtime_error with a message
  // for the user.
  explicit HostFunction(HostFunctionSpec spec);
  // May run on any thread, with or without the GIL, and while Python shuts down.
  ~HostFunction();
  HostFunction(const HostFunction&) = delete;
  HostFunction& operator=(const HostFunction&) = delete;

  size_t parameter_count() const { return spec_.shapes.size(); }

  // "Custom '<op>' on CPU", the beginning of every message.
  std::string Who() const { return spec_.Who(); }

  // Takes the GIL and calls the function on views of these arrays, the inputs read-only. Throws
  // std::runtime_error with a message for the user if the function fails, or if a view is still
  // held by somebody afterwards, however the function ended: the memory belongs to the program.
  void Call(void** arrays) const;

 private:
  // Returns the error for a view that is still held; inputs are counted first, then outputs.
  std::string ExplainHeld(size_t view) const;

  const HostFunctionSpec spec_;
  // Owned references.
  void* function_ = nullptr;
  void* store_ = nullptr;
  std::vector<void*> dtypes_;
  mutable bool calls_jax_ = false;  // guarded by the GIL
};

}  // namespace msops

#endif  // MSOPS_HOST_FUNCTION_H_
