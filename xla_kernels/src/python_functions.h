// python_functions.h: where the Python functions that programs name by id come from.
#ifndef MSOPS_PYTHON_FUNCTIONS_H_
#define MSOPS_PYTHON_FUNCTIONS_H_

#include <pybind11/pybind11.h>

#include <string_view>

namespace msops {

// Has `find` asked for every function: it gets an id, and returns the function or None.
void SetFinder(pybind11::function find);

// Returns the function with this id, or None. The caller holds the GIL.
pybind11::object FindPythonFunction(std::string_view id);

}  // namespace msops

#endif  // MSOPS_PYTHON_FUNCTIONS_H_
