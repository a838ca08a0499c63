// aot_handlers.h: the FFI handlers that serve every aot kernel, one pair per platform.
#ifndef MSOPS_AOT_HANDLERS_H_
#define MSOPS_AOT_HANDLERS_H_

#include "ffi_handlers.h"

namespace msops {

FfiHandlers CpuAotHandlers();
FfiHandlers CudaAotHandlers();
FfiHandlers RocmAotHandlers();

}  // namespace msops

#endif  // MSOPS_AOT_HANDLERS_H_
