// cpu_kernel_utils.h: another name of cpu_kernel_utils.h.
#ifndef MSOPS_AICPU_CONTEXT_COMMON_CPU_KERNEL_UTILS_H_
#define MSOPS_AICPU_CONTEXT_COMMON_CPU_KERNEL_UTILS_H_

#include "../../cpu_kernel_utils.h"

#endif  // MSOPS_AICPU_CONTEXT_COMMON_CPU_KERNEL_UTILS_H_
