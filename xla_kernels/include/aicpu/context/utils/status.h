// status.h: another name of status.h.
#ifndef MSOPS_AICPU_CONTEXT_UTILS_STATUS_H_
#define MSOPS_AICPU_CONTEXT_UTILS_STATUS_H_

#include "../../status.h"

#endif  // MSOPS_AICPU_CONTEXT_UTILS_STATUS_H_
