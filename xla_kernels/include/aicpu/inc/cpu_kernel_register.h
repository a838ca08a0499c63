// cpu_kernel_register.h: another name of cpu_kernel_register.h.
#ifndef MSOPS_AICPU_INC_CPU_KERNEL_REGISTER_H_
#define MSOPS_AICPU_INC_CPU_KERNEL_REGISTER_H_

#include "../cpu_kernel_register.h"

#endif  // MSOPS_AICPU_INC_CPU_KERNEL_REGISTER_H_
