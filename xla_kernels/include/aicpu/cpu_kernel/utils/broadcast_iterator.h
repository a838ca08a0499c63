// broadcast_iterator.h: another name of broadcast_iterator.h.
#ifndef MSOPS_AICPU_CPU_KERNEL_UTILS_BROADCAST_ITERATOR_H_
#define MSOPS_AICPU_CPU_KERNEL_UTILS_BROADCAST_ITERATOR_H_

#include "../../utils/broadcast_iterator.h"

#endif  // MSOPS_AICPU_CPU_KERNEL_UTILS_BROADCAST_ITERATOR_H_
