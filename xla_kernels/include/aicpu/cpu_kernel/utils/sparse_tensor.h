// sparse_tensor.h: another name of sparse_tensor.h.
#ifndef MSOPS_AICPU_CPU_KERNEL_UTILS_SPARSE_TENSOR_H_
#define MSOPS_AICPU_CPU_KERNEL_UTILS_SPARSE_TENSOR_H_

#include "../../utils/sparse_tensor.h"

#endif  // MSOPS_AICPU_CPU_KERNEL_UTILS_SPARSE_TENSOR_H_
