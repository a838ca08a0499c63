// aclnn_kernel_mod.h: mindspore::kernel::AclnnKernelMod, as MindSpore names the header.
#ifndef KERNEL_ASCEND_ACLNN_KERNEL_MOD_IMPL_ACLNN_KERNEL_MOD_H_
#define KERNEL_ASCEND_ACLNN_KERNEL_MOD_IMPL_ACLNN_KERNEL_MOD_H_

#include "ms_extension/api.h"

#endif  // KERNEL_ASCEND_ACLNN_KERNEL_MOD_IMPL_ACLNN_KERNEL_MOD_H_
