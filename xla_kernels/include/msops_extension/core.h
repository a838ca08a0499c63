// core.h: what msops does for a module, as C++ calls; references that may be dropped anywhere.
#ifndef MSOPS_EXTENSION_CORE_H_
#define MSOPS_EXTENSION_CORE_H_

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <initializer_list>
#include <utility>

#include "msops_extension/table.h"

namespace py = pybind11;

namespace msops::extension {

// Returns the table of the msops that loads this module.
inline const MsopsTable& Table() {
  static const MsopsTable* const table = [] {
    const py::object capsule = py::module_::import("msops._native").attr("extension_table")();
    const auto* found = static_cast<const MsopsTable*>(
        PyCapsule_GetPointer(capsule.ptr(), MSOPS_EXTENSION_CAPSULE));
    if (!found) throw py::error_already_set();
    if (found->version != MSOPS_EXTENSION_VERSION || found->verb_count < kMsopsVerbCount) {
      throw py::import_error("This extension module was built for another msops: build it again.");
    }
    return found;
  }();
  return *table;
}

// Asks msops; Python's errors come back as py::error_already_set. Needs the GIL.
template <typename... Arguments>
py::object Ask(MsopsVerb verb, const Arguments&... arguments) {
  const std::initializer_list<PyObject*> pointers = {arguments.ptr()...};
  PyObject* const answer = Table().call(verb, pointers.begin(), pointers.size());
  if (!answer) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(answer);
}

// A reference to a Python object that may be copied and dropped with or without the GIL, as kernels
// run without it.
class Reference {
 public:
  Reference() = default;
  explicit Reference(py::object object) : object_(object.release().ptr()) {}
  Reference(Reference&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Reference& operator=(Reference&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Reference() {
    // After the interpreter is gone there is nothing left to count.
    if (!object_ || !Py_IsInitialized()) return;
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(object_);
    PyGILState_Release(state);
  }

  explicit operator bool() const { return object_ != nullptr; }
  py::object get() const { return py::reinterpret_borrow<py::object>(object_); }

 private:
  PyObject* object_ = nullptr;
};

}  // namespace msops::extension

#endif  // MSOPS_EXTENSION_CORE_H_
