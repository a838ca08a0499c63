// kernel_mod.h: mindspore::kernel::KernelMod, the kernel of a graph operator, and its registration.
//
// Each call, or each place in a program, has a kernel of its own. Init and Resize run when the
// operator is called or traced; Launch runs on memory, in a program without Python.
#ifndef MSOPS_EXTENSION_GRAPH_KERNEL_MOD_H_
#define MSOPS_EXTENSION_GRAPH_KERNEL_MOD_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "msops_extension/graph/kernel_attr.h"
#include "msops_extension/graph/op_func_impl.h"

namespace mindspore::kernel {

enum KernelErrorCode : int {
  KRET_OK = 0,
  KRET_RESIZE_FAILED = 1,
  KRET_UNKNOWN_SHAPE = 2,
  KRET_UNKNOWN_OUT_SHAPE = 3,
};

class KernelMod {
 public:
  KernelMod() = default;
  virtual ~KernelMod() = default;

  // The dtypes that it takes; empty for any.
  virtual std::vector<KernelAttr> GetOpSupport() = 0;

  bool Init(const PrimitivePtr& primitive, const std::vector<KernelTensor*>& inputs,
            const std::vector<KernelTensor*>& outputs) {
    primitive_ = primitive;
    kernel_name_ = primitive->name();
    return Init(inputs, outputs);
  }
  virtual bool Init(const std::vector<KernelTensor*>&, const std::vector<KernelTensor*>&) {
    return true;
  }
  // May call SetWorkspaceSizeList.
  virtual int Resize(const std::vector<KernelTensor*>& inputs,
                     const std::vector<KernelTensor*>& outputs) {
    input_size_list_ = SizesOf(inputs);
    output_size_list_ = SizesOf(outputs);
    return KRET_OK;
  }
  // workspace: memory of the sizes set in Resize. Returns whether it went well.
  virtual bool Launch(const std::vector<KernelTensor*>& inputs,
                      const std::vector<KernelTensor*>& workspace,
                      const std::vector<KernelTensor*>& outputs, void* stream_ptr) = 0;

  void SetWorkspaceSizeList(const std::vector<size_t>& sizes) { workspace_size_list_ = sizes; }
  const std::vector<size_t>& GetWorkspaceSizeList() const { return workspace_size_list_; }
  const std::vector<size_t>& GetOutputSizeList() const { return output_size_list_; }
  const PrimitivePtr& primitive() const { return primitive_; }
  const std::string& kernel_name() const { return kernel_name_; }

 protected:
  static std::vector<size_t> SizesOf(const std::vector<KernelTensor*>& tensors) {
    std::vector<size_t> sizes;
    for (const KernelTensor* const tensor : tensors) sizes.push_back(tensor->size());
    return sizes;
  }

  std::string kernel_name_;
  PrimitivePtr primitive_;
  // Sizes in bytes.
  std::vector<size_t> input_size_list_;
  std::vector<size_t> output_size_list_;
  std::vector<size_t> workspace_size_list_;
};
using KernelModPtr = std::shared_ptr<KernelMod>;

// A kernel for the CPU; it overrides either form of Launch.
class NativeCpuKernelMod : public KernelMod {
 public:
  std::vector<KernelAttr> GetOpSupport() override { return {}; }
  bool Launch(const std::vector<KernelTensor*>& inputs, const std::vector<KernelTensor*>& workspace,
              const std::vector<KernelTensor*>& outputs, void*) override {
    return Launch(inputs, workspace, outputs);
  }
  virtual bool Launch(const std::vector<KernelTensor*>&, const std::vector<KernelTensor*>&,
                      const std::vector<KernelTensor*>&) {
    return true;
  }
};

// What makes the kernels of this module, by operator: "Custom_add".
class CustomKernelFactory {
 public:
  using Creator = std::function<KernelModPtr()>;

  static CustomKernelFactory& Instance() {
    static CustomKernelFactory factory;
    return factory;
  }
  bool Register(const std::string& name, Creator creator) {
    creators_[name] = std::move(creator);
    return true;
  }
  bool IsRegistered(const std::string& name) const { return creators_.count(name) != 0; }
  // Null if there is none.
  KernelModPtr Create(const std::string& name) const {
    const auto found = creators_.find(name);
    return found == creators_.end() ? nullptr : found->second();
  }

 private:
  std::map<std::string, Creator> creators_;
};

// Registers a kernel when the module is loaded.
struct CustomKernelRegistrar {
  CustomKernelRegistrar(const std::string& name, CustomKernelFactory::Creator creator) {
    CustomKernelFactory::Instance().Register(name, std::move(creator));
  }
};

}  // namespace mindspore::kernel

#define MSOPS_JOIN_NAMES(a, b) a##b
#define MSOPS_JOIN(a, b) MSOPS_JOIN_NAMES(a, b)

#define MS_CUSTOM_KERNEL_FACTORY_REG(NAME, KernelClass)               \
  static const ::mindspore::kernel::CustomKernelRegistrar MSOPS_JOIN( \
      msops_kernel_registrar_, __COUNTER__)(NAME, [] { return std::make_shared<KernelClass>(); })

#define MS_KERNEL_FACTORY_REG_BY_CREATOR(BaseClass, NAME, ...)        \
  static const ::mindspore::kernel::CustomKernelRegistrar MSOPS_JOIN( \
      msops_kernel_registrar_, __COUNTER__)(#NAME, __VA_ARGS__)

#define MS_KERNEL_FACTORY_REG(BaseClass, NAME, KernelClass)        \
  static_assert(std::is_base_of_v<BaseClass, KernelClass>,         \
                #KernelClass " must be derived from " #BaseClass); \
  MS_KERNEL_FACTORY_REG_BY_CREATOR(BaseClass, NAME, [] { return std::make_shared<KernelClass>(); })

// In namespace mindspore::ops. The reference is what the operator's definition looks for.
#define DECLARE_CUSTOM_OP_IMPL(OpName, OpFuncImplClass) \
  static OpFuncImplClass g##OpName##FuncImplReal;       \
  ::mindspore::ops::OpFuncImpl& gCustom_##OpName##FuncImpl = g##OpName##FuncImplReal

// The infer class and the kernel class of an operator of op_def.
#define MS_CUSTOM_OPS_REGISTER(OpName, OpFuncImplClass, KernelClass) \
  namespace mindspore::ops {                                         \
  DECLARE_CUSTOM_OP_IMPL(OpName, OpFuncImplClass);                   \
  }                                                                  \
  namespace mindspore::kernel {                                      \
  MS_CUSTOM_KERNEL_FACTORY_REG("Custom_" #OpName, KernelClass);      \
  }

#endif  // MSOPS_EXTENSION_GRAPH_KERNEL_MOD_H_
