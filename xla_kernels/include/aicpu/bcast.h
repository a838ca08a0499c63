// bcast.h: another name of bcast.h.
#ifndef MSOPS_AICPU_BCAST_H_
#define MSOPS_AICPU_BCAST_H_

#include "utils/bcast.h"

#endif  // MSOPS_AICPU_BCAST_H_
