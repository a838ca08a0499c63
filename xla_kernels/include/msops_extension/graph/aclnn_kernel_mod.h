// aclnn_kernel_mod.h: kernels that launch operators of aclnn, which are operations of JAX here.
//
// Launch runs when the operator is called or traced, on tensors without memory: it passes them on
// to RunOp, whose results become theirs.
#ifndef MSOPS_EXTENSION_GRAPH_ACLNN_KERNEL_MOD_H_
#define MSOPS_EXTENSION_GRAPH_ACLNN_KERNEL_MOD_H_

#include <string>
#include <utility>
#include <vector>

#include "msops_extension/graph/kernel_mod.h"

namespace mindspore {

// A number as an operator takes it.
using ScalarPtr = ValuePtr;

}  // namespace mindspore

namespace mindspore::kernel {

class AclnnKernelMod : public KernelMod {
 public:
  explicit AclnnKernelMod(std::string op_type) : op_type_(std::move(op_type)) {}

  std::vector<KernelAttr> GetOpSupport() override { return {}; }
  int Resize(const std::vector<KernelTensor*>& inputs,
             const std::vector<KernelTensor*>& outputs) override {
    KernelMod::Resize(inputs, outputs);
    GetWorkSpaceInfo(inputs, outputs);
    return KRET_OK;
  }
  virtual void GetWorkSpaceInfo(const std::vector<KernelTensor*>&,
                                const std::vector<KernelTensor*>&) {}

  // Launches the operator with inputs and outputs in its own order.
  template <typename... Arguments>
  void RunOp(void*, const std::vector<KernelTensor*>&, const Arguments&... arguments) {
    msops::extension::LaunchAclnn(op_type_.c_str(), arguments...);
  }

 protected:
  const std::string op_type_;
};

}  // namespace mindspore::kernel

namespace mindspore::device::ascend {

// The value of an argument that is no tensor.
template <typename T>
T ConvertKernelTensor(kernel::KernelTensor* tensor) {
  return tensor->GetValueWithCheck<T>();
}

}  // namespace mindspore::device::ascend

// Within a kernel's class. The operators of JAX need no workspace.
#define DEFINE_GET_WORKSPACE_FOR_RESIZE() \
  template <typename... Arguments>        \
  void GetWorkspaceForResize(const Arguments&...) {}

// The same for a kernel that launches several operators: DEFINE_GET_WORKSPACE_FOR_OPS(aclnnMul,
// Mul) gives it GetWorkspaceForResizeMul and RunOpMul.
#define DEFINE_GET_WORKSPACE_FOR_OPS(OP_TYPE, FUNC_NAME)                                           \
  template <typename... Arguments>                                                                 \
  void GetWorkspaceForResize##FUNC_NAME(const Arguments&...) {}                                    \
  template <typename... Arguments>                                                                 \
  void RunOp##FUNC_NAME(void*, const std::vector<KernelTensor*>&, const Arguments&... arguments) { \
    ::msops::extension::LaunchAclnn(#OP_TYPE, arguments...);                                       \
  }

#define MAKE_SCALAR(number, type_id, out) \
  ((out) = ::msops::extension::MakeScalar((number), (type_id)))

#define MS_ACLNN_KERNEL_FACTORY_REG(NAME, KernelClass) \
  MS_KERNEL_FACTORY_REG(::mindspore::kernel::AclnnKernelMod, NAME, KernelClass)

namespace msops::extension {

// The number as the kind that a dtype has.
template <typename Number>
mindspore::ScalarPtr MakeScalar(Number number, mindspore::TypeId type_id) {
  switch (ElementOf(type_id).kind) {
    case ElementKind::kBool:
      return mindspore::MakeValue(static_cast<bool>(number));
    case ElementKind::kInt:
    case ElementKind::kUInt:
      return mindspore::MakeValue(static_cast<int64_t>(number));
    default:
      return mindspore::MakeValue(static_cast<double>(number));
  }
}

}  // namespace msops::extension

#endif  // MSOPS_EXTENSION_GRAPH_ACLNN_KERNEL_MOD_H_
