// join.cpp: an operator of a tuple of tensors and one with optional arguments and three results;
// the module binds a function for the first.
#include <optional>
#include <vector>

#include "custom_op_api.h"
#include "module.h"
#include "ops/ops_func_impl/op_func_impl.h"

namespace graph_project {
using namespace mindspore;
using namespace mindspore::kernel;
using namespace mindspore::ops;

class JoinInfer : public OpFuncImpl {
 public:
  ShapeArray InferShape(const PrimitivePtr& op, const InferInfoPtrList& infos) const override {
    const auto tensors = infos[0]->GetSequenceElements();
    MS_CHECK_VALUE(!tensors.empty(), op->name() + ": no tensors to join");
    ShapeVector shape = tensors[0]->GetShape();
    for (size_t i = 1; i < tensors.size(); ++i) shape[0] += tensors[i]->GetShape()[0];
    return {shape};
  }
  TypeIdList InferType(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    return {infos[0]->GetSequenceElements()[0]->GetType()};
  }
  bool GeneralInferRegistered() const override { return true; }
};

class Join : public AclnnKernelMod {
 public:
  Join() : AclnnKernelMod("aclnnCat") {}
  bool Launch(const std::vector<KernelTensor*>& inputs, const std::vector<KernelTensor*>& workspace,
              const std::vector<KernelTensor*>& outputs, void* stream_ptr) override {
    // The elements of the tuple come one by one.
    RunOp(stream_ptr, workspace, inputs, int64_t{0}, outputs[kIndex0]);
    return true;
  }
};

class NormalizeInfer : public OpFuncImpl {
 public:
  ShapeArray InferShape(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    const ShapeVector& shape = infos[kIndex0]->GetShape();
    return {shape, {shape.at(1)}, {shape.at(1)}};
  }
  TypeIdList InferType(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    const TypeId x = infos[kIndex0]->GetType();
    const TypeId saved = infos[kIndex1]->IsNone() ? x : infos[kIndex1]->GetType();
    return {x, saved, saved};
  }
  bool GeneralInferRegistered() const override { return true; }
};

class Normalize : public AclnnKernelMod {
 public:
  Normalize() : AclnnKernelMod("aclnnBatchNorm") {}
  bool Launch(const std::vector<KernelTensor*>& inputs, const std::vector<KernelTensor*>& workspace,
              const std::vector<KernelTensor*>& outputs, void* stream_ptr) override {
    RunOp(stream_ptr, workspace, inputs[0], inputs[1], inputs[2], inputs[3], inputs[4], training_,
          momentum_, eps_, outputs[0], outputs[1], outputs[2]);
    return true;
  }
  void GetWorkSpaceInfo(const std::vector<KernelTensor*>& inputs,
                        const std::vector<KernelTensor*>&) override {
    training_ = device::ascend::ConvertKernelTensor<bool>(inputs[5]);
    momentum_ = static_cast<double>(inputs[6]->GetValueWithCheck<float>());
    eps_ = static_cast<double>(inputs[7]->GetValueWithCheck<float>());
  }

 private:
  bool training_ = false;
  double momentum_ = 0;
  double eps_ = 0;
};

// x * x + x, by two operators of which the second updates the result of the first.
class SquareAndAdd : public AclnnKernelMod {
 public:
  SquareAndAdd() : AclnnKernelMod("aclnnMul") {}
  bool Launch(const std::vector<KernelTensor*>& inputs, const std::vector<KernelTensor*>& workspace,
              const std::vector<KernelTensor*>& outputs, void* stream_ptr) override {
    RunOpMul(stream_ptr, workspace, inputs[0], inputs[0], outputs[0]);
    RunOpAdd(stream_ptr, workspace, outputs[0], inputs[0], MakeValue<int64_t>(1));
    return true;
  }
  void GetWorkSpaceInfo(const std::vector<KernelTensor*>& inputs,
                        const std::vector<KernelTensor*>& outputs) override {
    GetWorkspaceForResizeMul(inputs[0], inputs[0], outputs[0]);
    GetWorkspaceForResizeAdd(outputs[0], inputs[0], MakeValue<int64_t>(1));
  }

 private:
  DEFINE_GET_WORKSPACE_FOR_OPS(aclnnMul, Mul)
  DEFINE_GET_WORKSPACE_FOR_OPS(aclnnInplaceAdd, Add)
};
class SquareAndAddInfer : public OpFuncImpl {
 public:
  ShapeArray InferShape(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    return {infos[0]->GetShape()};
  }
  TypeIdList InferType(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    return {infos[0]->GetType()};
  }
  bool GeneralInferRegistered() const override { return true; }
};

static py::object JoinEagerly(const std::vector<ms::Tensor>& tensors) {
  return py::cast(tensors.at(0));
}
}  // namespace graph_project

REG_GRAPH_MODE_OP(join, graph_project::JoinInfer, graph_project::Join);
REG_GRAPH_MODE_OP(square_and_add, graph_project::SquareAndAddInfer, graph_project::SquareAndAdd);
REG_GRAPH_MODE_OP(normalize, graph_project::NormalizeInfer, graph_project::Normalize);

EXTENSION_MODULE(m) { m.def("join", &graph_project::JoinEagerly, pybind11::arg("tensors")); }
