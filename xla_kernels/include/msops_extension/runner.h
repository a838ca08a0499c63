// runner.h: ms::pynative::PyboostRunner, kernels that work on memory.
//
// Eagerly Run launches the kernel at once. Under tracing it puts a call into the program, and the
// runner is launched whenever the program gets there, on the program's buffers. The object is the
// same each time, so its launches wait for one another: a kernel may keep what it likes in members.
#ifndef MSOPS_EXTENSION_RUNNER_H_
#define MSOPS_EXTENSION_RUNNER_H_

#include <cxxabi.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <typeinfo>
#include <utility>
#include <vector>

#include "msops_extension/declared.h"
#include "msops_extension/launch.h"

namespace ms::pynative {

class PyboostRunner : public std::enable_shared_from_this<PyboostRunner> {
 public:
  explicit PyboostRunner(const std::string& op_name) : _op_name_(op_name) {}
  virtual ~PyboostRunner() = default;
  PyboostRunner(const PyboostRunner&) = delete;
  PyboostRunner& operator=(const PyboostRunner&) = delete;

  // Calls `function` and returns its OUT_NUM tensors as Python objects: None, a Tensor or a tuple.
  // The name is for messages.
  template <int OUT_NUM, typename Function, typename... Args>
  static py::object Call(const std::string& op_name, Function function, Args&&... args);
  template <int OUT_NUM, typename Function, typename... Args,
            std::enable_if_t<!std::is_convertible_v<Function, std::string>, int> = 0>
  static py::object Call(Function function, Args&&... args);

  // Runs the kernel on tensors; undefined inputs are left out. What is in both lists is updated.
  void Run(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
    const inner::Gil gil;
    run_inputs_.clear();
    for (const Tensor& input : inputs) {
      if (input.is_defined()) run_inputs_.push_back(input);
    }
    run_outputs_ = outputs;
    _Run();
  }

  // Size in bytes of the memory behind workspace_ptr(); inputs and outputs are there already.
  virtual size_t CalcWorkspace() { return 0; }
  // Called when the workspace is there.
  virtual void ProcessWithWorkspace() {}
  virtual void LaunchKernel() = 0;

  const std::string& op_name() const { return _op_name_; }
  const std::vector<Tensor>& inputs() const { return _inputs_; }
  const std::vector<Tensor>& outputs() const { return _outputs_; }
  uint32_t stream_id() const { return static_cast<uint32_t>(_stream_id_); }
  // XLA's stream: a cudaStream_t on GPU, null on CPU.
  void* stream() { return _stream_; }
  void* workspace_ptr() { return _workspace_ptr_; }

 protected:
  virtual void _Run();
  // Launches the kernel on memory, now or in the program that is being traced.
  void RunOnMemory();
  virtual void _DispatchLaunchTask() { LaunchKernel(); }

  std::string _op_name_;
  std::vector<Tensor> _inputs_;
  std::vector<Tensor> _outputs_;
  size_t _stream_id_ = 0;
  void* _stream_ = nullptr;
  mindspore::device::DeviceContext* _device_context_ = nullptr;
  void* _workspace_ptr_ = nullptr;

 private:
  struct Binding;

  void Execute(Binding* binding, const MsopsExecution& execution);
  void RunNow();

  // What Run was given, until _Run takes it, under the GIL. Another launch of the same object may
  // be under way, which has _inputs_ and _outputs_ and the mutex.
  std::vector<Tensor> run_inputs_;
  std::vector<Tensor> run_outputs_;
  std::recursive_mutex mutex_;
  std::atomic<std::thread::id> launching_{};

  friend class AclnnOpRunner;
  friend class LibraryRunner;
};

// What one call site has of a runner: tensors whose memory changes from launch to launch.
struct PyboostRunner::Binding {
  Binding(std::shared_ptr<PyboostRunner> bound, const MsopsArray* arrays, size_t input_count,
          size_t output_count)
      : runner(std::move(bound)) {
    for (size_t i = 0; i < input_count + output_count; ++i) {
      memory.push_back(std::make_shared<mindspore::tensor::Tensor>(arrays[i]));
      (i < input_count ? inputs : outputs).emplace_back(memory.back());
    }
  }

  static void* New(void* self, const MsopsArray* arrays, size_t inputs, size_t outputs) {
    return new Binding(*static_cast<std::shared_ptr<PyboostRunner>*>(self), arrays, inputs,
                       outputs);
  }

  static int Launch(void* self, const MsopsExecution* execution) {
    auto* const binding = static_cast<Binding*>(self);
    try {
      binding->runner->Execute(binding, *execution);
      return 1;
    } catch (const std::exception& error) {
      const char* const text = error.what();
      execution->fail(execution->context, text ? text : "an exception without a text");
    } catch (...) {
      execution->fail(execution->context, "an exception that is no std::exception");
    }
    return 0;
  }

  static void Delete(void* self) { delete static_cast<Binding*>(self); }

  std::shared_ptr<PyboostRunner> runner;
  std::vector<mindspore::tensor::TensorPtr> memory;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
};

inline void PyboostRunner::Execute(Binding* binding, const MsopsExecution& execution) {
  if (launching_ == std::this_thread::get_id()) {
    throw std::runtime_error("LaunchKernel runs its own runner again; make another one for that.");
  }
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  launching_ = std::this_thread::get_id();
  for (size_t i = 0; i < binding->memory.size(); ++i) {
    binding->memory[i]->set_data(execution.data[i]);
  }
  _inputs_.swap(binding->inputs);
  _outputs_.swap(binding->outputs);
  struct Restore {
    ~Restore() {
      runner->_inputs_.swap(binding->inputs);
      runner->_outputs_.swap(binding->outputs);
      runner->_workspace_ptr_ = nullptr;
      runner->_stream_ = nullptr;
      runner->launching_ = std::thread::id();
    }
    PyboostRunner* runner;
    Binding* binding;
  } const restore{this, binding};
  _stream_ = execution.stream;
  if (const size_t size_bytes = CalcWorkspace()) {
    _workspace_ptr_ = execution.allocate(execution.context, size_bytes);
    if (!_workspace_ptr_) {
      throw std::runtime_error("no memory for a workspace of " + std::to_string(size_bytes) +
                               " bytes");
    }
  }
  ProcessWithWorkspace();
  _DispatchLaunchTask();
}

// Launches operators, which work on the tensors themselves. They are Python's, so another thread
// may run the same object meanwhile, and has to wait; a launch may run its own object again.
inline void PyboostRunner::RunNow() {
  std::vector<Tensor> inputs = std::move(run_inputs_);
  std::vector<Tensor> outputs = std::move(run_outputs_);
  std::unique_lock<std::recursive_mutex> lock(mutex_, std::try_to_lock);
  if (!lock) {
    const py::gil_scoped_release others_need_it;
    lock.lock();
  }
  const auto swap_tensors = [&] {
    _inputs_.swap(inputs);
    _outputs_.swap(outputs);
  };
  swap_tensors();
  struct Restore {
    ~Restore() { again(); }
    const decltype(swap_tensors)& again;
  } const restore{swap_tensors};
  CalcWorkspace();
  ProcessWithWorkspace();
  _DispatchLaunchTask();
}

inline void PyboostRunner::_Run() {
#ifdef CUSTOM_ASCEND_OP
  // There is no memory of an Ascend device here: kernels for it launch operators, so they run now.
  RunNow();
#else
  RunOnMemory();
#endif
}

inline void PyboostRunner::RunOnMemory() {
  using namespace msops::extension;
  // The arrays belong to the caller, and not to the kernel as long as a program refers to it.
  const std::vector<Tensor> inputs = std::move(run_inputs_);
  const std::vector<Tensor> outputs = std::move(run_outputs_);
  std::shared_ptr<PyboostRunner> self = weak_from_this().lock();
  if (!self) {
    throw std::runtime_error("Runner " + _op_name_ +
                             ": Run needs a runner that was made with std::make_shared.");
  }
  const MsopsRunner row = {new std::shared_ptr<PyboostRunner>(std::move(self)), Binding::New,
                           Binding::Launch, Binding::Delete, [](void* pointer) {
                             delete static_cast<std::shared_ptr<PyboostRunner>*>(pointer);
                           }};
  const py::object owner = Own(Table().own_runner(row));
  std::vector<py::object> input_handles, output_handles, strided;
  for (const Tensor& input : inputs) {
    input_handles.push_back(input.tensor()->ToPython());
    strided.push_back(py::bool_(!input.need_contiguous()));
  }
  for (const Tensor& output : outputs) output_handles.push_back(output.tensor()->ToPython());
  Ask(kMsopsRun, {Text(_op_name_), owner, Tuple(std::move(input_handles)),
                  Tuple(std::move(output_handles)), Tuple(std::move(strided))});
}

// Launches operators of aclnn instead of a kernel, so it runs when it is called.
class AclnnOpRunner final : public PyboostRunner {
 public:
  using AclnnLaunchFunc = std::function<void(mindspore::device::DeviceContext*, size_t)>;
  using PyboostRunner::PyboostRunner;

  void SetLaunchFunc(const AclnnLaunchFunc& function) { launch_func_ = function; }
  void LaunchKernel() override {
    if (!launch_func_) throw std::runtime_error(_op_name_ + ": call SetLaunchFunc before Run.");
    launch_func_(_device_context_, _stream_id_);
  }

 protected:
  void _Run() override { RunNow(); }

 private:
  AclnnLaunchFunc launch_func_;
};

namespace inner {

inline std::string TypeName(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : type.name();
}

template <int OUT_NUM>
py::object Outputs(const Tensor& output, const std::string&) {
  static_assert(OUT_NUM == 1, "Call<N>: a function that returns one ms::Tensor has N = 1.");
  return py::cast(output);
}

template <int OUT_NUM>
py::object Outputs(const std::vector<Tensor>& outputs, const std::string& op_name) {
  if (outputs.size() != OUT_NUM) {
    MS_LOG(EXCEPTION) << "For op " << op_name << ", the output size should be equal to " << OUT_NUM
                      << ", but got " << outputs.size();
  }
  if constexpr (OUT_NUM == 1) return py::cast(outputs[0]);
  std::vector<py::object> results;
  for (const Tensor& output : outputs) results.push_back(py::cast(output));
  return msops::extension::Tuple(std::move(results));
}

}  // namespace inner

template <int OUT_NUM, typename Function, typename... Args>
py::object PyboostRunner::Call(const std::string& op_name, Function function, Args&&... args) {
  const ms::inner::Declared declared;
  if constexpr (OUT_NUM == 0) {
    function(std::forward<Args>(args)...);
    return py::none();
  } else {
    return inner::Outputs<OUT_NUM>(function(std::forward<Args>(args)...), op_name);
  }
}

template <int OUT_NUM, typename Function, typename... Args,
          std::enable_if_t<!std::is_convertible_v<Function, std::string>, int>>
py::object PyboostRunner::Call(Function function, Args&&... args) {
  return Call<OUT_NUM>(inner::TypeName(typeid(Function)), function, std::forward<Args>(args)...);
}

template <int OUT_NUM, typename Result, typename... Args, size_t... Index>
py::object CallWithArguments(Result (*function)(Args...), const std::string& op_name,
                             const py::args& arguments, std::index_sequence<Index...>) {
  return PyboostRunner::Call<OUT_NUM>(op_name, function,
                                      arguments[Index].template cast<std::decay_t<Args>>()...);
}

template <int OUT_NUM, typename Result, typename... Args>
py::object PyboostArgsCaller(Result (*function)(Args...), const std::string& op_name,
                             const py::args& arguments) {
  if (arguments.size() != sizeof...(Args)) {
    MS_LOG(EXCEPTION) << "Argument count mismatch: expected " << sizeof...(Args) << ", got "
                      << arguments.size();
  }
  return CallWithArguments<OUT_NUM>(function, op_name, arguments,
                                    std::index_sequence_for<Args...>());
}

}  // namespace ms::pynative

// Binds a function of tensors with positional arguments: m.def("add", PYBOOST_CALLER(1, Add)).
#define PYBOOST_CALLER_WITH_NAME(OUT_NUM, FUNC, NAME)                       \
  ([](const py::args& arguments) -> py::object {                            \
    return ms::pynative::PyboostArgsCaller<OUT_NUM>(FUNC, NAME, arguments); \
  })
#define PYBOOST_CALLER(OUT_NUM, FUNC) PYBOOST_CALLER_WITH_NAME(OUT_NUM, FUNC, #FUNC)

#endif  // MSOPS_EXTENSION_RUNNER_H_
