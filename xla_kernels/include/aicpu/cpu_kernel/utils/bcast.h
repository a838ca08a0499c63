// bcast.h: another name of bcast.h.
#ifndef MSOPS_AICPU_CPU_KERNEL_UTILS_BCAST_H_
#define MSOPS_AICPU_CPU_KERNEL_UTILS_BCAST_H_

#include "../../utils/bcast.h"

#endif  // MSOPS_AICPU_CPU_KERNEL_UTILS_BCAST_H_
