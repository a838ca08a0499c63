// sparse_group.h: another name of sparse_group.h.
#ifndef MSOPS_AICPU_CPU_KERNEL_UTILS_SPARSE_GROUP_H_
#define MSOPS_AICPU_CPU_KERNEL_UTILS_SPARSE_GROUP_H_

#include "../../utils/sparse_group.h"

#endif  // MSOPS_AICPU_CPU_KERNEL_UTILS_SPARSE_GROUP_H_
