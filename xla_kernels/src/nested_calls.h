// nested_calls.h: what JAX calls behind each call of a program. It counts these calls, and finds
// the Python functions that make some. Knows Python, not XLA.
#ifndef MSOPS_NESTED_CALLS_H_
#define MSOPS_NESTED_CALLS_H_

#include <pybind11/pybind11.h>

namespace msops {

// A function that a thread runs, if it runs one.
struct FunctionOfThread {
  PyObject* function = nullptr;
  bool* is_known = nullptr;
};

// Says that the calling thread runs a Python function, while this lives. With the GIL.
class InFunction {
 public:
  // `is_known` says whether the function is known to call JAX; becomes true when it does.
  InFunction(void* function, bool* is_known);
  ~InFunction();
  InFunction(const InFunction&) = delete;
  InFunction& operator=(const InFunction&) = delete;

 private:
  const FunctionOfThread outer_;
};

// Returns the hook. Of its calls on a thread that runs a Python function, the first of each program
// calls note(function). As many calls as allow() returned do nothing else; the next one asks again,
// and calls wait with its arguments. There is one hook, which has what was given last.
pybind11::object NewHook(pybind11::object allow, pybind11::object wait, pybind11::object note);

}  // namespace msops

#endif  // MSOPS_NESTED_CALLS_H_
