// python_calls.h: kernels that Python calls itself, on memory of its own, to check them.
#ifndef MSOPS_PYTHON_CALLS_H_
#define MSOPS_PYTHON_CALLS_H_

#include <pybind11/pybind11.h>

namespace msops {

// Adds the classes AotCall and AicpuCall, and what a process needs that runs foreign kernels.
void BindCalls(pybind11::module_& module);

}  // namespace msops

#endif  // MSOPS_PYTHON_CALLS_H_
