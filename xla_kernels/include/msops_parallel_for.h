// msops_parallel_for.h: loops that an aot kernel splits over XLA's threads.
//
//   #include "msops_parallel_for.h"
//
//   extern "C" int Sqrt(int nparam, void **params, int *ndims, int64_t **shapes,
//                       const char **dtypes, void *stream, void *extra) {
//     const float *x = static_cast<const float *>(params[0]);
//     float *y = static_cast<float *>(params[1]);
//     msops::ParallelFor(extra, shapes[0][0], 4096, [&](int64_t begin, int64_t end) {
//       for (int64_t i = begin; i < end; ++i) y[i] = std::sqrt(x[i]);
//     });
//     return 0;
//   }
//
// A library with this header also runs where nobody lends it threads, MindSpore for one: its loops
// then run in the calling thread.
#ifndef MSOPS_PARALLEL_FOR_FOR_KERNELS_H_
#define MSOPS_PARALLEL_FOR_FOR_KERNELS_H_

#include <cstdint>
#include <memory>
#include <type_traits>

extern "C" {
// Who opens the library writes a function to this. Weak, as every source of a library may include
// this header, and exported whatever the flags, so that it is found.
__attribute__((weak, visibility("default"))) int (*msops_parallel_for_slot)(
    int64_t begin, int64_t end, int64_t grain, int (*body)(void*, int64_t, int64_t),
    void* argument) = nullptr;
}

namespace msops {

// Calls `fn(begin, end)` on blocks that together are the iterations 0 to n, each once, in any order
// and several at the same time. Returns when all have been called.
//
// extra: what the kernel was given; it identifies the call whose threads are lent. With null, as
//   where no thread is lent, and from inside a block or a thread of the kernel's own, fn(0, n) is
//   called by the calling thread.
// n: number of iterations; nothing is called if it is 0 or negative.
// grain: how many iterations a block has at least, but for the last one: as many as are worth
//   handing to another thread, which takes some 10 us.
// fn: a function of two int64_t. Blocks run at the same time, so what they write must not overlap.
//   If it throws, no further block starts and one exception is thrown again here. Let it leave the
//   kernel and it becomes the op's error.
//
// The threads are those that XLA computes with, so ops that run at the same time share them, and
// the calling thread takes blocks, too: loops of several kernels never wait for one another.
template <typename Function>
void ParallelFor(const void* extra, int64_t n, int64_t grain, Function&& fn) {
  if (n <= 0) return;
  if (!extra || !msops_parallel_for_slot || n <= grain) {
    fn(int64_t{0}, n);
    return;
  }
  using Callable = std::remove_reference_t<Function>;
  const auto body = [](void* argument, int64_t begin, int64_t end) {
    (*static_cast<Callable*>(argument))(begin, end);
    return 0;
  };
  msops_parallel_for_slot(0, n, grain, body,
                          const_cast<std::remove_const_t<Callable>*>(std::addressof(fn)));
}

}  // namespace msops

#endif  // MSOPS_PARALLEL_FOR_FOR_KERNELS_H_
