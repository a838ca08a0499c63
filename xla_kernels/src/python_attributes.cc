#include "python_attributes.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace msops {
namespace {

namespace py = pybind11;

bool IsList(py::handle value) {
  return py::isinstance<py::tuple>(value) || py::isinstance<py::list>(value);
}

// bool is a subclass of int in Python, and no number here.
bool IsInt(py::handle value) {
  return py::isinstance<py::int_>(value) && !py::isinstance<py::bool_>(value);
}

bool IsNumber(py::handle value) { return IsInt(value) || py::isinstance<py::float_>(value); }

template <bool (*Predicate)(py::handle)>
bool All(const py::sequence& values) {
  for (py::handle value : values) {
    if (!Predicate(value)) return false;
  }
  return true;
}

bool IsNumberList(py::handle value) {
  return IsList(value) && All<IsNumber>(py::reinterpret_borrow<py::sequence>(value));
}

bool IsIntList(py::handle value) {
  return IsList(value) && All<IsInt>(py::reinterpret_borrow<py::sequence>(value));
}

AttributeValue ReadList(const py::sequence& values) {
  if (All<IsInt>(values)) return values.cast<std::vector<int64_t>>();
  if (All<IsNumber>(values)) return values.cast<std::vector<double>>();
  if (All<IsIntList>(values)) return values.cast<Rows<int64_t>>();
  if (All<IsNumberList>(values)) return values.cast<Rows<double>>();
  return Unreadable{};
}

AttributeValue ReadValue(py::handle value) {
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (IsInt(value)) return value.cast<int64_t>();
  if (py::isinstance<py::float_>(value)) return value.cast<double>();
  if (py::isinstance<py::str>(value)) {
    const auto text = value.cast<std::string>();
    return Text(text.begin(), text.end());
  }
  if (IsList(value)) return ReadList(py::reinterpret_borrow<py::sequence>(value));
  return Unreadable{};
}

}  // namespace

Attributes ReadAttributes(const py::dict& values) {
  Attributes attributes;
  for (const auto& [name, value] : values) {
    attributes.Set(name.cast<std::string>(), ReadValue(value));
  }
  return attributes;
}

}  // namespace msops
