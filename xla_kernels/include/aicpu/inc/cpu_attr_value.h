// cpu_attr_value.h: another name of cpu_attr_value.h.
#ifndef MSOPS_AICPU_INC_CPU_ATTR_VALUE_H_
#define MSOPS_AICPU_INC_CPU_ATTR_VALUE_H_

#include "../cpu_attr_value.h"

#endif  // MSOPS_AICPU_INC_CPU_ATTR_VALUE_H_
