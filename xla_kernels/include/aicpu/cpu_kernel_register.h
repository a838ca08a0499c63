// cpu_kernel_register.h: the kernels of one library, by the name of the op.
#ifndef MSOPS_AICPU_CPU_KERNEL_REGISTER_H_
#define MSOPS_AICPU_CPU_KERNEL_REGISTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
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
    const auto* const entry = Find(op_type);
    return entry ? entry->second() : nullptr;
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

  // Returns the kernel of an op, and the name that it is registered for: in libraries for users
  // "Cust" and the op's name, else that name. Null if there is none.
  MSOPS_AICPU_ONCE const std::pair<const std::string, KERNEL_CREATOR_FUN>* Find(
      const std::string& op_type) const {
    auto found = creators_.find("Cust" + op_type);
    if (found == creators_.end()) found = creators_.find(op_type);
    return found == creators_.end() ? nullptr : &*found;
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
  const auto* const entry = CpuKernelRegister::Instance().Find(context.type_);
  const std::shared_ptr<CpuKernel> kernel = entry ? entry->second() : nullptr;
  if (!kernel) return static_cast<uint32_t>(KERNEL_STATUS_INNER_ERROR);
  // The AI CPU calls the op by the name of its kernel, and some kernels cut "Cust" off it.
  context.type_ = entry->first;
  const uint32_t code = kernel->Compute(context);
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
