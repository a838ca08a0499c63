// status.h: what Compute and the helpers return.
#ifndef MSOPS_AICPU_STATUS_H_
#define MSOPS_AICPU_STATUS_H_

#include <cstdint>

namespace aicpu {

enum KernelStatus : uint32_t {
  KERNEL_STATUS_OK = 0,
  KERNEL_STATUS_PARAM_INVALID = 1,
  KERNEL_STATUS_INNER_ERROR = 2,
  KERNEL_STATUS_TIMEOUT = 3,
  KERNEL_STATUS_PROTOBUF_ERROR = 4,
  KERNEL_STATUS_SHARDER_ERROR = 5,
  KERNEL_STATUS_END_OF_SEQUENCE = 201,
};

}  // namespace aicpu

// Newer headers of MindSpore declare them outside the namespace as well.
using aicpu::KERNEL_STATUS_END_OF_SEQUENCE;
using aicpu::KERNEL_STATUS_INNER_ERROR;
using aicpu::KERNEL_STATUS_OK;
using aicpu::KERNEL_STATUS_PARAM_INVALID;
using aicpu::KERNEL_STATUS_PROTOBUF_ERROR;
using aicpu::KERNEL_STATUS_SHARDER_ERROR;
using aicpu::KERNEL_STATUS_TIMEOUT;
using aicpu::KernelStatus;

#endif  // MSOPS_AICPU_STATUS_H_
