#include "host_function.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "message.h"
#include "python_functions.h"

namespace msops {
namespace {

namespace py = pybind11;

// References that were given up by threads that may not take the GIL: XLA destroys programs while
// it holds locks that a thread with the GIL may wait for. Python drops them when it next can.
class Released {
 public:
  // Never destroyed: programs are destroyed at any time of the process's end.
  static Released& Get() {
    static auto* const released = new Released;
    return *released;
  }

  void Add(void* object) {
    if (!Py_IsInitialized()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    objects_.push_back(object);
    if (!is_pending_) is_pending_ = Py_AddPendingCall(Drop, nullptr) == 0;
  }

 private:
  static int Drop(void*) {
    Released& released = Get();
    std::vector<void*> objects;
    {
      const std::lock_guard<std::mutex> lock(released.mutex_);
      objects.swap(released.objects_);
      released.is_pending_ = false;
    }
    for (void* object : objects) Py_DECREF(static_cast<PyObject*>(object));
    return 0;
  }

  std::mutex mutex_;
  std::vector<void*> objects_;
  bool is_pending_ = false;
};

// The views of one call. Every one of them is referred to by `owned_` and by nothing else as soon
// as the function has let go of it: slices of a view refer to the view.
class Views {
 public:
  explicit Views(size_t count) { owned_.reserve(count); }

  PyObject* Add(py::array view) { return owned_.emplace_back(std::move(view)).ptr(); }

  // Returns the position of a view that is still held by somebody else, or -1.
  int64_t FindHeld() const {
    for (size_t i = 0; i < owned_.size(); ++i) {
      if (Py_REFCNT(owned_[i].ptr()) > 1) return static_cast<int64_t>(i);
    }
    return -1;
  }

 private:
  std::vector<py::array> owned_;
};

// Waits for what holds views without keeping them: cycles of objects, a thread about to end, an
// array of JAX's that is being freed. Returns as FindHeld does.
int64_t AwaitRelease(const Views& views) {
  constexpr int kTries = 20;
  constexpr std::chrono::milliseconds kPause(5);
  constexpr int kYoungest = 0;
  const py::object collect = py::module_::import("gc").attr("collect");
  collect(kYoungest);
  if (views.FindHeld() >= 0) collect();
  for (int i = 0; i < kTries && views.FindHeld() >= 0; ++i) {
    {
      const py::gil_scoped_release release;
      std::this_thread::sleep_for(kPause);
    }
    collect(kYoungest);
  }
  return views.FindHeld();
}

std::string Text(const py::error_already_set& error) {
  const auto kind = py::str(error.type().attr("__name__")).cast<std::string>();
  return kind + ": " + py::str(error.value()).cast<std::string>();
}

}  // namespace

HostFunction::HostFunction(std::string who, std::string_view id,
                           std::vector<std::vector<int64_t>> shapes,
                           const std::vector<std::string>& dtypes, size_t input_count)
    : who_(std::move(who)), shapes_(std::move(shapes)), input_count_(input_count) {
  const py::gil_scoped_acquire gil;
  try {
    const py::object found = FindPythonFunction(id);
    if (found.is_none()) {
      throw std::runtime_error(
          Explain(who_, "the program calls a Python function that this process does not have",
                  {"function " + std::string(id)},
                  "A function is known where it was lowered, for as long as a compiled program "
                  "uses it. Make the same op here and compile a call of it before this program."));
    }
    const py::tuple own = found.attr("dtypes");
    bool equal = own.size() == dtypes.size() && shapes_.size() == dtypes.size();
    for (size_t i = 0; equal && i < dtypes.size(); ++i) {
      equal = py::str(own[i].attr("name")).cast<std::string>() == dtypes[i];
    }
    if (!equal) {
      throw std::runtime_error(
          Explain(who_, "the program's function takes other arrays than the one of this process",
                  {"function " + std::string(id)}, "Lower the program again."));
    }
    for (const py::handle dtype : own) dtypes_.push_back(py::handle(dtype).inc_ref().ptr());
    function_ = py::object(found.attr("write")).release().ptr();
  } catch (const py::error_already_set& error) {
    throw std::runtime_error(Explain(who_, "its Python function cannot be looked up", {Text(error)},
                                     "Lower the program again."));
  }
}

HostFunction::~HostFunction() {
  if (function_) Released::Get().Add(function_);
  for (void* dtype : dtypes_) Released::Get().Add(dtype);
}

void HostFunction::Call(void** arrays) const {
  const py::gil_scoped_acquire gil;
  const py::handle function(static_cast<PyObject*>(function_));
  try {
    Views views(shapes_.size());
    {
      py::tuple inputs(input_count_);
      py::tuple outputs(shapes_.size() - input_count_);
      for (size_t i = 0; i < shapes_.size(); ++i) {
        const bool is_input = i < input_count_;
        PyObject* const dtype = static_cast<PyObject*>(dtypes_[i]);
        // With a base, whatever it is, numpy neither copies nor frees the memory.
        py::array view(py::reinterpret_borrow<py::dtype>(dtype), shapes_[i], {}, arrays[i],
                       function);
        if (is_input) {
          py::detail::array_proxy(view.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
        }
        py::tuple& side = is_input ? inputs : outputs;
        const size_t position = is_input ? i : i - input_count_;
        PyTuple_SET_ITEM(side.ptr(), position,
                         py::handle(views.Add(std::move(view))).inc_ref().ptr());
      }
      PyObject* const result =
          PyObject_CallFunctionObjArgs(function.ptr(), inputs.ptr(), outputs.ptr(), nullptr);
      if (!result) throw py::error_already_set();
      Py_DECREF(result);
    }
    if (views.FindHeld() < 0) return;
    const int64_t held = AwaitRelease(views);
    if (held < 0) return;
    const auto position = static_cast<size_t>(held);
    const bool is_input = position < input_count_;
    throw std::runtime_error(
        "KernelError: " +
        Explain(who_,
                "its function kept " + std::string(is_input ? "input " : "output ") +
                    std::to_string(is_input ? position : position - input_count_) +
                    ", whose memory is the program's and is reused after the call",
                {},
                "Keep a copy, x.copy(), or pass Custom(..., writable=True) for inputs of your "
                "own."));
  } catch (const py::error_already_set& error) {
    throw std::runtime_error(Text(error));
  }
}

}  // namespace msops
