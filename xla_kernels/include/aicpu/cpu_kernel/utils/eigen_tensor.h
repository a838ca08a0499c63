// eigen_tensor.h: another name of eigen_tensor.h.
#ifndef MSOPS_AICPU_CPU_KERNEL_UTILS_EIGEN_TENSOR_H_
#define MSOPS_AICPU_CPU_KERNEL_UTILS_EIGEN_TENSOR_H_

#include "../../utils/eigen_tensor.h"

#endif  // MSOPS_AICPU_CPU_KERNEL_UTILS_EIGEN_TENSOR_H_
