// ffi_handlers.h: what has to be registered with XLA, for each custom call target on each platform.
#ifndef MSOPS_FFI_HANDLERS_H_
#define MSOPS_FFI_HANDLERS_H_

#include "xla/ffi/api/ffi.h"

namespace msops {

// The pointers live as long as the module.
struct FfiHandlers {
  const char* target;    // part of every lowered program: it never changes
  const char* platform;  // the platform's name in XLA
  xla::ffi::TypeId* type_id;
  const XLA_FFI_TypeInfo* type_info;
  XLA_FFI_Handler* instantiate;
  XLA_FFI_Handler* execute;
};

// Those of aot kernels, and of C that loops became.
FfiHandlers CpuAotHandlers();
FfiHandlers CudaAotHandlers();
FfiHandlers RocmAotHandlers();

// Those of other people's FFI handlers.
FfiHandlers CpuForeignHandlers();
FfiHandlers CudaForeignHandlers();
FfiHandlers RocmForeignHandlers();

// Those of AICPU kernels.
FfiHandlers AicpuHandlers();

// Those of Python functions.
FfiHandlers CpuPyfuncHandlers();

// Those of checks of indices.
FfiHandlers IndexHandlers();

// Those of runners of extension modules.
FfiHandlers CpuRunnerHandlers();
FfiHandlers CudaRunnerHandlers();
FfiHandlers RocmRunnerHandlers();

// Those of CUDA code that loops became, without temporaries in device memory: XLA may record such
// calls in a CUDA graph.
FfiHandlers CudaLoopHandlers();

// Those of such code with temporaries. Their memory is XLA's for the duration of the call only, and
// a graph would use it again later, so these are never recorded.
FfiHandlers CudaLoopHandlersWithScratch();

}  // namespace msops

#endif  // MSOPS_FFI_HANDLERS_H_
