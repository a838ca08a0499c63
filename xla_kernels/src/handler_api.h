// handler_api.h: what handlers of XLA's FFI ask XLA for, where no XLA calls them.
#ifndef MSOPS_HANDLER_API_H_
#define MSOPS_HANDLER_API_H_

#include "xla/ffi/api/ffi.h"

namespace msops {

// Errors are ours, a task of the thread pool runs in the thread that schedules it, and what only a
// program of XLA has is refused: streams, the memory of a device, states, futures.
const XLA_FFI_Api* LoneHandlerApi();

}  // namespace msops

#endif  // MSOPS_HANDLER_API_H_
