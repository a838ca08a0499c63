// silent_exceptions.h: exceptions whose what() is null. pybind11 reads that text, and the process
// ends.
#ifndef MSOPS_EXTENSION_SILENT_EXCEPTIONS_H_
#define MSOPS_EXTENSION_SILENT_EXCEPTIONS_H_

#include <exception>
#include <typeinfo>

#include "msops_extension/runner.h"

namespace msops::extension {

// Returns whether an exception, or one that is nested in it, has no text.
inline bool IsSilent(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const py::error_already_set&) {
    return false;  // Python makes its text when it is asked for.
  } catch (const std::exception& error) {
    const auto* const holder = dynamic_cast<const std::nested_exception*>(&error);
    return !error.what() || (holder && holder->nested_ptr() && IsSilent(holder->nested_ptr()));
  } catch (...) {
    return false;
  }
}

// Sets Python's error for such an exception; throws all others again, for pybind11.
inline void TranslateSilent(std::exception_ptr thrown) {
  if (!IsSilent(thrown)) std::rethrow_exception(thrown);
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    const char* const text = error.what();
    PyErr_Format(PyExc_RuntimeError, "%s: %s", ms::pynative::inner::TypeName(typeid(error)).c_str(),
                 text ? text : "no text");
  }
}

}  // namespace msops::extension

// msops calls it when it has loaded the module.
extern "C" __attribute__((visibility("default"), used)) inline void msops_extension_loaded() {
  py::register_local_exception_translator(msops::extension::TranslateSilent);
}

#endif  // MSOPS_EXTENSION_SILENT_EXCEPTIONS_H_
