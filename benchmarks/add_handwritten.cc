// add_handwritten.cc: float32 x + y as an XLA FFI handler written for this one operator.
#include "add_loop.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

ffi::Error Add(ffi::Buffer<ffi::F32> x, ffi::Buffer<ffi::F32> y, ffi::ResultBuffer<ffi::F32> sum) {
  if (x.element_count() != y.element_count() || x.element_count() != sum->element_count()) {
    return ffi::Error::InvalidArgument("x, y and sum must be of one size");
  }
  AddLoop(x.typed_data(), y.typed_data(), sum->typed_data(),
          static_cast<int64_t>(sum->element_count()));
  return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(AddHandler, Add,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());
