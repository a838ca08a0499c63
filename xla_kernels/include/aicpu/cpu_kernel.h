// cpu_kernel.h: the class that a kernel derives from, and how it is registered.
//
//   class Negate : public aicpu::CpuKernel {
//    public:
//     uint32_t Compute(aicpu::CpuKernelContext& ctx) override { ... }
//   };
//   const char* const kNegate = "Negate";
//   REGISTER_CPU_KERNEL(kNegate, Negate);
#ifndef MSOPS_AICPU_CPU_KERNEL_H_
#define MSOPS_AICPU_CPU_KERNEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "cpu_attr_value.h"
#include "cpu_context.h"
#include "cpu_kernel_register.h"
#include "cpu_kernel_utils.h"
#include "cpu_tensor.h"
#include "cpu_tensor_shape.h"
#include "cpu_types.h"
#include "kernel_log.h"
#include "status.h"

namespace aicpu {

// Returns null where memory is short.
template <typename T, typename... Args>
std::shared_ptr<T> MakeShared(Args&&... args) {
  return std::shared_ptr<T>(new (std::nothrow) T(std::forward<Args>(args)...));
}

}  // namespace aicpu

// `type` is the name of a constant that holds the op's name: it becomes part of identifiers.
#define REGISTER_CPU_KERNEL(type, clazz)                                  \
  static std::shared_ptr<aicpu::CpuKernel> Creator_##type##_Kernel() {    \
    return std::shared_ptr<aicpu::CpuKernel>(new (std::nothrow) clazz()); \
  }                                                                       \
  [[maybe_unused]] static bool g_##type##_Kernel_Creator =                \
      aicpu::RegistCpuKernel(type, Creator_##type##_Kernel)

// Registers a kernel as "Cust<name>", the name under which user libraries are looked through first.
#define REGISTER_CUST_KERNEL(type, clazz)                                   \
  static std::shared_ptr<aicpu::CpuKernel> Creator_Cust_##type##_Kernel() { \
    return std::shared_ptr<aicpu::CpuKernel>(new (std::nothrow) clazz());   \
  }                                                                         \
  [[maybe_unused]] static bool g_Cust_##type##_Kernel_Creator =             \
      aicpu::RegistCpuKernel(std::string("Cust") + type, Creator_Cust_##type##_Kernel)

#define REGISTER_MS_CPU_KERNEL(type, clazz) \
  REGISTER_CPU_KERNEL(type, clazz);         \
  REGISTER_CUST_KERNEL(type, clazz)

#endif  // MSOPS_AICPU_CPU_KERNEL_H_
