#include "host_function.h"

#include <cxxabi.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "message.h"
#include "nested_calls.h"
#include "python_functions.h"

namespace msops {
namespace {

namespace py = pybind11;

// References that were dropped by threads that may not take the GIL: XLA destroys programs while
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
    try {
      objects_.push_back(object);
    } catch (const std::bad_alloc&) {
      return;  // the object stays
    }
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

  PyObject* Add(py::object view) { return owned_.emplace_back(std::move(view)).ptr(); }

  // Returns the position of a view that is still held by somebody else, or -1.
  int64_t FindHeld() const {
    for (size_t i = 0; i < owned_.size(); ++i) {
      if (Py_REFCNT(owned_[i].ptr()) > 1) return static_cast<int64_t>(i);
    }
    return -1;
  }

  // Gives all that is still held memory of its own, read-only.
  void Detach() const {
    py::list views;
    for (const py::object& view : owned_) {
      Lock(view);
      views.append(view);
    }
    const py::object find = py::module_::import("msops._calls.kept_views").attr("find_aliases");
    const py::tuple aliases = find(views);
    const py::list arrays = aliases[0];
    const py::list pointers = aliases[1];
    for (const py::handle alias : arrays) Lock(alias.cast<py::tuple>()[1]);
    std::vector<ptrdiff_t> distances;
    for (const py::object& view : owned_) distances.push_back(Move(view));
    for (const py::handle alias : arrays) {
      const auto pair = alias.cast<py::tuple>();
      py::detail::array_proxy(pair[1].ptr())->data += distances[pair[0].cast<size_t>()];
    }
    for (const py::handle pointer : pointers) {
      const auto [position, address] = pointer.cast<std::pair<size_t, uintptr_t>>();
      *reinterpret_cast<char**>(address) += distances[position];
    }
  }

 private:
  static void Lock(const py::object& array) {
    py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  }

  // Lets a view own a copy of its memory; returns how far its data moved.
  static ptrdiff_t Move(const py::object& view) {
    const auto size_bytes = static_cast<size_t>(py::reinterpret_borrow<py::array>(view).nbytes());
    auto* const proxy = py::detail::array_proxy(view.ptr());
    auto copy = std::make_unique<char[]>(size_bytes + 1);
    if (size_bytes) std::memcpy(copy.get(), proxy->data, size_bytes);
    proxy->base = py::capsule(copy.get(), [](void* data) { delete[] static_cast<char*>(data); })
                      .release()
                      .ptr();
    const ptrdiff_t distance = copy.get() - proxy->data;
    proxy->data = copy.release();
    return distance;
  }

  std::vector<py::object> owned_;
};

// Returns an array over memory that it neither owns nor frees. py::array's own constructor takes
// three times as long.
py::object MakeView(PyObject* dtype, const std::vector<int64_t>& shape, void* data,
                    bool is_writable) {
  static_assert(sizeof(int64_t) == sizeof(Py_intptr_t));
  using Api = py::detail::npy_api;
  static char nothing[1];  // arrays without elements come without memory
  const Api& api = Api::get();
  Py_INCREF(dtype);  // the new array takes this reference
  PyObject* const view = api.PyArray_NewFromDescr_(
      api.PyArray_Type_, dtype, static_cast<int>(shape.size()),
      reinterpret_cast<const Py_intptr_t*>(shape.data()), nullptr, data ? data : nothing,
      is_writable ? Api::NPY_ARRAY_WRITEABLE_ : 0, nullptr);
  if (!view) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(view);
}

// Copies one array to another of the same dtype and shape; returns whether it could.
bool CopyIfAlike(PyObject* from, PyObject* to) {
  using Api = py::detail::npy_api;
  if (Py_TYPE(from) != Api::get().PyArray_Type_) return false;
  const auto* const source = py::detail::array_proxy(from);
  const auto* const target = py::detail::array_proxy(to);
  if (source->descr != target->descr || source->nd != target->nd ||
      !std::equal(source->dimensions, source->dimensions + source->nd, target->dimensions) ||
      !(source->flags & Api::NPY_ARRAY_C_CONTIGUOUS_)) {
    return false;
  }
  const auto size_bytes = static_cast<size_t>(py::reinterpret_borrow<py::array>(to).nbytes());
  // A short copy is over before another thread would have the GIL.
  constexpr size_t kLongCopyBytes = 1 << 16;
  std::optional<py::gil_scoped_release> release;
  if (size_bytes >= kLongCopyBytes) release.emplace();
  std::memmove(target->data, source->data, size_bytes);
  return true;
}

// How long views may be held after a call: seconds, as the machine may have much else to do.
std::atomic<double> release_patience_s{2};

// Waits for what holds views without keeping them: cycles of objects, a thread about to end, an
// array of JAX's that is being freed. Returns as FindHeld does.
int64_t AwaitRelease(const Views& views) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause(5);
  constexpr int kYoungest = 0;
  const py::object collect = py::module_::import("gc").attr("collect");
  collect(kYoungest);
  if (views.FindHeld() >= 0) collect();
  const auto end = Clock::now() + std::chrono::duration<double>(release_patience_s);
  while (views.FindHeld() >= 0 && Clock::now() < end) {
    {
      const py::gil_scoped_release release;
      std::this_thread::sleep_for(kPause);
    }
    collect(kYoungest);
  }
  return views.FindHeld();
}

// How many functions run; the end of Python waits for them.
class Running {
 public:
  // Never destroyed: functions may run while the process ends.
  static Running& Get() {
    static auto* const running = new Running;
    return *running;
  }

  void Enter() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
  }

  void Leave() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      --count_;
    }
    changed_.notify_all();
  }

  bool AwaitNone(double seconds) {
    // A thread whose function has returned has yet to leave JAX, which needs the GIL again.
    constexpr std::chrono::milliseconds kWayBack(500);
    std::unique_lock<std::mutex> lock(mutex_);
    if (count_ == 0) return true;
    const bool is_none = changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                                           [this] { return count_ == 0; });
    if (is_none) std::this_thread::sleep_for(kWayBack);
    return is_none;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

// Runs `body`. Python before 3.14 ends a thread that wants the GIL when Python itself has ended, by
// unwinding its stack, and XLA's functions let nothing through: such a thread stops here until the
// process is gone.
template <typename Body>
auto StopAtEndOfPython(Body&& body) {
  try {
    return body();
  } catch (const abi::__forced_unwind&) {
    for (;;) pause();
  }
}

// Returns type and text of an exception, as printable() of msops/_base/kernel_errors.py writes it.
std::string Text(const py::error_already_set& error) {
  const auto kind = py::str(error.type().attr("__name__")).cast<std::string>();
  // A text with lone surrogates, of a file name say, has no UTF-8; XLA ends one at a NUL.
  const py::object text = py::str(error.value()).attr("encode")("utf-8", "backslashreplace");
  const py::object whole = text.attr("replace")(py::bytes("\0", 1), py::bytes("\\x00"));
  return kind + ": " + whole.cast<std::string>();
}

}  // namespace

void SetReleasePatience(double seconds) { release_patience_s = seconds; }

bool AwaitFunctions(double seconds) { return Running::Get().AwaitNone(seconds); }

bool IsPythonThread() { return PyGILState_GetThisThreadState() != nullptr; }

HostFunction::HostFunction(HostFunctionSpec spec) : spec_(std::move(spec)) {
  const std::string who = spec_.Who();
  const std::vector<std::string>& dtypes = spec_.dtypes;
  const py::gil_scoped_acquire gil;
  try {
    const py::object found = FindPythonFunction(spec_.id);
    if (found.is_none()) {
      throw std::runtime_error(
          Explain(who, "the program calls a Python function that this process does not have",
                  {"function " + spec_.id},
                  "A function is known where it was lowered, for as long as a compiled program "
                  "uses it. Make the same op here and compile a call of it before this program."));
    }
    const py::tuple own = found.attr("dtypes");
    bool equal = own.size() == dtypes.size() && spec_.shapes.size() == dtypes.size();
    for (size_t i = 0; equal && i < dtypes.size(); ++i) {
      equal = py::str(own[i].attr("name")).cast<std::string>() == dtypes[i];
    }
    if (!equal) {
      throw std::runtime_error(
          Explain(who, "the program's function takes other arrays than the one of this process",
                  {"function " + spec_.id}, "Lower the program again."));
    }
    for (const py::handle dtype : own) dtypes_.push_back(py::handle(dtype).inc_ref().ptr());
    function_ = py::object(found.attr("call")).release().ptr();
    store_ = py::object(found.attr("store")).release().ptr();
  } catch (const py::error_already_set& error) {
    throw std::runtime_error(Explain(who, "its Python function cannot be looked up", {Text(error)},
                                     "Correct that, or lower the program again."));
  }
}

HostFunction::~HostFunction() {
  if (function_) Released::Get().Add(function_);
  if (store_) Released::Get().Add(store_);
  for (void* dtype : dtypes_) Released::Get().Add(dtype);
}

void HostFunction::Call(void** arrays) const {
  struct Entry {
    Entry() { Running::Get().Enter(); }
    ~Entry() { Running::Get().Leave(); }
  } entry;
  std::optional<py::gil_scoped_acquire> gil;
  StopAtEndOfPython([&] { gil.emplace(); });
  std::string problem;
  try {
    Views views(spec_.shapes.size());
    try {
      py::tuple inputs(spec_.operand_count);
      py::tuple outputs(spec_.shapes.size() - spec_.operand_count);
      for (size_t i = 0; i < spec_.shapes.size(); ++i) {
        const bool is_input = i < spec_.operand_count;
        PyObject* const view = views.Add(
            MakeView(static_cast<PyObject*>(dtypes_[i]), spec_.shapes[i], arrays[i], !is_input));
        py::tuple& side = is_input ? inputs : outputs;
        Py_INCREF(view);
        PyTuple_SET_ITEM(side.ptr(), is_input ? i : i - spec_.operand_count, view);
      }
      const auto result = py::reinterpret_steal<py::object>(StopAtEndOfPython([&] {
        const InFunction inside(function_, &calls_jax_);
        return PyObject_CallFunctionObjArgs(static_cast<PyObject*>(function_), inputs.ptr(),
                                            outputs.ptr(), nullptr);
      }));
      if (!result) throw py::error_already_set();
      if (!result.is_none() && !CopyIfAlike(result.ptr(), PyTuple_GET_ITEM(outputs.ptr(), 0))) {
        py::handle(static_cast<PyObject*>(store_))(result, outputs[0]);
      }
    } catch (const py::error_already_set& error) {
      // The text alone leaves this block: the frames of the traceback hold the views.
      problem = Text(error);
    }
    int64_t held = views.FindHeld();
    if (held >= 0) held = AwaitRelease(views);
    if (held >= 0) {
      views.Detach();
      problem += problem.empty() ? "KernelError: " : "\n";
      problem += ExplainHeld(static_cast<size_t>(held));
    }
  } catch (const py::error_already_set& error) {
    throw std::runtime_error(Text(error));
  }
  if (!problem.empty()) throw std::runtime_error(problem);
}

std::string HostFunction::ExplainHeld(size_t view) const {
  const bool is_input = view < spec_.operand_count;
  return Explain(spec_.Who(),
                 "its function kept " + std::string(is_input ? "input " : "output ") +
                     std::to_string(is_input ? view : view - spec_.operand_count) +
                     ", whose memory is the program's and is reused after the call",
                 {},
                 "Keep a copy, x.copy(), or make the op with writable=True for inputs of your "
                 "own.");
}

}  // namespace msops
