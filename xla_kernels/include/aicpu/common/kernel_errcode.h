// kernel_errcode.h: what the AI CPU makes of a kernel's status.
#ifndef MSOPS_AICPU_COMMON_KERNEL_ERRCODE_H_
#define MSOPS_AICPU_COMMON_KERNEL_ERRCODE_H_

#include <cstdint>

namespace aicpu {

constexpr uint32_t kAicpuKernelStateSucess = 0;
constexpr uint32_t kAicpuKernelStateInvalid = 1;
constexpr uint32_t kAicpuKernelStateFailed = 2;
constexpr uint32_t kAicpuKernelStateExecuteTimeout = 3;
constexpr uint32_t kAicpuKernelStateInternalError = 4;
constexpr uint32_t kAicpuKernelStateEndOfSequence = 201;

}  // namespace aicpu

#endif  // MSOPS_AICPU_COMMON_KERNEL_ERRCODE_H_
