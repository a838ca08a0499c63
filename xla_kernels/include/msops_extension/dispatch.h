// dispatch.h: MindSpore 2.10's API without a runner: TensorToDevice names inputs, TensorAllocate
// outputs, and DispatchKernel runs a function on the memory of the tensors that it captured.
//
// Eagerly the function runs at once. Under tracing it becomes a runner on the tensors named, which
// while it runs are where the program has them.
#ifndef MSOPS_EXTENSION_DISPATCH_H_
#define MSOPS_EXTENSION_DISPATCH_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "msops_extension/runner.h"

namespace ms {

// There is no device to choose; null, which other functions take.
inline mindspore::device::DeviceContext* GetCurrentDeviceContext() { return nullptr; }

namespace inner {

template <typename Type>
constexpr bool kHoldsTensors =
    std::is_same_v<Type, Tensor> || std::is_same_v<Type, std::optional<Tensor>> ||
    std::is_same_v<Type, std::vector<Tensor>>;

template <typename Type>
void NameInput(const Type& argument) {
  if constexpr (kHoldsTensors<Type>) {
    Add(&Declared::Current().inputs, argument);
  }
}

template <typename Type>
void NameOutput(const Type& argument) {
  static_assert(kHoldsTensors<Type>, "TensorAllocate takes tensors and vectors of tensors.");
  Add(&Declared::Current().outputs, argument);
}

// A function on captured tensors, as a kernel of a program.
class DispatchedKernel final : public pynative::PyboostRunner {
 public:
  DispatchedKernel(std::function<void()> kernel, std::vector<Tensor> captured_inputs,
                   std::vector<Tensor> captured_outputs)
      : PyboostRunner("DispatchKernel"),
        kernel_(std::move(kernel)),
        captured_inputs_(std::move(captured_inputs)),
        captured_outputs_(std::move(captured_outputs)) {}

  void LaunchKernel() override {
    msops::extension::BoundMemory bound;
    for (size_t i = 0; i < captured_outputs_.size(); ++i) {
      bound.Bind(captured_outputs_[i].tensor().get(), outputs()[i].GetDataPtr());
    }
    // What is an input only belongs to the program, and the kernel gets a copy.
    std::vector<std::pair<const char*, std::vector<char>>> copies;
    for (size_t i = 0; i < captured_inputs_.size(); ++i) {
      const auto* const tensor = captured_inputs_[i].tensor().get();
      if (bound.Has(tensor)) continue;
      const auto* const memory = static_cast<const char*>(inputs()[i].GetDataPtr());
      const size_t size_bytes =
          inputs()[i].numel() * msops::extension::ElementOf(inputs()[i].data_type()).size;
      copies.emplace_back(memory, std::vector<char>(memory, memory + size_bytes));
      bound.Bind(tensor, copies.back().second.data());
    }
    kernel_();
    for (const auto& [memory, copy] : copies) {
      if (!std::equal(copy.begin(), copy.end(), memory)) {
        throw std::runtime_error(
            "It writes to a tensor that is only an input. Name the tensor in ms::TensorAllocate, "
            "too.");
      }
    }
  }

 protected:
  void _Run() override { RunOnMemory(); }

 private:
  const std::function<void()> kernel_;
  const std::vector<Tensor> captured_inputs_;
  const std::vector<Tensor> captured_outputs_;
};

inline bool IsTraced(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
  std::vector<py::object> handles;
  for (const auto* const tensors : {&inputs, &outputs}) {
    for (const Tensor& tensor : *tensors) handles.push_back(tensor.tensor()->ToPython());
  }
  return Ask(kMsopsIsTraced, {msops::extension::Tuple(std::move(handles))}).ptr() == Py_True;
}

}  // namespace inner

// Names the inputs of what is dispatched next; arguments that are no tensors are passed over.
template <typename... Args>
void TensorToDevice(const Args&... args) {
  (inner::NameInput(args), ...);
}

// Names the outputs of what is dispatched next.
inline void TensorAllocate(const Tensor& output) { inner::NameOutput(output); }
inline void TensorAllocate(const std::vector<Tensor>& outputs) { inner::NameOutput(outputs); }
template <typename First, typename Second, typename... Rest>
void TensorAllocate(const First& first, const Second& second, const Rest&... rest) {
  inner::NameOutput(first);
  inner::NameOutput(second);
  (inner::NameOutput(rest), ...);
}

// Runs a function that works on the memory of captured tensors.
template <typename Function>
void DispatchKernel(Function&& function) {
  const inner::Gil gil;
  auto& declared = inner::Declared::Current();
  const auto inputs = std::move(declared.inputs);
  const auto outputs = std::move(declared.outputs);
  declared.inputs.clear();
  declared.outputs.clear();
  if (!inner::IsTraced(inputs, outputs)) {
    const py::gil_scoped_release others_need_it;
    function();
    return;
  }
  if (outputs.empty()) {
    throw std::runtime_error(
        "ms::DispatchKernel: a function is being traced, and no tensor is named as an output. "
        "Call ms::TensorAllocate with each tensor that the kernel writes to.");
  }
  auto kernel = std::make_shared<std::decay_t<Function>>(std::forward<Function>(function));
  std::make_shared<inner::DispatchedKernel>([kernel] { (*kernel)(); }, inputs, outputs)
      ->Run(inputs, outputs);
}

}  // namespace ms

// Launches an operator of aclnn on tensors and numbers: MS_DISPATCH_ACLNN(aclnnMul, x, y, out).
#define MS_DISPATCH_ACLNN(aclnn_api, ...)                     \
  do {                                                        \
    auto& declared_now = ms::inner::Declared::Current();      \
    declared_now.inputs.clear();                              \
    declared_now.outputs.clear();                             \
    ::msops::extension::LaunchAclnn(#aclnn_api, __VA_ARGS__); \
  } while (false)

#endif  // MSOPS_EXTENSION_DISPATCH_H_
