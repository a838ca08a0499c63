// cpu_nodedef_builder.h: describes a call by hand, to run a kernel in a unit test.
#ifndef MSOPS_AICPU_CPU_NODEDEF_BUILDER_H_
#define MSOPS_AICPU_CPU_NODEDEF_BUILDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cpu_context.h"

namespace aicpu {

class NodeDefBuilder {
 public:
  struct InputOutputNode {
    std::string node;
    DataType dType;
    std::vector<int64_t> dims;
    void* data;
    Format format = FORMAT_ND;
  };

  static std::shared_ptr<NodeDef> CreateNodeDef() { return std::make_shared<NodeDef>(); }

  NodeDefBuilder(NodeDef* node_def, std::string name, std::string op_name) : node_(node_def) {
    node_->name_ = std::move(name);
    node_->type_ = std::move(op_name);
  }

  NodeDefBuilder& Input(const InputOutputNode& input) {
    node_->inputs_.push_back(NewTensor(input));
    return *this;
  }

  NodeDefBuilder& Output(const InputOutputNode& output) {
    node_->outputs_.push_back(NewTensor(output));
    return *this;
  }

  NodeDefBuilder& Attr(std::string name, int32_t value) { return Attr(name, int64_t{value}); }
  NodeDefBuilder& Attr(std::string name, int64_t value) {
    New(std::move(name)).SetInt(value);
    return *this;
  }
  NodeDefBuilder& Attr(std::string name, float value) {
    New(std::move(name)).SetFloat(value);
    return *this;
  }
  NodeDefBuilder& Attr(std::string name, double value) {
    return Attr(std::move(name), static_cast<float>(value));
  }
  NodeDefBuilder& Attr(std::string name, bool value) {
    New(std::move(name)).SetBool(value);
    return *this;
  }
  NodeDefBuilder& Attr(std::string name, DataType value) {
    New(std::move(name)).SetDataType(value);
    return *this;
  }
  NodeDefBuilder& Attr(std::string name, const std::string& value) {
    New(std::move(name)).SetString(value);
    return *this;
  }
  // A literal would otherwise become a bool.
  NodeDefBuilder& Attr(std::string name, const char* value) {
    return Attr(std::move(name), std::string(value));
  }
  NodeDefBuilder& Attr(std::string name, const std::vector<int64_t>& values) {
    New(std::move(name)).SetListInt(values);
    return *this;
  }
  NodeDefBuilder& Attr(std::string name, const std::vector<std::vector<int64_t>>& values) {
    New(std::move(name)).SetListListInt(values);
    return *this;
  }
  NodeDefBuilder& Attr(std::string name, const std::vector<float>& values) {
    New(std::move(name)).SetListFloat(values);
    return *this;
  }
  NodeDefBuilder& Attr(std::string name, const std::vector<bool>& values) {
    New(std::move(name)).SetListBool(values);
    return *this;
  }
  NodeDefBuilder& Attr(std::string name, const std::vector<std::string>& values) {
    New(std::move(name)).SetListString(values);
    return *this;
  }
  NodeDefBuilder& Attr(std::string name, const std::vector<DataType>& values) {
    New(std::move(name)).SetListDataType(values);
    return *this;
  }
  // With "shape" for `type`, the dims are a shape.
  NodeDefBuilder& Attr(std::string name, const std::vector<int64_t>& dims,
                       const std::string& type) {
    if (type != "shape") return Attr(std::move(name), dims);
    New(std::move(name)).SetTensorShape(AttrValue::NewShape(dims).get());
    return *this;
  }
  NodeDefBuilder& Attr(std::string name, const std::vector<std::vector<int64_t>>& shapes,
                       const std::string& type) {
    if (type != "shape_list") return Attr(std::move(name), shapes);
    AttrValue& value = New(std::move(name));
    for (const auto& dims : shapes) value.AddListTensorShape()->SetDimSizes(dims);
    return *this;
  }
  NodeDefBuilder& Attr(std::string name, Tensor* value) {
    New(std::move(name)).SetTensor(value);
    return *this;
  }
  NodeDefBuilder& Attr(std::string name, const std::vector<Tensor*>& values) {
    New(std::move(name)).SetListTensor(values);
    return *this;
  }

 private:
  static std::shared_ptr<Tensor> NewTensor(const InputOutputNode& node) {
    std::shared_ptr<Tensor> tensor(new Tensor());
    tensor->name_ = node.node;
    tensor->shape_->SetDimSizes(node.dims);
    tensor->shape_->SetFormat(node.format);
    tensor->dtype_ = node.dType;
    tensor->data_ = node.data;
    const int64_t size_bytes = tensor->CalcDataSizeByShape();
    tensor->size_bytes_ = size_bytes < 0 ? 0 : static_cast<uint64_t>(size_bytes);
    return tensor;
  }

  AttrValue& New(std::string name) {
    node_->attributes_.push_back(std::shared_ptr<AttrValue>(new AttrValue(std::move(name))));
    return *node_->attributes_.back();
  }

  NodeDef* const node_;
};

}  // namespace aicpu

#endif  // MSOPS_AICPU_CPU_NODEDEF_BUILDER_H_
