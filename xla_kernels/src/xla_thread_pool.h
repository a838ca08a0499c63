// xla_thread_pool.h: XLA's threads, which an execution on the CPU borrows.
#ifndef MSOPS_XLA_THREAD_POOL_H_
#define MSOPS_XLA_THREAD_POOL_H_

#include <cstdint>

#include "parallel_for.h"
#include "xla/ffi/api/ffi.h"

namespace msops {

class XlaThreadPool final : public ThreadPool {
 public:
  explicit XlaThreadPool(xla::ffi::ThreadPool pool) : pool_(pool) {}

  int64_t num_threads() override { return pool_.num_threads(); }

  void Schedule(void (*task)(void*), void* argument) override {
    pool_.Schedule([task, argument] { task(argument); });
  }

 private:
  xla::ffi::ThreadPool pool_;
};

}  // namespace msops

#endif  // MSOPS_XLA_THREAD_POOL_H_
