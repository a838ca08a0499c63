// core.h: what msops does for a module, as C++ calls; references that may be dropped anywhere.
//
// Every module compiles this and the headers that include it. They use Python's C interface where
// pybind11 would make templates, which take most of a build's time.
#ifndef MSOPS_EXTENSION_CORE_H_
#define MSOPS_EXTENSION_CORE_H_

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "msops_extension/table.h"

namespace py = pybind11;

namespace msops::extension {

// Holds the GIL, whether or not the thread has it already: kernels run without it.
class Gil {
 public:
  Gil() : state_(PyGILState_Ensure()) {}
  ~Gil() { PyGILState_Release(state_); }
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;

 private:
  const PyGILState_STATE state_;
};

// Takes over what a function of Python made; null says that an error is set.
inline py::object Own(PyObject* made) {
  if (!made) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

inline py::object Number(int64_t value) { return Own(PyLong_FromLongLong(value)); }

inline py::object Text(const std::string& text) {
  return Own(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

inline py::object Tuple(std::vector<py::object> items) {
  py::object tuple = Own(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  Py_ssize_t position = 0;
  for (py::object& item : items) {
    PyTuple_SET_ITEM(tuple.ptr(), position++, item.release().ptr());
  }
  return tuple;
}

inline py::object Numbers(const std::vector<int64_t>& values) {
  std::vector<py::object> items;
  for (const int64_t value : values) items.push_back(Number(value));
  return Tuple(std::move(items));
}

inline std::string TextOf(PyObject* object) {
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(object, &size);
  if (!text) throw py::error_already_set();
  return {text, static_cast<size_t>(size)};
}

inline int64_t AsNumber(PyObject* object) {
  const int64_t value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred()) throw py::error_already_set();
  return value;
}

inline std::vector<int64_t> AsNumbers(PyObject* tuple) {
  std::vector<int64_t> values;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    values.push_back(AsNumber(PyTuple_GET_ITEM(tuple, i)));
  }
  return values;
}

inline const MsopsTable* TakeTable() {
  const py::object native = Own(PyImport_ImportModule("msops._native"));
  const py::object capsule = Own(PyObject_CallMethod(native.ptr(), "extension_table", nullptr));
  const auto* found =
      static_cast<const MsopsTable*>(PyCapsule_GetPointer(capsule.ptr(), MSOPS_EXTENSION_CAPSULE));
  if (!found) throw py::error_already_set();
  if (found->version != MSOPS_EXTENSION_VERSION || found->verb_count < kMsopsVerbCount) {
    throw py::import_error("This extension module was built for another msops: build it again.");
  }
  return found;
}

// Returns the table of the msops that loads this module.
inline const MsopsTable& Table() {
  static const MsopsTable* const table = TakeTable();
  return *table;
}

// Asks msops; Python's errors come back as py::error_already_set. Needs the GIL.
inline py::object Ask(MsopsVerb verb, const py::object* arguments, size_t count) {
  static_assert(sizeof(py::object) == sizeof(PyObject*), "An object is a pointer and no more.");
  return Own(Table().call(verb, reinterpret_cast<PyObject* const*>(arguments), count));
}

inline py::object Ask(MsopsVerb verb, std::initializer_list<py::object> arguments) {
  return Ask(verb, arguments.begin(), arguments.size());
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
