// device_memory.h: memory of a device for the time of a call.
#ifndef MSOPS_DEVICE_MEMORY_H_
#define MSOPS_DEVICE_MEMORY_H_

#include <cstddef>
#include <string>

#include "xla/ffi/api/ffi.h"

namespace msops {

// Returns memory at a multiple of `alignment`, a power of two, that lives as long as `scratch`;
// null if there is none.
void* TryAllocateOnDevice(xla::ffi::ScratchAllocator* scratch, size_t size_bytes, size_t alignment);

// The same. Throws std::runtime_error if there is none; `what` names the memory.
char* AllocateOnDevice(xla::ffi::ScratchAllocator* scratch, size_t size_bytes, size_t alignment,
                       const std::string& who, const char* what);

}  // namespace msops

#endif  // MSOPS_DEVICE_MEMORY_H_
