// runner_handlers.h: the XLA custom calls that launch runners of extension modules.
#ifndef MSOPS_RUNNER_HANDLERS_H_
#define MSOPS_RUNNER_HANDLERS_H_

#include "ffi_handlers.h"

namespace msops {

FfiHandlers CpuRunnerHandlers();
FfiHandlers CudaRunnerHandlers();
FfiHandlers RocmRunnerHandlers();

}  // namespace msops

#endif  // MSOPS_RUNNER_HANDLERS_H_
