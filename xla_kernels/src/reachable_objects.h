// reachable_objects.h: objects of some types among all that others lead to. Knows Python and numpy,
// not XLA.
#ifndef MSOPS_REACHABLE_OBJECTS_H_
#define MSOPS_REACHABLE_OBJECTS_H_

#include <pybind11/pybind11.h>

namespace msops {

// Returns the objects of these types, or of types derived from them, that the roots lead to: by
// what they tell Python's garbage collector, and by the elements and bases of arrays. Runs no
// Python.
pybind11::list FindReachable(const pybind11::list& roots, const pybind11::tuple& types);

}  // namespace msops

#endif  // MSOPS_REACHABLE_OBJECTS_H_
