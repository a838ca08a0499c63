// cuda_loop_handlers.h: the FFI handlers that run generated kernels on CUDA.
#ifndef MSOPS_CUDA_LOOP_HANDLERS_H_
#define MSOPS_CUDA_LOOP_HANDLERS_H_

#include "ffi_handlers.h"

namespace msops {

// For calls without temporaries in device memory: XLA may record them in a CUDA graph.
FfiHandlers CudaLoopHandlers();

// For calls with them. Their memory is XLA's for the duration of the call only, and a graph would
// use it again later, so these are never recorded.
FfiHandlers CudaLoopHandlersWithScratch();

}  // namespace msops

#endif  // MSOPS_CUDA_LOOP_HANDLERS_H_
