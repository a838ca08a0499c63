// cpu_kernel_register.h: the kernels of one library, by the name of the op.
#ifndef MSOPS_AICPU_CPU_KERNEL_REGISTER_H_
#define MSOPS_AICPU_CPU_KERNEL_REGISTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cpu_context.h"
#include "host_call.h"
#include "msops_aicpu.h"
#include "status.h"

namespace aicpu {

class CpuKernel {
 public:
  virtual uint32_t Compute(CpuKernelContext& ctx) = 0;
  virtual ~CpuKernel() = default;
};

using KERNEL_CREATOR_FUN = std::function<std::shared_ptr<CpuKernel>()>;

// Hidden: two libraries in one process each have their own.
class __attribute__((visibility("hidden"))) CpuKernelRegister {
 public:
  static CpuKernelRegister& Instance() {
    static auto* const instance = new CpuKernelRegister();
    return *instance;
  }

  // Returns a new kernel, null if there is none for the op.
  std::shared_ptr<CpuKernel> GetCpuKernel(const std::string& op_type) const {
    const KERNEL_CREATOR_FUN* const creator = Find(op_type);
    return creator ? (*creator)() : nullptr;
  }

  std::vector<std::string> GetAllRegisteredOpTypes() const {
    std::vector<std::string> types;
    for (const auto& [type, creator] : creators_) types.push_back(type);
    return types;
  }

  uint32_t RunCpuKernel(CpuKernelContext& ctx) const {
    const std::shared_ptr<CpuKernel> kernel = GetCpuKernel(ctx.GetOpType());
    return kernel ? kernel->Compute(ctx) : static_cast<uint32_t>(KERNEL_STATUS_INNER_ERROR);
  }

  // An op has the kernel registered for it or, in libraries for users, for "Cust" and its name.
  MSOPS_AICPU_ONCE const KERNEL_CREATOR_FUN* Find(const std::string& op_type) const {
    const auto found = creators_.find(RegisteredType(op_type));
    return found == creators_.end() ? nullptr : &found->second;
  }

  // Returns the name that an op's kernel is registered for. The AI CPU calls the op by that name,
  // and some kernels cut "Cust" off it.
  MSOPS_AICPU_ONCE std::string RegisteredType(const std::string& op_type) const {
    const std::string type = "Cust" + op_type;
    return creators_.count(type) != 0 ? type : op_type;
  }

  // Returns false, and keeps the first, if there is a kernel of that name.
  MSOPS_AICPU_ONCE bool Add(const std::string& type, const KERNEL_CREATOR_FUN& fun) {
    return creators_.emplace(type, fun).second;
  }

  // Names, a line each.
  MSOPS_AICPU_ONCE const char* Names() {
    names_.clear();
    for (const auto& [type, creator] : creators_) names_ += type + "\n";
    return names_.c_str();
  }

 private:
  std::map<std::string, KERNEL_CREATOR_FUN> creators_;
  std::string names_;
};

// Returns false, and keeps the first, if there is a kernel of that name.
inline bool RegistCpuKernel(const std::string& type, const KERNEL_CREATOR_FUN& fun) {
  return CpuKernelRegister::Instance().Add(type, fun);
}

MSOPS_AICPU_ONCE inline uint32_t HostCall::Compute(const MsopsAicpuCall& call) {
  const Scope scope(&call);
  CpuKernelContext context(call);
  context.type_ = CpuKernelRegister::Instance().RegisteredType(context.type_);
  const uint32_t code = CpuKernelRegister::Instance().RunCpuKernel(context);
  for (uint32_t i = 0; i < call.output_count; ++i) {
    const std::vector<int64_t> dims = context.outputs_[i]->GetTensorShape()->GetDimSizes();
    call.host->set_shape(call.call, i, static_cast<int32_t>(dims.size()), dims.data());
  }
  return code;
}

}  // namespace aicpu

MSOPS_AICPU_EXPORT uint32_t msops_aicpu_version(void) { return MSOPS_AICPU_VERSION; }

MSOPS_AICPU_EXPORT const char* msops_aicpu_kernels(void) {
  return aicpu::CpuKernelRegister::Instance().Names();
}

MSOPS_AICPU_EXPORT int msops_aicpu_has(const char* type) {
  return aicpu::CpuKernelRegister::Instance().Find(type) != nullptr;
}

MSOPS_AICPU_EXPORT uint32_t msops_aicpu_compute(const struct MsopsAicpuCall* call) {
  return aicpu::HostCall::Compute(*call);
}

#endif  // MSOPS_AICPU_CPU_KERNEL_REGISTER_H_
