// host_call.h: how the other headers reach msops. Not for kernels.
#ifndef MSOPS_AICPU_HOST_CALL_H_
#define MSOPS_AICPU_HOST_CALL_H_

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "cpu_context.h"
#include "msops_aicpu.h"

namespace aicpu {

// What a kernel asks of msops. Hidden, as its variables must not be shared with other libraries.
// Outside msops, as in a unit test, loops run on the spot and errors go to the standard error.
class __attribute__((visibility("hidden"))) HostCall {
 public:
  // Makes a call that of the thread, for macros that do not name their context.
  class Scope {
   public:
    explicit Scope(const MsopsAicpuCall* call) : outer_(std::exchange(Current(), call)) {}
    ~Scope() { Current() = outer_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const MsopsAicpuCall* const outer_;
  };

  static const MsopsAicpuCall*& Current() {
    static thread_local const MsopsAicpuCall* current = nullptr;
    return current;
  }

  static const MsopsAicpuCall* Of(const CpuKernelContext& context) {
    return context.host_call_ ? context.host_call_ : Current();
  }

  static uint32_t Compute(const MsopsAicpuCall& call);

  static int64_t ThreadCount(const MsopsAicpuCall* call) {
    return call ? call->host->thread_count(call->call) : 1;
  }

  static void ParallelFor(const MsopsAicpuCall* call, int64_t total, int64_t grain,
                          const std::function<void(int64_t, int64_t)>& work) {
    if (total <= 0) return;
    if (!call) return work(0, total);
    struct Loop {
      const MsopsAicpuCall* call;
      const std::function<void(int64_t, int64_t)>* work;
    } loop{call, &work};
    call->host->parallel_for(
        0, total, grain > 0 ? grain : 1,
        [](void* argument, int64_t begin, int64_t end) {
          const auto& loop = *static_cast<const Loop*>(argument);
          const Scope scope(loop.call);
          (*loop.work)(begin, end);
          return 0;
        },
        &loop);
  }

  static bool WantsLog(const MsopsAicpuCall* call, int level) {
    return call ? call->host->wants_log(call->call, level) != 0 : level >= MSOPS_AICPU_ERROR;
  }

  // Not inlined: a kernel is full of these. Not cold: MSOPS_AICPU_ONCE says why.
  __attribute__((noinline, format(printf, 6, 7))) static void Log(const MsopsAicpuCall* call,
                                                                  int level, const char* file,
                                                                  int line, const char* function,
                                                                  const char* format, ...) {
    if (!WantsLog(call, level)) return;
    va_list values;
    va_start(values, format);
    va_list again;
    va_copy(again, values);
    const int length = std::vsnprintf(nullptr, 0, format, values);
    va_end(values);
    std::string text(length < 0 ? 0 : static_cast<size_t>(length) + 1, '\0');
    std::vsnprintf(text.data(), text.size(), format, again);
    va_end(again);
    if (call) {
      call->host->log(call->call, level, file, line, function, text.c_str());
    } else {
      std::fprintf(stderr, "%s:%d %s: %s\n", file, line, function, text.c_str());
    }
  }
};

}  // namespace aicpu

#endif  // MSOPS_AICPU_HOST_CALL_H_
