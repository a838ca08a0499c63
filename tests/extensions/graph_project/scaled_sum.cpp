// scaled_sum.cpp: x + alpha * y by operators of aclnn, as a new tensor and in place.
#include <utility>
#include <vector>

#include "kernel/ascend/aclnn/kernel_mod_impl/aclnn_kernel_mod.h"
#include "module.h"
#include "ms_extension/api.h"
#include "ops/ops_func_impl/op_func_impl.h"

namespace graph_project {
using namespace mindspore;
using namespace mindspore::kernel;
using namespace mindspore::device::ascend;
using namespace mindspore::ops;

class OPS_API ScaledSumInfer : public OpFuncImpl {
 public:
  ShapeArray InferShape(const PrimitivePtr&, const InferInfoPtrList& infos) const override {
    if (infos[kInputIndex0]->IsDynamicRank()) return {{abstract::TensorShape::kShapeRankAny}};
    return {infos[kInputIndex0]->GetShape()};
  }
  std::vector<TypeId> InferType(const PrimitivePtr& op,
                                const InferInfoPtrList& infos) const override {
    const TypeId x = infos[kInputIndex0]->GetType();
    const TypeId alpha = infos[kInputIndex2]->GetType();
    const auto& known = common_valid_types_with_complex_and_bool;
    if (known.find(TypeIdToType(x)) == known.end()) {
      MS_EXCEPTION(TypeError) << op->name() << ": unknown dtype " << TypeIdToString(x);
    }
    if (alpha == kNumberTypeFloat32 && x == kNumberTypeInt32) {
      MS_EXCEPTION(TypeError) << op->name() << ": a floating alpha needs a floating x, got "
                              << TypeIdToString(x);
    }
    return {x};
  }
  bool GeneralInferRegistered() const override { return true; }
};

class ScaledSum : public AclnnKernelMod {
 public:
  ScaledSum() : AclnnKernelMod(std::move("aclnnAdd")) {}
  bool Launch(const std::vector<KernelTensor*>& inputs, const std::vector<KernelTensor*>& workspace,
              const std::vector<KernelTensor*>& outputs, void* stream_ptr) override {
    MS_EXCEPTION_IF_NULL(stream_ptr);
    RunOp(stream_ptr, workspace, inputs[kIndex0], inputs[kIndex1], alpha_, outputs[kIndex0]);
    return true;
  }
  void GetWorkSpaceInfo(const std::vector<KernelTensor*>& inputs,
                        const std::vector<KernelTensor*>& outputs) override {
    const TypeId type_id = inputs[kIndex2]->dtype_id();
    switch (type_id) {
      case kNumberTypeBool:
        MAKE_SCALAR(inputs[kIndex2]->GetValueWithCheck<bool>(), type_id, alpha_);
        break;
      case kNumberTypeFloat32:
        MAKE_SCALAR(inputs[kIndex2]->GetValueWithCheck<float>(), type_id, alpha_);
        break;
      default:
        MAKE_SCALAR(inputs[kIndex2]->GetValueWithCheck<int64_t>(), type_id, alpha_);
    }
    GetWorkspaceForResize(inputs[kIndex0], inputs[kIndex1], alpha_, outputs[kIndex0]);
  }

 private:
  DEFINE_GET_WORKSPACE_FOR_RESIZE()

  ScalarPtr alpha_ = nullptr;
};

class AddTo : public AclnnKernelMod {
 public:
  AddTo() : AclnnKernelMod("aclnnInplaceAdd") {}
  bool Launch(const std::vector<KernelTensor*>& inputs, const std::vector<KernelTensor*>& workspace,
              const std::vector<KernelTensor*>&, void* stream_ptr) override {
    RunOp(stream_ptr, workspace, inputs[kIndex0], inputs[kIndex1], alpha_);
    return true;
  }
  void GetWorkSpaceInfo(const std::vector<KernelTensor*>& inputs,
                        const std::vector<KernelTensor*>&) override {
    alpha_ = inputs[kIndex2]->GetValue();
    GetWorkspaceForResize(inputs[kIndex0], inputs[kIndex1], alpha_);
  }

 private:
  DEFINE_GET_WORKSPACE_FOR_RESIZE()

  ScalarPtr alpha_ = nullptr;
};
}  // namespace graph_project

REG_GRAPH_MODE_OP(scaled_sum, graph_project::ScaledSumInfer, graph_project::ScaledSum);
REG_OLD_GRAPH_MODE_OP(add_to, graph_project::ScaledSumInfer, graph_project::AddTo)
