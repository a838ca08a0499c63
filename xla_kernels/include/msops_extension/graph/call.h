// call.h: one call of a graph operator: infer, make its results, and run or trace its kernel.
//
// Only the source that msops writes for a module's operators includes this.
#ifndef MSOPS_EXTENSION_GRAPH_CALL_H_
#define MSOPS_EXTENSION_GRAPH_CALL_H_

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "msops_extension/graph/aclnn_kernel_mod.h"
#include "msops_extension/graph/runner.h"

namespace msops::extension {

// What Python says of an operator.
struct GraphDefinition {
  std::string name;
  mindspore::ops::OpFuncImpl* infer;
  std::vector<std::string> arguments;  // their names
  std::vector<int64_t> results;        // for each the argument that it is, or -1
  std::vector<int64_t> written;        // arguments that the kernel changes in place
};

class GraphCall {
 public:
  GraphCall(GraphDefinition definition, PyObject* values, PyObject* contents, PyObject* labels)
      : definition_(std::move(definition)),
        primitive_(std::make_shared<mindspore::Primitive>("Custom_" + definition_.name)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); ++i) {
      values_.push_back(ValueOf(PyTuple_GET_ITEM(values, i)));
      infos_.push_back(std::make_unique<mindspore::ops::InferInfo>(
          definition_.arguments[i], values_.back(), ValueOf(PyTuple_GET_ITEM(contents, i))));
    }
    PyObject *key = nullptr, *label = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(labels, &at, &key, &label);) {
      primitive_->AddAttr(TextOf(key), ValueOf(label));
    }
  }

  // Returns the handles of the results.
  py::object Run() {
    const mindspore::kernel::KernelModPtr kernel =
        mindspore::kernel::CustomKernelFactory::Instance().Create(primitive_->name());
    if (!kernel) {
      MS_LOG(EXCEPTION) << Who() << "no kernel is registered for it. Write MS_CUSTOM_OPS_REGISTER("
                        << definition_.name << ", the infer class, the kernel class), or register "
                        << primitive_->name() << " with MS_KERNEL_FACTORY_REG_BY_CREATOR.";
    }
    MakeResults();
    const GraphArrays arrays(values_, results_);
    CheckRows(*kernel, arrays);
    Prepare(kernel.get(), arrays);
    if (std::dynamic_pointer_cast<mindspore::kernel::AclnnKernelMod>(kernel)) {
      arrays.Launch(kernel.get(), {}, this);
    } else {
      RunOnMemory(kernel, arrays);
    }
    return Handles(results_);
  }

 private:
  using TensorPtr = mindspore::tensor::TensorPtr;

  std::string Who() const { return primitive_->name() + ": "; }

  void MakeResults() {
    definition_.infer->CheckValidation(primitive_, infos_);
    const mindspore::ShapeArray shapes = definition_.infer->InferShape(primitive_, infos_);
    const std::vector<mindspore::TypeId> types = definition_.infer->InferType(primitive_, infos_);
    const size_t count = definition_.results.size();
    if (shapes.size() != count || types.size() != count) {
      MS_EXCEPTION(ValueError) << Who() << "op_def names " << count
                               << " result(s), InferShape returned " << shapes.size()
                               << " shape(s) and InferType " << types.size()
                               << " dtype(s). Return one of each per result.";
    }
    for (size_t i = 0; i < count; ++i) {
      CheckShape(shapes[i], i);
      const int64_t source = definition_.results[i];
      if (source < 0) {
        results_.push_back(std::make_shared<mindspore::tensor::Tensor>(types[i], shapes[i]));
        continue;
      }
      results_.push_back(mindspore::AsTensor(values_[source]));
      if (results_[i]->shape() != shapes[i] || results_[i]->data_type() != types[i]) {
        MS_EXCEPTION(ValueError) << Who() << "result " << i << " is argument "
                                 << definition_.arguments[source]
                                 << ", changed in place, and another shape or dtype was inferred "
                                 << "for it. Return GetShape() and GetType() of that argument.";
      }
    }
  }

  void CheckShape(const mindspore::ShapeVector& shape, size_t index) const {
    if (std::all_of(shape.begin(), shape.end(), [](int64_t extent) { return extent >= 0; })) return;
    std::string text;
    for (const int64_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
    MS_EXCEPTION(ValueError) << Who() << "InferShape returned (" << text << ") for result " << index
                             << ": every extent must be known when the operator is called or "
                             << "traced. If it depends on a tensor's value, list the tensor in "
                             << "GetValueDependArgIndices and call the operator outside of jit.";
  }

  // Finds a row for the dtypes of the call.
  void CheckRows(mindspore::kernel::KernelMod& kernel, const GraphArrays& arrays) const {
    if (!dynamic_cast<mindspore::kernel::NativeCpuKernelMod*>(&kernel)) return;
    const std::vector<mindspore::kernel::KernelAttr> rows = kernel.GetOpSupport();
    if (rows.empty()) return;
    const auto given = GetKernelAttrFromTensors(arrays.inputs(), arrays.outputs());
    const auto [is_match, index] = MatchKernelAttr(given, rows);
    if (!is_match) {
      std::string known;
      for (const auto& row : rows) known += "\n  " + row.ToString();
      MS_EXCEPTION(TypeError) << Who() << "the dtypes " << given.ToString()
                              << " match no row of GetOpSupport:" << known
                              << "\nCast the arguments, or add a row.";
    }
    for (const auto& [output, input] : rows[index].GetOutInRefMap()) {
      if (output < definition_.results.size() && input < values_.size() &&
          definition_.results[output] == static_cast<int64_t>(input)) {
        continue;
      }
      MS_EXCEPTION(ValueError) << Who() << "AddOutInRef(" << output << ", " << input
                               << ") says that a result is an argument, and op_def does not. Write "
                               << "inplace, with the argument's name, below the result.";
    }
  }

  void Prepare(mindspore::kernel::KernelMod* kernel, const GraphArrays& arrays) {
    if (!kernel->Init(primitive_, arrays.inputs(), arrays.outputs())) {
      MS_LOG(EXCEPTION) << Who() << "Init of its kernel returned false.";
    }
    if (const int code = kernel->Resize(arrays.inputs(), arrays.outputs())) {
      MS_LOG(EXCEPTION) << Who() << "Resize of its kernel returned " << code << ", not KRET_OK.";
    }
  }

  // Lets a runner call the kernel; what the kernel changes in place is an output of the runner.
  void RunOnMemory(const mindspore::kernel::KernelModPtr& kernel, const GraphArrays& arrays) {
    mindspore::tensor::TensorPtrList outputs = results_;
    for (const int64_t position : definition_.written) {
      const TensorPtr tensor = mindspore::AsTensor(values_[position]);
      if (tensor && std::find(outputs.begin(), outputs.end(), tensor) == outputs.end()) {
        outputs.push_back(tensor);
      }
    }
    const std::vector<ms::Tensor> inputs(arrays.tensors().begin(), arrays.tensors().end());
    std::make_shared<GraphRunner>(primitive_->name(), kernel, arrays)
        ->Run(inputs, std::vector<ms::Tensor>(outputs.begin(), outputs.end()));
  }

  const GraphDefinition definition_;
  const std::shared_ptr<mindspore::Primitive> primitive_;
  std::vector<mindspore::ValuePtr> values_;
  mindspore::ops::InferInfoPtrList infos_;
  mindspore::tensor::TensorPtrList results_;
};

}  // namespace msops::extension

#endif  // MSOPS_EXTENSION_GRAPH_CALL_H_
