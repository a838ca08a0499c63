// aot_handlers.h: the FFI handlers that serve every aot kernel, one pair per platform.
#ifndef MSOPS_AOT_HANDLERS_H_
#define MSOPS_AOT_HANDLERS_H_

#include "xla/ffi/api/ffi.h"

namespace msops {

// What has to be registered with XLA for one platform. The pointers live as long as the module.
struct AotHandlers {
  const char* platform;    // the platform's name in JAX
  const char* state_type;  // the name of the state's type; unique in the process
  xla::ffi::TypeId* type_id;
  const XLA_FFI_TypeInfo* type_info;
  XLA_FFI_Handler* instantiate;
  XLA_FFI_Handler* execute;
};

AotHandlers CpuAotHandlers();
AotHandlers CudaAotHandlers();
AotHandlers RocmAotHandlers();

}  // namespace msops

#endif  // MSOPS_AOT_HANDLERS_H_
