// handlers.cc: handlers of XLA's FFI with faults that opcheck has to find, and right ones.
#include <cmath>
#include <cstdint>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

using Floats = ffi::Buffer<ffi::F32>;
using Result = ffi::ResultBuffer<ffi::F32>;

#define HANDLER(name, function) \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, function, ffi::Ffi::Bind().Arg<Floats>().Ret<Floats>())

static int64_t SizeOf(const Floats& x) { return static_cast<int64_t>(x.element_count()); }

static ffi::Error TwiceTheFirst64(Floats x, Result y) {
  for (int64_t i = 0; i < SizeOf(x); ++i) {
    y->typed_data()[i] = i < 64 ? 2 * x.typed_data()[i] : x.typed_data()[i];
  }
  return ffi::Error::Success();
}
HANDLER(WrongAbove64, TwiceTheFirst64);

static ffi::Error DifferenceToTheNext(Floats x, Result y) {
  for (int64_t i = 0; i < SizeOf(x); ++i) {
    y->typed_data()[i] = x.typed_data()[i + 1] - x.typed_data()[i];
  }
  return ffi::Error::Success();
}
HANDLER(ReadsBeyond, DifferenceToTheNext);

static ffi::Error WithoutMeans(Floats x, Result y) {
  const auto shape = x.dimensions();
  const int64_t width = shape.size() ? shape.back() : 1;
  for (int64_t row = 0; width && row < SizeOf(x); row += width) {
    float sum = 0;
    for (int64_t j = 0; j < width; ++j) sum += x.typed_data()[row + j];
    for (int64_t j = 0; j < width; ++j) {
      y->typed_data()[row + j] = x.typed_data()[row + j] - sum / static_cast<float>(width);
    }
  }
  return ffi::Error::Success();
}
HANDLER(HealthyRows, WithoutMeans);
