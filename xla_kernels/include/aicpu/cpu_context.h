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
  std::vector<std::pair<std::string, std::shared_ptr<AttrValue>>> attributes_;
};

class CpuKernelContext {
 public:
  explicit CpuKernelContext(DeviceType type) : device_type_(type) {}
  CpuKernelContext(const CpuKernelContext&) = delete;
  CpuKernelContext(CpuKernelContext&&) = delete;
  CpuKernelContext& operator=(const CpuKernelContext&) = delete;
  CpuKernelContext& operator=(CpuKernelContext&&) = delete;
  ~CpuKernelContext() = default;

  uint32_t Init(NodeDef* node_def) {
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
    for (const auto& [known, value] : attributes_) {
      if (known == name) return value.get();
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

  explicit CpuKernelContext(const MsopsAicpuCall& call)
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
      attributes_.emplace_back(call.attributes[i].name, Read(call.attributes[i]));
    }
    NameTensors();
  }

  // Names the inputs as the op info does.
  void NameTensors() {
    const AttrValue* const attribute = GetAttr(MSOPS_AICPU_INPUT_NAMES);
    if (attribute == nullptr) return;
    const std::vector<std::string> names = attribute->GetListString();
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

  template <typename To, typename From, typename Value>
  static void ReadValues(const MsopsAicpuAttribute& from, Value* value) {
    const From* data = static_cast<const From*>(from.values);
    if (from.depth == 0) {
      *value = static_cast<To>(data[0]);
      return;
    }
    if (from.depth == 1) {
      *value = std::vector<To>(data, data + from.count);
      return;
    }
    if constexpr (std::is_same_v<To, From>) {
      std::vector<std::vector<To>> rows;
      for (uint64_t i = 0; i < from.rows; data += from.lengths[i++]) {
        rows.emplace_back(data, data + from.lengths[i]);
      }
      *value = std::move(rows);
    }
  }

  static std::shared_ptr<AttrValue> Read(const MsopsAicpuAttribute& from) {
    std::shared_ptr<AttrValue> attribute(new AttrValue(from.name));
    auto* const value = &attribute->value_;
    switch (from.kind) {
      case MSOPS_AICPU_BOOL:
        ReadValues<bool, uint8_t>(from, value);
        break;
      case MSOPS_AICPU_INT:
        ReadValues<int64_t, int64_t>(from, value);
        break;
      case MSOPS_AICPU_FLOAT:
        ReadValues<double, double>(from, value);
        break;
      default: {
        const auto* const texts = static_cast<const MsopsAicpuText*>(from.values);
        std::vector<std::string> strings;
        for (uint64_t i = 0; i < from.count; ++i)
          strings.emplace_back(texts[i].data, texts[i].size);
        if (from.depth == 0) {
          *value = std::move(strings[0]);
        } else {
          *value = std::move(strings);
        }
      }
    }
    return attribute;
  }

  // Null for a context that a test made by hand.
  const MsopsAicpuCall* host_call_ = nullptr;
  DeviceType device_type_;
  std::string type_;
  Tensors inputs_;
  Tensors outputs_;
  // Few, so looking through them is faster than a hash table, which each call would have to fill.
  std::vector<std::pair<std::string, std::shared_ptr<AttrValue>>> attributes_;
};

}  // namespace aicpu

#endif  // MSOPS_AICPU_CPU_CONTEXT_H_
