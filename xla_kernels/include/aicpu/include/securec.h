// securec.h: another name of securec.h.
#ifndef MSOPS_AICPU_INCLUDE_SECUREC_H_
#define MSOPS_AICPU_INCLUDE_SECUREC_H_

#include "../securec.h"

#endif  // MSOPS_AICPU_INCLUDE_SECUREC_H_
