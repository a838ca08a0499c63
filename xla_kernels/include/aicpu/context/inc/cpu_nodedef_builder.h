// cpu_nodedef_builder.h: another name of cpu_nodedef_builder.h.
#ifndef MSOPS_AICPU_CONTEXT_INC_CPU_NODEDEF_BUILDER_H_
#define MSOPS_AICPU_CONTEXT_INC_CPU_NODEDEF_BUILDER_H_

#include "../../cpu_nodedef_builder.h"

#endif  // MSOPS_AICPU_CONTEXT_INC_CPU_NODEDEF_BUILDER_H_
