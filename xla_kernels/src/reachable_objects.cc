#include "reachable_objects.h"

#include <pybind11/numpy.h>

#include <cstring>
#include <new>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace msops {
namespace {

namespace py = pybind11;

// Nothing dies meanwhile: this thread has the GIL, and runs no code of the objects.
class Search {
 public:
  explicit Search(const py::tuple& types) {
    for (const py::handle type : types) {
      types_.push_back(reinterpret_cast<PyTypeObject*>(type.ptr()));
    }
  }

  void Run(const py::list& roots) {
    for (const py::handle root : roots) Meet(root.ptr());
    while (!waiting_.empty()) {
      PyObject* const holder = waiting_.back();
      waiting_.pop_back();
      if (const traverseproc traverse = Traverse(holder)) {
        if (traverse(holder, Visit, this) != 0) throw std::bad_alloc();
      }
      if (py::isinstance<py::array>(holder)) MeetElements(py::detail::array_proxy(holder));
    }
  }

  const std::vector<PyObject*>& found() const { return found_; }

 private:
  // What is known of all objects of a type.
  struct Kind {
    bool is_wanted = false;
    bool leads_on = false;
  };

  static traverseproc Traverse(PyObject* object) {
    return PyObject_IS_GC(object) ? Py_TYPE(object)->tp_traverse : nullptr;
  }

  // C code calls this: no exception may leave it.
  static int Visit(PyObject* object, void* search) {
    try {
      static_cast<Search*>(search)->Meet(object);
      return 0;
    } catch (const std::bad_alloc&) {
      return -1;
    }
  }

  void Meet(PyObject* object) {
    const auto [row, is_new] = kinds_.try_emplace(Py_TYPE(object));
    if (is_new) row->second = KindOf(object);
    const Kind& kind = row->second;
    // Most objects are numbers and texts.
    if (!kind.is_wanted && !kind.leads_on) return;
    if (!seen_.insert(object).second) return;
    if (kind.leads_on) waiting_.push_back(object);
    if (kind.is_wanted) found_.push_back(object);
  }

  Kind KindOf(PyObject* object) const {
    Kind kind;
    for (PyTypeObject* type : types_) {
      if (PyType_IsSubtype(Py_TYPE(object), type)) kind.is_wanted = true;
    }
    kind.leads_on = PyType_IS_GC(Py_TYPE(object)) || py::isinstance<py::array>(object);
    return kind;
  }

  // The garbage collector does not ask arrays.
  void MeetElements(const py::detail::PyArray_Proxy* array) {
    if (array->base) Meet(array->base);
    if (py::detail::array_descriptor_proxy(array->descr)->type_num !=
        py::detail::npy_api::NPY_OBJECT_) {
      return;
    }
    std::vector<const char*> places = {array->data};
    for (int axis = 0; axis < array->nd; ++axis) {
      std::vector<const char*> next;
      for (const char* place : places) {
        for (ssize_t i = 0; i < array->dimensions[axis]; ++i) {
          next.push_back(place + i * array->strides[axis]);
        }
      }
      places.swap(next);
    }
    for (const char* place : places) {
      PyObject* element = nullptr;
      std::memcpy(&element, place, sizeof(element));
      if (element) Meet(element);
    }
  }

  std::vector<PyTypeObject*> types_;
  std::unordered_map<PyTypeObject*, Kind> kinds_;
  std::unordered_set<PyObject*> seen_;
  std::vector<PyObject*> waiting_;
  std::vector<PyObject*> found_;
};

}  // namespace

py::list FindReachable(const py::list& roots, const py::tuple& types) {
  Search search(types);
  search.Run(roots);
  // Making a list may start the garbage collector: the objects are owned before.
  std::vector<py::object> owned;
  for (PyObject* object : search.found())
    owned.push_back(py::reinterpret_borrow<py::object>(object));
  py::list found;
  for (const py::object& object : owned) found.append(object);
  return found;
}

}  // namespace msops
