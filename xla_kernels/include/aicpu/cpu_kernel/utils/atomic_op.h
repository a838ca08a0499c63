// atomic_op.h: another name of atomic_op.h.
#ifndef MSOPS_AICPU_CPU_KERNEL_UTILS_ATOMIC_OP_H_
#define MSOPS_AICPU_CPU_KERNEL_UTILS_ATOMIC_OP_H_

#include "../../utils/atomic_op.h"

#endif  // MSOPS_AICPU_CPU_KERNEL_UTILS_ATOMIC_OP_H_
