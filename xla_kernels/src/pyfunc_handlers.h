// pyfunc_handlers.h: the FFI handlers that call Python functions.
#ifndef MSOPS_PYFUNC_HANDLERS_H_
#define MSOPS_PYFUNC_HANDLERS_H_

#include "ffi_handlers.h"

namespace msops {

FfiHandlers CpuPyfuncHandlers();

}  // namespace msops

#endif  // MSOPS_PYFUNC_HANDLERS_H_
