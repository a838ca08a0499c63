// utils.h: another name of utils.h.
#ifndef MSOPS_AICPU_MS_KERNEL_RANDOM_UTILS_H_
#define MSOPS_AICPU_MS_KERNEL_RANDOM_UTILS_H_

#include "../../random/utils.h"

#endif  // MSOPS_AICPU_MS_KERNEL_RANDOM_UTILS_H_
