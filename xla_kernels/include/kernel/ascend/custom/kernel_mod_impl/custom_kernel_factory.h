// custom_kernel_factory.h: mindspore::kernel::CustomKernelFactory, as MindSpore names the header.
#ifndef KERNEL_ASCEND_CUSTOM_KERNEL_MOD_IMPL_CUSTOM_KERNEL_FACTORY_H_
#define KERNEL_ASCEND_CUSTOM_KERNEL_MOD_IMPL_CUSTOM_KERNEL_FACTORY_H_

#include "ms_extension/api.h"

#endif  // KERNEL_ASCEND_CUSTOM_KERNEL_MOD_IMPL_CUSTOM_KERNEL_FACTORY_H_
