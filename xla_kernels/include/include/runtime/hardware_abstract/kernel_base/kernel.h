// kernel.h: mindspore::kernel::KernelMod, as MindSpore names the header.
#ifndef INCLUDE_RUNTIME_HARDWARE_ABSTRACT_KERNEL_BASE_KERNEL_H_
#define INCLUDE_RUNTIME_HARDWARE_ABSTRACT_KERNEL_BASE_KERNEL_H_

#include "ms_extension/api.h"

#endif  // INCLUDE_RUNTIME_HARDWARE_ABSTRACT_KERNEL_BASE_KERNEL_H_
