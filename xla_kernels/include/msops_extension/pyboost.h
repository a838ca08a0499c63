// pyboost.h: how kernels of MindSpore 2.6 launch operators step by step: OpRunner, PyBoostUtils,
// PyBoostDeviceTask; and operators as functions.
//
// Where MindSpore queues a task, finds memory and a stream, here all of that is JAX's: the steps in
// between do nothing, and a task runs when it is dispatched.
#ifndef MSOPS_EXTENSION_PYBOOST_H_
#define MSOPS_EXTENSION_PYBOOST_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "msops_extension/launch.h"

namespace mindspore {

// An operator's name.
class Primitive : public Value {
 public:
  explicit Primitive(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  py::object ToPython() const override { return msops::extension::Text(name_); }

 private:
  const std::string name_;
};
using PrimitivePtr = std::shared_ptr<Primitive>;

namespace runtime {

struct OpRunner {
  // There is no device of Ascend's; null, which the other steps pass on.
  template <typename Name>
  static device::DeviceContext* GetDeviceContext(const Name&) {
    return nullptr;
  }
};

class PyBoostDeviceTask {
 public:
  explicit PyBoostDeviceTask(std::function<void()> run_func) : run_func_(std::move(run_func)) {}
  virtual ~PyBoostDeviceTask() = default;
  virtual void Run() { run_func_(); }

 private:
  std::function<void()> run_func_;
};

}  // namespace runtime

namespace kernel::pyboost {

using DeviceContext = device::DeviceContext;

class OpRunner : public std::enable_shared_from_this<OpRunner> {
 public:
  OpRunner(PrimitivePtr primitive, const DeviceContext* device_context)
      : primitive_(std::move(primitive)), device_context_(device_context) {}
  virtual ~OpRunner() = default;

  std::shared_ptr<OpRunner> get_op() { return shared_from_this(); }
  const PrimitivePtr& primitive() const { return primitive_; }
  const DeviceContext* device_context() const { return device_context_; }
  void set_stream_id(size_t stream_id) { stream_id_ = stream_id; }
  size_t stream_id() const { return stream_id_; }
  void set_outputs(const tensor::TensorPtrList& outputs) { outputs_ = outputs; }
  const tensor::TensorPtrList& outputs() const { return outputs_; }
  const tensor::TensorPtr& output(size_t index) const {
    if (index >= outputs_.size()) {
      MS_EXCEPTION(IndexError) << "OpRunner " << (primitive_ ? primitive_->name() : "")
                               << ": expected an index below " << outputs_.size()
                               << ", the number of outputs set; got " << index << ".";
    }
    return outputs_[index];
  }

 private:
  PrimitivePtr primitive_;
  const DeviceContext* device_context_;
  tensor::TensorPtrList outputs_;
  size_t stream_id_ = 0;
};

struct PyBoostUtils {
  static size_t cur_stream_id() { return 0; }
  template <typename... Inputs>
  static void PrepareOpInputs(const DeviceContext*, size_t, const Inputs&...) {}
  static void PrepareOpOutputs(const DeviceContext*, size_t, const tensor::TensorPtrList&) {}
  template <typename... Inputs>
  static void MallocOpInputs(const DeviceContext*, const Inputs&...) {}
  static void MallocOpOutputs(const DeviceContext*, const tensor::TensorPtrList&) {}
  static void DispatchRun(const std::shared_ptr<runtime::PyBoostDeviceTask>& task) {
    MS_EXCEPTION_IF_NULL(task);
    task->Run();
  }
};

// Operators of one tensor whose results have its shape and dtype.
#define MSOPS_PYBOOST_UNARY(function, aclnn_api)                             \
  inline tensor::TensorPtr function(const tensor::TensorPtr& x) {            \
    MS_EXCEPTION_IF_NULL(x);                                                 \
    auto out = std::make_shared<tensor::Tensor>(x->data_type(), x->shape()); \
    custom::CustomLaunchAclnn(#aclnn_api, {x}, {out});                       \
    return out;                                                              \
  }
MSOPS_PYBOOST_UNARY(abs, aclnnAbs)
MSOPS_PYBOOST_UNARY(ceil, aclnnCeil)
MSOPS_PYBOOST_UNARY(cos, aclnnCos)
MSOPS_PYBOOST_UNARY(erf, aclnnErf)
MSOPS_PYBOOST_UNARY(exp, aclnnExp)
MSOPS_PYBOOST_UNARY(floor, aclnnFloor)
MSOPS_PYBOOST_UNARY(log, aclnnLog)
MSOPS_PYBOOST_UNARY(neg, aclnnNeg)
MSOPS_PYBOOST_UNARY(reciprocal, aclnnReciprocal)
MSOPS_PYBOOST_UNARY(relu, aclnnRelu)
MSOPS_PYBOOST_UNARY(rsqrt, aclnnRsqrt)
MSOPS_PYBOOST_UNARY(sigmoid, aclnnSigmoid)
MSOPS_PYBOOST_UNARY(sign, aclnnSign)
MSOPS_PYBOOST_UNARY(silu, aclnnSilu)
MSOPS_PYBOOST_UNARY(sin, aclnnSin)
MSOPS_PYBOOST_UNARY(sqrt, aclnnSqrt)
MSOPS_PYBOOST_UNARY(tanh, aclnnTanh)
#undef MSOPS_PYBOOST_UNARY

}  // namespace kernel::pyboost
}  // namespace mindspore

#endif  // MSOPS_EXTENSION_PYBOOST_H_
