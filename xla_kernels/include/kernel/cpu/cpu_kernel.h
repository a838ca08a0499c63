// cpu_kernel.h: mindspore::kernel::NativeCpuKernelMod, as MindSpore names the header.
#ifndef KERNEL_CPU_CPU_KERNEL_H_
#define KERNEL_CPU_CPU_KERNEL_H_

#include "ms_extension/api.h"

#endif  // KERNEL_CPU_CPU_KERNEL_H_
