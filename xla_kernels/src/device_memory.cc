#include "device_memory.h"

#include <memory>
#include <optional>
#include <stdexcept>

#include "message.h"

namespace msops {

void* TryAllocateOnDevice(xla::ffi::ScratchAllocator* scratch, size_t size_bytes,
                          size_t alignment) {
  // XLA refuses to align to more than 16 bytes, so the first multiple is looked for here.
  size_t room_bytes = size_bytes + alignment - 1;
  if (room_bytes < size_bytes) return nullptr;
  const std::optional<void*> block = scratch->Allocate(room_bytes);
  void* start = block.value_or(nullptr);
  return start ? std::align(alignment, size_bytes, start, room_bytes) : nullptr;
}

char* AllocateOnDevice(xla::ffi::ScratchAllocator* scratch, size_t size_bytes, size_t alignment,
                       const std::string& who, const char* what) {
  if (void* const block = TryAllocateOnDevice(scratch, size_bytes, alignment)) {
    return static_cast<char*>(block);
  }
  throw std::runtime_error(Explain(
      who,
      std::string("no device memory for ") + what + " of " + std::to_string(size_bytes) + " bytes",
      {}, "Ask for less, or leave XLA more memory to allocate from."));
}

}  // namespace msops
