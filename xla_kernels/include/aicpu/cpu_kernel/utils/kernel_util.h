// kernel_util.h: another name of kernel_util.h.
#ifndef MSOPS_AICPU_CPU_KERNEL_UTILS_KERNEL_UTIL_H_
#define MSOPS_AICPU_CPU_KERNEL_UTILS_KERNEL_UTIL_H_

#include "../../utils/kernel_util.h"

#endif  // MSOPS_AICPU_CPU_KERNEL_UTILS_KERNEL_UTIL_H_
