// cpu_tensor_shape.h: another name of cpu_tensor_shape.h.
#ifndef MSOPS_AICPU_INC_CPU_TENSOR_SHAPE_H_
#define MSOPS_AICPU_INC_CPU_TENSOR_SHAPE_H_

#include "../cpu_tensor_shape.h"

#endif  // MSOPS_AICPU_INC_CPU_TENSOR_SHAPE_H_
