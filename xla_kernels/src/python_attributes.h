// python_attributes.h: attributes given as Python values.
#ifndef MSOPS_PYTHON_ATTRIBUTES_H_
#define MSOPS_PYTHON_ATTRIBUTES_H_

#include <pybind11/pybind11.h>

#include "attributes.h"

namespace msops {

// Reads a dictionary of bool, int, float, str, and lists or tuples of numbers, or of such lists.
// A list with one float in it is a list of floats. Other values can be asked for by HasAttr only.
Attributes ReadAttributes(const pybind11::dict& values);

}  // namespace msops

#endif  // MSOPS_PYTHON_ATTRIBUTES_H_
