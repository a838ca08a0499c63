// ms_cpu_kernel.h: another name of ms_cpu_kernel.h.
#ifndef MSOPS_AICPU_CPU_KERNEL_INC_MS_CPU_KERNEL_H_
#define MSOPS_AICPU_CPU_KERNEL_INC_MS_CPU_KERNEL_H_

#include "../../inc/ms_cpu_kernel.h"

#endif  // MSOPS_AICPU_CPU_KERNEL_INC_MS_CPU_KERNEL_H_
