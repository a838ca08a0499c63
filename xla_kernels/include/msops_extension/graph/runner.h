// runner.h: the arrays of a graph operator's call, and the PyboostRunner that launches its kernel.
#ifndef MSOPS_EXTENSION_GRAPH_RUNNER_H_
#define MSOPS_EXTENSION_GRAPH_RUNNER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "msops_extension/graph/kernel_mod.h"
#include "msops_extension/runner.h"

namespace msops::extension {

using mindspore::kernel::KernelTensor;

// Arguments and results of a call as its kernel gets them: the elements of a tuple of tensors one
// by one.
class GraphArrays {
 public:
  GraphArrays(const std::vector<mindspore::ValuePtr>& values,
              const mindspore::tensor::TensorPtrList& results) {
    for (const mindspore::ValuePtr& value : values) {
      const auto* const tuple = dynamic_cast<const mindspore::ValueTuple*>(value.get());
      if (tuple && tuple->size() && mindspore::AsTensor((*tuple)[0])) {
        for (const mindspore::ValuePtr& item : tuple->value()) AddInput(item);
      } else {
        AddInput(value);
      }
    }
    for (const auto& result : results) own_outputs_.push_back(Make(result));
  }

  std::vector<KernelTensor*> inputs() const { return Pointers(own_inputs_); }
  std::vector<KernelTensor*> outputs() const { return Pointers(own_outputs_); }
  // The inputs that are tensors.
  const mindspore::tensor::TensorPtrList& tensors() const { return tensors_; }

  // The same with memory in place of the tensors.
  GraphArrays OnMemory(const std::vector<ms::Tensor>& tensors,
                       const std::vector<ms::Tensor>& results) const {
    GraphArrays there;
    size_t next = 0;
    for (const auto& input : own_inputs_) {
      there.own_inputs_.push_back(input->tensor() ? Make(tensors.at(next++).tensor()) : input);
    }
    for (size_t i = 0; i < own_outputs_.size(); ++i) {
      there.own_outputs_.push_back(Make(results.at(i).tensor()));
    }
    return there;
  }

  void Launch(mindspore::kernel::KernelMod* kernel, const std::vector<KernelTensor*>& workspace,
              void* stream) const {
    if (!kernel->Launch(inputs(), workspace, outputs(), stream)) {
      MS_LOG(EXCEPTION) << "Launch of its kernel returned false.";
    }
  }

 private:
  using Owned = std::vector<std::shared_ptr<KernelTensor>>;

  GraphArrays() = default;

  static std::shared_ptr<KernelTensor> Make(const mindspore::ValuePtr& value) {
    return std::make_shared<KernelTensor>(value);
  }
  void AddInput(const mindspore::ValuePtr& value) {
    own_inputs_.push_back(Make(value));
    if (own_inputs_.back()->tensor()) tensors_.push_back(own_inputs_.back()->tensor());
  }
  static std::vector<KernelTensor*> Pointers(const Owned& owned) {
    std::vector<KernelTensor*> pointers;
    for (const auto& each : owned) pointers.push_back(each.get());
    return pointers;
  }

  mindspore::tensor::TensorPtrList tensors_;
  Owned own_inputs_;
  Owned own_outputs_;
};

class GraphRunner final : public ms::pynative::PyboostRunner {
 public:
  GraphRunner(const std::string& name, mindspore::kernel::KernelModPtr kernel, GraphArrays arrays)
      : PyboostRunner(name), kernel_(std::move(kernel)), arrays_(std::move(arrays)) {}

  size_t CalcWorkspace() override {
    size_t total = 0;
    for (const size_t size : kernel_->GetWorkspaceSizeList()) total += Rounded(size);
    return total;
  }

  void LaunchKernel() override {
    std::vector<std::shared_ptr<KernelTensor>> owned;
    std::vector<KernelTensor*> workspace;
    auto* memory = static_cast<char*>(workspace_ptr());
    for (const size_t size : kernel_->GetWorkspaceSizeList()) {
      const auto extent = static_cast<int64_t>(size);
      const MsopsArray bytes = {mindspore::kNumberTypeUInt8, 1, &extent, nullptr, 0};
      const auto tensor = std::make_shared<mindspore::tensor::Tensor>(bytes);
      tensor->set_data(memory);
      memory += Rounded(size);
      owned.push_back(std::make_shared<KernelTensor>(tensor));
      workspace.push_back(owned.back().get());
    }
    arrays_.OnMemory(inputs(), outputs()).Launch(kernel_.get(), workspace, stream());
  }

 private:
  // Where MindSpore's allocators end a buffer; kernels in the wild lean on it.
  static size_t Rounded(size_t size) { return (size + 511) / 512 * 512; }

  const mindspore::kernel::KernelModPtr kernel_;
  const GraphArrays arrays_;
};

}  // namespace msops::extension

#endif  // MSOPS_EXTENSION_GRAPH_RUNNER_H_
