#include "python_log.h"

#include <pybind11/pybind11.h>

#include <limits>

namespace msops {
namespace {

namespace py = pybind11;

constexpr int kNothing = std::numeric_limits<int>::max();

// Runs `body` with the GIL; `otherwise` is the answer where there is no interpreter to ask.
template <typename Body>
int WithPython(int otherwise, Body&& body) {
#if PY_VERSION_HEX >= 0x030d0000
  const bool is_ending = Py_IsFinalizing();
#else
  const bool is_ending = _Py_IsFinalizing();
#endif
  if (is_ending || !Py_IsInitialized()) return otherwise;
  const py::gil_scoped_acquire gil;
  try {
    return body();
  } catch (py::error_already_set& error) {
    error.discard_as_unraisable(__func__);
    return otherwise;
  }
}

py::object Logger(const char* name) {
  return py::module_::import("logging").attr("getLogger")(name);
}

}  // namespace

int PythonLogLevel(const char* logger) {
  return WithPython(kNothing, [&] {
    const py::object object = Logger(logger);
    // logging.disable() is not part of the effective level.
    for (const int level : {10, 20, 30, 40}) {
      if (object.attr("isEnabledFor")(level).cast<bool>()) return level;
    }
    return kNothing;
  });
}

void LogToPython(const char* logger, int level, const char* file, int line, const char* function,
                 const std::string& text) {
  WithPython(0, [&] {
    const py::object object = Logger(logger);
    if (!object.attr("isEnabledFor")(level).cast<bool>()) return 0;
    // What is not UTF-8 is replaced: a kernel may log any bytes.
    const auto message =
        py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(text.data(), text.size(), "replace"));
    const py::object record = object.attr("makeRecord")(logger, level, file, line, message,
                                                        py::tuple(), py::none(), function);
    object.attr("handle")(record);
    return 0;
  });
}

}  // namespace msops
