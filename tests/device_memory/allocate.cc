// allocate.cc: asks for device memory as a handler does, of an XLA that has 4 kB of it.
//
//   allocate SIZE ALIGNMENT
//
// Prints the remainder of its address by the alignment, and whether all of it is in these 4 kB; or
// what was thrown.
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "device_memory.h"

struct XLA_FFI_Error {};

namespace {

constexpr size_t kAlignedBytes = 4096;
constexpr size_t kMemoryBytes = 4096;
// XLA promises a multiple of 16 bytes, and refuses to promise more.
constexpr size_t kOffsetBytes = 16;
alignas(kAlignedBytes) char memory[kOffsetBytes + kMemoryBytes];

XLA_FFI_Error refused;

XLA_FFI_Error* Allocate(XLA_FFI_DeviceMemory_Allocate_Args* args) {
  if (args->alignment > kOffsetBytes || args->size > kMemoryBytes) return &refused;
  args->data = memory + kOffsetBytes;
  return nullptr;
}

XLA_FFI_Error* Free(XLA_FFI_DeviceMemory_Free_Args* args) {
  std::cout << "freed " << (args->data == memory + kOffsetBytes) << std::endl;
  return nullptr;
}

template <typename Args>
void Say(Args* args) {
  args->message = "refused";
}

// The name of this function depends on the version of XLA.
template <typename Api>
auto SayWith(Api* api, int) -> decltype(api->XLA_FFI_Error_GetMessage, void()) {
  api->XLA_FFI_Error_GetMessage = Say;
}
template <typename Api>
auto SayWith(Api* api, long) -> decltype(api->XLA_FFI_Error_GetDetails, void()) {
  api->XLA_FFI_Error_GetDetails = Say;
}

void Destroy(XLA_FFI_Error_Destroy_Args*) {}

}  // namespace

int main(int, char** arguments) {
  XLA_FFI_Api api = {};
  api.XLA_FFI_DeviceMemory_Allocate = Allocate;
  api.XLA_FFI_DeviceMemory_Free = Free;
  SayWith(&api, 0);
  api.XLA_FFI_Error_Destroy = Destroy;
  const size_t size_bytes = std::strtoull(arguments[1], nullptr, 10);
  const size_t alignment = std::strtoull(arguments[2], nullptr, 10);
  xla::ffi::DiagnosticEngine diagnostic;
  auto scratch =
      xla::ffi::CtxDecoding<xla::ffi::ScratchAllocator>::Decode(&api, nullptr, diagnostic);
  try {
    char* const block =
        msops::AllocateOnDevice(&*scratch, size_bytes, alignment, "Custom 'f'", "workspaces");
    const bool is_inside = block >= memory + kOffsetBytes &&
                           block + size_bytes <= memory + kOffsetBytes + kMemoryBytes;
    std::cout << reinterpret_cast<uintptr_t>(block) % alignment << " " << is_inside << std::endl;
  } catch (const std::runtime_error& error) {
    std::cout << error.what() << std::endl;
  }
}
