// function.h: mindspore::pynative::autograd::Function, a Forward and a Backward in C++.
//
// Apply calls Forward at once unless an argument is being traced. Then msops makes a
// jax.custom_vjp of the two and calls them when JAX traces it: Forward maybe several times, with
// tensors for what is differentiated, and Backward after Apply has returned.
#ifndef MSOPS_EXTENSION_FUNCTION_H_
#define MSOPS_EXTENSION_FUNCTION_H_

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

#include "msops_extension/runner.h"

namespace mindspore::pynative::autograd {

using tensor::BaseTensor;
using tensor::BaseTensorPtr;
using tensor::BaseTensorPtrList;
using tensor::Tensor;
using tensor::TensorPtr;
using tensor::TensorPtrList;

// What Forward passes to Backward, and what both may ask.
struct AutogradContext {
  AutogradContext() = default;

  // Keeps tensors for Backward, null ones too; a later call replaces them.
  void SaveForBackward(const TensorPtrList& to_save) { saved_ = to_save; }
  const TensorPtrList GetSavedTensors() const { return saved_; }
  // Inputs that Forward changes in place; each must be an output too.
  void MarkDirty(const TensorPtrList& inputs) { dirty_ = inputs; }
  // Outputs that have no gradient.
  void MarkNonDifferentiable(const TensorPtrList& outputs) { non_differentiable_ = outputs; }
  // Whether Backward gets zeros, rather than null, for an output without gradient.
  void SetMaterializeGrads(bool value) { materialize_grads_ = value; }

  // In Backward: whether the gradient of a tensor argument is asked for. Only arguments of type
  // TensorPtr count.
  bool NeedsInputGrad(size_t tensor_index) const {
    if (tensor_index >= needs_.size()) {
      MS_EXCEPTION(IndexError) << "NeedsInputGrad: tensor index out of range: " << tensor_index
                               << " of " << needs_.size() << " tensor argument(s).";
    }
    return needs_[tensor_index];
  }

  // In Forward: whether a tensor is an argument that is differentiated.
  bool NeedGrad(const TensorPtr& tensor) const {
    const auto found = std::find(inputs_.begin(), inputs_.end(), tensor);
    return tensor && found != inputs_.end() && needs_[found - inputs_.begin()];
  }

  // Numbers, text, tuples of them and tensors, for Backward.
  std::unordered_map<std::string, ValuePtr> saved_data;

 private:
  friend class Call;

  TensorPtrList inputs_;
  std::vector<bool> needs_;
  TensorPtrList saved_;
  TensorPtrList dirty_;
  TensorPtrList non_differentiable_;
  bool materialize_grads_ = true;
};

// One call of a Function, with what does not depend on its type.
class Call : public std::enable_shared_from_this<Call> {
 public:
  explicit Call(std::string name) : name_(std::move(name)) {}
  virtual ~Call() = default;

  // Returns the outputs, through JAX if an argument is being traced. A template, so that only
  // modules that have a Function compile it.
  template <typename Callable = py::cpp_function>
  TensorPtrList Apply() {
    using namespace msops::extension;
    const Gil gil;
    const py::object tensors = Handles(tensors_), others = Handles(others_);
    const py::object handles = Own(PySequence_Concat(tensors.ptr(), others.ptr()));
    if (Ask(kMsopsIsTraced, {handles}).ptr() != Py_True) {
      AutogradContext context;
      context.inputs_ = tensors_;
      context.needs_.assign(tensors_.size(), false);
      return CheckedForward(&context);
    }
    const auto self = shared_from_this();
    const Callable trace(
        [self](const py::args& arguments) { return self->Trace(arguments.ptr()); });
    return FromHandles(Ask(kMsopsApply, {Text(name_), tensors, others, Flags(is_tensor_), trace}));
  }

 protected:
  virtual TensorPtrList Forward(AutogradContext* context) = 0;
  virtual TensorPtrList Backward(AutogradContext* context, TensorPtrList gradients) = 0;

  // Sorts the arguments: only those of type TensorPtr are differentiated.
  template <typename Type>
  void Note(const Type& argument) {
    if constexpr (std::is_same_v<Type, TensorPtr>) {
      if (!argument) {
        MS_EXCEPTION(TypeError) << name_ << ": a tensor argument is None. An argument that may be "
                                << "absent is a std::optional<TensorPtr>.";
      }
      tensors_.push_back(argument);
      is_tensor_.push_back(true);
    } else {
      is_tensor_.push_back(false);
      NoteNested(argument);
    }
  }

 private:
  template <typename Type>
  void NoteNested(const Type& argument) {
    if constexpr (std::is_same_v<Type, TensorPtr>) {
      if (argument) others_.push_back(argument);
    } else if constexpr (std::is_same_v<Type, ms::Tensor>) {
      if (argument.is_defined()) others_.push_back(argument.tensor());
    } else if constexpr (msops::extension::IsOptional<Type>::value) {
      if (argument) NoteNested(*argument);
    } else if constexpr (msops::extension::IsVector<Type>::value) {
      for (const auto& item : argument) NoteNested(static_cast<typename Type::value_type>(item));
    }
  }

  TensorPtrList CheckedForward(AutogradContext* context) {
    TensorPtrList outputs = Forward(context);
    if (outputs.empty()) MS_LOG(EXCEPTION) << name_ << ": The output list must not be empty.";
    if (std::find(outputs.begin(), outputs.end(), nullptr) != outputs.end()) {
      MS_LOG(EXCEPTION) << name_ << ": Forward returned a null tensor among its outputs.";
    }
    for (const TensorPtr& tensor : context->dirty_) {
      if (std::find(outputs.begin(), outputs.end(), tensor) == outputs.end()) {
        MS_LOG(EXCEPTION) << name_ << ": an input given to MarkDirty is not an output. Return the "
                          << "tensor that was changed in place.";
      }
    }
    return outputs;
  }

  // Forward for the arguments (needs), Backward for (needs, saved, data, gradients).
  py::object Trace(PyObject* arguments) {
    AutogradContext context;
    PyObject* const needs = PyTuple_GET_ITEM(arguments, 0);
    for (const int64_t need : msops::extension::AsNumbers(needs)) context.needs_.push_back(need);
    return PyTuple_GET_SIZE(arguments) == 1
               ? TraceForward(&context)
               : TraceBackward(&context, PyTuple_GET_ITEM(arguments, 1),
                               PyTuple_GET_ITEM(arguments, 2), PyTuple_GET_ITEM(arguments, 3));
  }

  py::object TraceForward(AutogradContext* context) {
    using namespace msops::extension;
    context->inputs_ = tensors_;
    const TensorPtrList outputs = CheckedForward(context);
    const py::object data = Own(PyDict_New());
    for (const auto& [key, value] : context->saved_data) {
      if (PyDict_SetItem(data.ptr(), Text(key).ptr(), Argument(value).ptr()) != 0) {
        throw py::error_already_set();
      }
    }
    return Tuple({Handles(outputs), Handles(context->saved_), Handles(context->dirty_),
                  Handles(context->non_differentiable_), py::bool_(context->materialize_grads_),
                  data});
  }

  py::object TraceBackward(AutogradContext* context, PyObject* saved, PyObject* data,
                           PyObject* gradients) {
    context->saved_ = msops::extension::FromHandles(saved);
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(data, &at, &key, &value);) {
      context->saved_data[msops::extension::TextOf(key)] = msops::extension::ValueOf(value);
    }
    return msops::extension::Handles(Backward(context, msops::extension::FromHandles(gradients)));
  }

  static py::object Flags(const std::vector<bool>& flags) {
    std::vector<py::object> items;
    for (const bool flag : flags) items.push_back(py::bool_(flag));
    return msops::extension::Tuple(std::move(items));
  }

  const std::string name_;
  TensorPtrList tensors_;        // arguments of type TensorPtr
  TensorPtrList others_;         // tensors in other arguments
  std::vector<bool> is_tensor_;  // by argument
};

// A call of T with its arguments.
template <typename T, typename Result, typename... Args>
class CallOf final : public Call {
 public:
  explicit CallOf(Args... args)
      : Call("Function[" + ms::pynative::inner::TypeName(typeid(T)) + "]"),
        arguments_(std::move(args)...) {
    std::apply([this](const auto&... each) { (this->Note(each), ...); }, arguments_);
  }

 protected:
  TensorPtrList Forward(AutogradContext* context) override {
    Result result = std::apply(
        [context](const auto&... each) -> Result { return T::Forward(context, each...); },
        arguments_);
    if constexpr (std::is_same_v<Result, TensorPtrList>) {
      return result;
    } else {
      return {result};
    }
  }

  TensorPtrList Backward(AutogradContext* context, TensorPtrList gradients) override {
    return T::Backward(context, std::move(gradients));
  }

 private:
  const std::tuple<Args...> arguments_;
};

// Derive from it with `static R Forward(AutogradContext*, ...)`, where R is TensorPtr or
// TensorPtrList, and `static TensorPtrList Backward(AutogradContext*, TensorPtrList)`, which
// returns one gradient, or null, for each argument of Forward.
template <class T>
struct Function {
  template <typename X = T, typename... Args>
  static auto Apply(Args&&... args) {
    using Result = std::decay_t<decltype(X::Forward(nullptr, std::declval<Args>()...))>;
    static_assert(std::is_same_v<Result, TensorPtr> || std::is_same_v<Result, TensorPtrList>,
                  "Forward must return a TensorPtr or a TensorPtrList.");
    const auto call =
        std::make_shared<CallOf<T, Result, std::decay_t<Args>...>>(std::forward<Args>(args)...);
    TensorPtrList outputs = call->Apply();
    if constexpr (std::is_same_v<Result, TensorPtrList>) {
      return outputs;
    } else {
      return outputs[0];
    }
  }
};

}  // namespace mindspore::pynative::autograd

#endif  // MSOPS_EXTENSION_FUNCTION_H_
