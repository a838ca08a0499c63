// pyboost.h: how kernels of MindSpore 2.6 launch operators step by step: OpRunner, PyBoostUtils,
// PyBoostDeviceTask; and operators as functions, those of aclnn.
//
// Where MindSpore queues a task, finds memory and a stream, here all of that is JAX's: the steps in
// between do nothing, and a task runs when it is dispatched.
#ifndef MSOPS_EXTENSION_PYBOOST_H_
#define MSOPS_EXTENSION_PYBOOST_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "msops_extension/launch.h"

namespace mindspore {

// An operator's name and attributes.
class Primitive : public Value {
 public:
  explicit Primitive(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  void AddAttr(const std::string& name, const ValuePtr& value) { attributes_[name] = value; }
  bool HasAttr(const std::string& name) const { return attributes_.count(name) != 0; }
  // Null if there is none of that name.
  ValuePtr GetAttr(const std::string& name) const {
    const auto found = attributes_.find(name);
    return found == attributes_.end() ? nullptr : found->second;
  }
  py::object ToPython() const override { return msops::extension::Text(name_); }

 private:
  const std::string name_;
  std::unordered_map<std::string, ValuePtr> attributes_;
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

// Returns what an operator of aclnn makes of a tensor and more arguments.
template <typename... Arguments>
tensor::TensorPtr Compute(const char* function, const char* aclnn_api, const tensor::TensorPtr& x,
                          const Arguments&... arguments) {
  using namespace msops::extension;
  MS_EXCEPTION_IF_NULL(x);
  const Gil gil;
  return FromHandle(Ask(kMsopsMethod, {Text("pyboost"), x->ToPython(), Text(function),
                                       Text(aclnn_api), Argument(arguments)...}));
}

#define MSOPS_PYBOOST_UNARY(function, aclnn_api)                  \
  inline tensor::TensorPtr function(const tensor::TensorPtr& x) { \
    return Compute(#function, #aclnn_api, x);                     \
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

inline tensor::TensorPtr add(const tensor::TensorPtr& x, const tensor::TensorPtr& y) {
  return Compute("add", "aclnnAdd", x, y, int64_t{1});
}
inline tensor::TensorPtr sub(const tensor::TensorPtr& x, const tensor::TensorPtr& y) {
  return Compute("sub", "aclnnSub", x, y, int64_t{1});
}

#define MSOPS_PYBOOST_BINARY(function, aclnn_api)                                             \
  inline tensor::TensorPtr function(const tensor::TensorPtr& x, const tensor::TensorPtr& y) { \
    return Compute(#function, #aclnn_api, x, y);                                              \
  }
MSOPS_PYBOOST_BINARY(mul, aclnnMul)
MSOPS_PYBOOST_BINARY(div, aclnnDiv)
MSOPS_PYBOOST_BINARY(maximum, aclnnMaximum)
MSOPS_PYBOOST_BINARY(minimum, aclnnMinimum)
MSOPS_PYBOOST_BINARY(matmul_ext, aclnnMatmul)
MSOPS_PYBOOST_BINARY(mm_ext, aclnnMm)
MSOPS_PYBOOST_BINARY(bmm_ext, aclnnBatchMatMul)
#undef MSOPS_PYBOOST_BINARY

inline tensor::TensorPtr transpose(const tensor::TensorPtr& x, const std::vector<int64_t>& dims) {
  return Compute("transpose", "aclnnPermute", x, dims);
}

// The tensor with its last two axes swapped, if the flag says so.
inline tensor::TensorPtr Turned(const tensor::TensorPtr& x, const BoolImmPtr& flag) {
  MS_EXCEPTION_IF_NULL(x);
  MS_EXCEPTION_IF_NULL(flag);
  const size_t rank = x->shape().size();
  if (!flag->value() || rank < 2) return x;
  std::vector<int64_t> dims(rank);
  std::iota(dims.begin(), dims.end(), 0);
  std::swap(dims[rank - 2], dims[rank - 1]);
  return transpose(x, dims);
}

// The product of two matrices.
inline tensor::TensorPtr matmul(const tensor::TensorPtr& x, const tensor::TensorPtr& y,
                                const BoolImmPtr& transpose_a, const BoolImmPtr& transpose_b) {
  return Compute("matmul", "aclnnMm", Turned(x, transpose_a), Turned(y, transpose_b));
}

// Products of matrices; the axes before the last two broadcast.
inline tensor::TensorPtr batch_mat_mul(const tensor::TensorPtr& x, const tensor::TensorPtr& y,
                                       const BoolImmPtr& transpose_a,
                                       const BoolImmPtr& transpose_b) {
  return Compute("batch_mat_mul", "aclnnMatmul", Turned(x, transpose_a), Turned(y, transpose_b));
}

inline tensor::TensorPtr cast(const tensor::TensorPtr& x, const Int64ImmPtr& dtype) {
  MS_EXCEPTION_IF_NULL(dtype);
  return ms::Tensor(x).cast(static_cast<TypeId>(dtype->value())).tensor();
}
inline tensor::TensorPtr reshape(const tensor::TensorPtr& x, const std::vector<int64_t>& shape) {
  return ms::Tensor(x).reshape(shape).tensor();
}
inline tensor::TensorPtr contiguous(const tensor::TensorPtr& x) {
  return ms::Tensor(x).contiguous().tensor();
}

}  // namespace kernel::pyboost
}  // namespace mindspore

#endif  // MSOPS_EXTENSION_PYBOOST_H_
