// aicpu_handlers.h: the FFI handler that serves every AICPU kernel.
#ifndef MSOPS_AICPU_HANDLERS_H_
#define MSOPS_AICPU_HANDLERS_H_

#include "ffi_handlers.h"

namespace msops {

FfiHandlers AicpuHandlers();

}  // namespace msops

#endif  // MSOPS_AICPU_HANDLERS_H_
