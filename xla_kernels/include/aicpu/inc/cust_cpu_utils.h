// cust_cpu_utils.h: another name of cpu_kernel_utils.h.
#ifndef MSOPS_AICPU_INC_CUST_CPU_UTILS_H_
#define MSOPS_AICPU_INC_CUST_CPU_UTILS_H_

#include "../cpu_kernel_utils.h"

#endif  // MSOPS_AICPU_INC_CUST_CPU_UTILS_H_
