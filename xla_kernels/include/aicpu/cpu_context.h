// cpu_context.h: one call of a kernel: its inputs, outputs and attributes.
#ifndef MSOPS_AICPU_CPU_CONTEXT_H_
#define MSOPS_AICPU_CPU_CONTEXT_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cpu_attr_value.h"
#include "cpu_tensor.h"
#include "cpu_types.h"
#include "msops_aicpu.h"
#include "status.h"

namespace aicpu {

class Device;

// A call described by hand, in a unit test of a kernel; NodeDefBuilder fills it.
class NodeDef {
 private:
  friend class CpuKernelContext;
  friend class NodeDefBuilder;

  std::string type_;
  std::string name_;
  std::vector<std::shared_ptr<Tensor>> inputs_;
  std::vector<std::shared_ptr<Tensor>> outputs_;
  std::vector<std::shared_ptr<AttrValue>> attributes_;
};

class CpuKernelContext {
 public:
  explicit CpuKernelContext(DeviceType type) : device_type_(type) {}
  CpuKernelContext(const CpuKernelContext&) = delete;
  CpuKernelContext(CpuKernelContext&&) = delete;
  CpuKernelContext& operator=(const CpuKernelContext&) = delete;
  CpuKernelContext& operator=(CpuKernelContext&&) = delete;
  MSOPS_AICPU_ONCE ~CpuKernelContext() {}

  MSOPS_AICPU_ONCE uint32_t Init(NodeDef* node_def) {
    if (!node_def) return KERNEL_STATUS_PARAM_INVALID;
    type_ = node_def->type_;
    inputs_ = node_def->inputs_;
    outputs_ = node_def->outputs_;
    attributes_ = node_def->attributes_;
    return KERNEL_STATUS_OK;
  }

  // Returns the name of the op.
  std::string GetOpType() const { return type_; }

  // Null if there is no such input, output or attribute.
  Tensor* Input(uint32_t index) const { return At(inputs_, index); }
  Tensor* Output(uint32_t index) const { return At(outputs_, index); }
  AttrValue* GetAttr(std::string name) const {
    for (const std::shared_ptr<AttrValue>& value : attributes_) {
      if (value->name_ == name) return value.get();
    }
    return nullptr;
  }

  uint32_t GetInputsSize() const { return static_cast<uint32_t>(inputs_.size()); }
  uint32_t GetOutputsSize() const { return static_cast<uint32_t>(outputs_.size()); }

 private:
  friend class CpuKernelUtils;
  friend class CustCpuKernelUtils;
  friend class HostCall;

  using Tensors = std::vector<std::shared_ptr<Tensor>>;

  MSOPS_AICPU_ONCE explicit CpuKernelContext(const MsopsAicpuCall& call)
      : host_call_(&call), device_type_(HOST), type_(call.type) {
    inputs_.reserve(call.input_count);
    for (uint32_t i = 0; i < call.input_count; ++i) inputs_.push_back(Read(call.inputs[i]));
    outputs_.reserve(call.output_count);
    for (uint32_t i = 0; i < call.output_count; ++i) {
      outputs_.push_back(Read(call.outputs[i]));
      TensorShape& shape = *outputs_.back()->shape_;
      shape.most_elements_ = shape.NumElements();
    }
    attributes_.reserve(call.attribute_count);
    for (uint32_t i = 0; i < call.attribute_count; ++i) {
      attributes_.push_back(std::shared_ptr<AttrValue>(new AttrValue(call.attributes[i])));
    }
    NameTensors();
  }

  // Names the inputs as the op info does.
  void NameTensors() {
    const AttrValue* const attribute = GetAttr(MSOPS_AICPU_INPUT_NAMES);
    if (attribute == nullptr) return;
    const std::vector<std::string>& names = attribute->List(AttrValue::kText, "strings").texts_;
    for (size_t i = 0; i < std::min(names.size(), inputs_.size()); ++i) {
      inputs_[i]->name_ = names[i];
    }
  }

  static Tensor* At(const Tensors& tensors, uint32_t index) {
    return index < tensors.size() ? tensors[index].get() : nullptr;
  }

  static std::shared_ptr<Tensor> Read(const MsopsAicpuTensor& from) {
    std::shared_ptr<Tensor> tensor(new Tensor(new TensorShape(from.dims, from.rank)));
    tensor->data_ = from.data;
    tensor->size_bytes_ = from.size_bytes;
    tensor->dtype_ = static_cast<DataType>(from.dtype);
    return tensor;
  }

  // Null for a context that a test made by hand.
  const MsopsAicpuCall* host_call_ = nullptr;
  DeviceType device_type_;
  std::string type_;
  Tensors inputs_;
  Tensors outputs_;
  // Few, so looking through them is faster than a hash table, which each call would have to fill.
  std::vector<std::shared_ptr<AttrValue>> attributes_;
};

}  // namespace aicpu

#endif  // MSOPS_AICPU_CPU_CONTEXT_H_
