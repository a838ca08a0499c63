// cpu_context.h: another name of cpu_context.h.
#ifndef MSOPS_AICPU_INC_CPU_CONTEXT_H_
#define MSOPS_AICPU_INC_CPU_CONTEXT_H_

#include "../cpu_context.h"

#endif  // MSOPS_AICPU_INC_CPU_CONTEXT_H_
