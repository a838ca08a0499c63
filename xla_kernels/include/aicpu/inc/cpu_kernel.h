// cpu_kernel.h: another name of cpu_kernel.h.
#ifndef MSOPS_AICPU_INC_CPU_KERNEL_H_
#define MSOPS_AICPU_INC_CPU_KERNEL_H_

#include "../cpu_kernel.h"

#endif  // MSOPS_AICPU_INC_CPU_KERNEL_H_
