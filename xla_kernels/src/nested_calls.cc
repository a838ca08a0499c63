#include "nested_calls.h"

#include <utility>

namespace msops {
namespace {

namespace py = pybind11;

thread_local FunctionOfThread innermost;

// Guarded by the GIL. Never destroyed, as Python may be gone by then.
struct Hook {
  py::object allow;
  py::object wait;
  py::object note;
  long left = 0;
};

Hook& TheHook() {
  static auto* const hook = new Hook;
  return *hook;
}

PyObject* CallHook(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  Hook& hook = TheHook();
  if (innermost.function && !*innermost.is_known) {
    *innermost.is_known = true;
    PyObject* const noted = PyObject_CallOneArg(hook.note.ptr(), innermost.function);
    if (!noted) return nullptr;
    Py_DECREF(noted);
  }
  if (hook.left > 0) {
    --hook.left;
    Py_RETURN_NONE;
  }
  PyObject* const allowed = PyObject_CallNoArgs(hook.allow.ptr());
  if (!allowed) return nullptr;
  hook.left = PyLong_AsLong(allowed);
  Py_DECREF(allowed);
  return PyObject_Vectorcall(hook.wait.ptr(), arguments, static_cast<size_t>(count), nullptr);
}

}  // namespace

InFunction::InFunction(void* function, bool* is_known) : outer_(innermost) {
  innermost = {static_cast<PyObject*>(function), is_known};
}

InFunction::~InFunction() { innermost = outer_; }

py::object NewHook(py::object allow, py::object wait, py::object note) {
  Hook& hook = TheHook();
  hook.allow = std::move(allow);
  hook.wait = std::move(wait);
  hook.note = std::move(note);
  // Not pybind11's: its calls take longer than all that this one does.
  static PyMethodDef definition = {
      "pace", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(CallHook)), METH_FASTCALL,
      "Counts a call of a program."};
  return py::reinterpret_steal<py::object>(PyCFunction_New(&definition, nullptr));
}

}  // namespace msops
