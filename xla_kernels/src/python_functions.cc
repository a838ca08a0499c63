#include "python_functions.h"

#include <utility>

namespace msops {
namespace {

namespace py = pybind11;

// Never destroyed, as Python may be gone by then. Guarded by the GIL.
py::object& Finder() {
  static auto* const finder = new py::object;
  return *finder;
}

}  // namespace

void SetFinder(py::function find) { Finder() = std::move(find); }

py::object FindPythonFunction(std::string_view id) {
  if (!Finder()) return py::none();
  return Finder()(py::str(id.data(), id.size()));
}

}  // namespace msops
