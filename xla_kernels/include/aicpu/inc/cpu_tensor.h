// cpu_tensor.h: another name of cpu_tensor.h.
#ifndef MSOPS_AICPU_INC_CPU_TENSOR_H_
#define MSOPS_AICPU_INC_CPU_TENSOR_H_

#include "../cpu_tensor.h"

#endif  // MSOPS_AICPU_INC_CPU_TENSOR_H_
