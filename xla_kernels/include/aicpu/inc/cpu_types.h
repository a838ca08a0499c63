// cpu_types.h: another name of cpu_types.h.
#ifndef MSOPS_AICPU_INC_CPU_TYPES_H_
#define MSOPS_AICPU_INC_CPU_TYPES_H_

#include "../cpu_types.h"

#endif  // MSOPS_AICPU_INC_CPU_TYPES_H_
