// kernel_log.h: another name of kernel_log.h.
#ifndef MSOPS_AICPU_CPU_KERNEL_INC_KERNEL_LOG_H_
#define MSOPS_AICPU_CPU_KERNEL_INC_KERNEL_LOG_H_

#include "../../inc/kernel_log.h"

#endif  // MSOPS_AICPU_CPU_KERNEL_INC_KERNEL_LOG_H_
