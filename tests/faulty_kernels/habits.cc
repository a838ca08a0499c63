// Kernels that are right when they are called once, with the numbers that somebody tried: y = x + 1
// in float32. What each does besides is for msops.testing.opcheck to find.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

namespace {

struct Call {
  Call(int nparam, void** params, const int* ndims, int64_t** shapes, const char** dtypes)
      : x(static_cast<float*>(params[0])), y(static_cast<float*>(params[1])) {
    refused = nparam != 2 || std::strcmp(dtypes[0], "float32") != 0;
    for (int i = 0; i < ndims[0]; ++i) size *= shapes[0][i];
  }
  void AddOne() const {
    for (int64_t i = 0; i < size; ++i) y[i] = x[i] + 1;
  }

  float* x;
  float* y;
  int64_t size = 1;
  bool refused;
};

}  // namespace

#define KERNEL(name)                                                           \
  static int name##Body(const Call& call);                                     \
  extern "C" int name(int nparam, void** params, int* ndims, int64_t** shapes, \
                      const char** dtypes, void*, void*) {                     \
    const Call call(nparam, params, ndims, shapes, dtypes);                    \
    return call.refused ? 1 : name##Body(call);                                \
  }                                                                            \
  static int name##Body(const Call& call)

KERNEL(RefusesASecondThread) {
  static std::atomic<int> inside{0};
  const bool alone = inside.fetch_add(1) == 0;
  call.AddOne();
  for (volatile int spin = 0; spin < 2000; ++spin) {
  }
  inside.fetch_sub(1);
  return alone ? 0 : 5;
}

KERNEL(WaitsForANumber) {
  for (int64_t i = 0; i < call.size; ++i) {
    volatile float x = call.x[i];
    while (!(x == x)) x = call.x[i];
  }
  call.AddOne();
  return 0;
}

KERNEL(IndexesByValue) {
  static const std::vector<float> table(16, 1);
  for (int64_t i = 0; i < call.size; ++i) {
    const auto index = static_cast<int64_t>(std::fmin(call.x[i], 15) * (1 << 20)) >> 20;
    call.y[i] = call.x[i] + static_cast<const volatile float*>(table.data())[index << 10 >> 10];
  }
  return 0;
}

KERNEL(RemembersTheFirstInput) {
  static const float first = call.x[0];
  call.AddOne();
  for (int64_t i = 0; i < call.size; ++i) call.y[i] += first - call.x[0];
  return 0;
}

KERNEL(RemembersTheFirstSize) {
  static const auto first = static_cast<float>(call.size);
  call.AddOne();
  for (int64_t i = 0; i < call.size; ++i) call.y[i] += first - static_cast<float>(call.size);
  return 0;
}

KERNEL(DependsOnAddresses) {
  static const char here = 0;  // a function's address may be one of an executable that stays
  const uintptr_t page = reinterpret_cast<uintptr_t>(&here) / 4096 % 65536;
  call.AddOne();
  for (int64_t i = 0; i < call.size; ++i) call.y[i] += static_cast<float>(page);
  return 0;
}

KERNEL(BorrowsItsInput) {
  for (int64_t i = 0; i < call.size; ++i) {
    const float old = call.x[i];
    static_cast<volatile float*>(call.x)[i] = old + 1;
    call.y[i] = call.x[i];
    static_cast<volatile float*>(call.x)[i] = old;
  }
  return 0;
}

KERNEL(OverrunsItsScratch) {
  auto* scratch = static_cast<volatile char*>(std::malloc(37));
  scratch[37] = 1;
  std::free(const_cast<char*>(scratch));
  call.AddOne();
  return 0;
}

KERNEL(FreesTwice) {
  void* scratch = std::malloc(64);
  call.AddOne();
  std::free(scratch);
  asm volatile("" : "+r"(scratch) : : "memory");
  std::free(scratch);
  return 0;
}

KERNEL(RoundsUpwards) {
  call.AddOne();
  std::fesetround(FE_UPWARD);
  return 0;
}

KERNEL(FlushesToZero) {
  call.AddOne();
#ifdef __x86_64__
  _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
  return 0;
}

KERNEL(ChangesTheFolder) {
  call.AddOne();
  return chdir("/");
}

KERNEL(LeaksMemory) {
  call.AddOne();
  static void* volatile kept;
  kept = std::malloc(100);
  return kept == nullptr;
}

KERNEL(LeaksFiles) {
  call.AddOne();
  return open("/dev/null", O_RDONLY) < 0;
}

KERNEL(TiresAfterFifty) {
  static std::atomic<int> calls{0};
  if (++calls == 50) throw std::runtime_error("that was the fiftieth");
  call.AddOne();
  return 0;
}

KERNEL(CountsIn16Bits) {
  const auto size = static_cast<uint16_t>(call.size);
  for (uint16_t i = 0; i < size; ++i) call.y[i] = call.x[i] + 1;
  return 0;
}

KERNEL(GoesOnAfterItsReturn) {
  call.AddOne();
  std::thread([call] {
    for (int round = 0; round < 50; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      static_cast<volatile float*>(call.y)[0] = call.x[0] + 1;
    }
  }).detach();
  return 0;
}

KERNEL(Talks) {
  call.AddOne();
  for (int i = 0; i < 5000; ++i) std::fprintf(stderr, "line %d of what nobody wants to read\n", i);
  return 0;
}

// Right in every way: what a checker must not object to.
KERNEL(KeepsATable) {
  static const std::vector<float> ones(1000, 1);
  for (int64_t i = 0; i < call.size; ++i) call.y[i] = call.x[i] + ones[i % 1000];
  return 0;
}

KERNEL(FreesWhatItTakes) {
  const std::vector<float> copy(call.x, call.x + call.size);
  for (int64_t i = 0; i < call.size; ++i) call.y[i] = copy[i] + 1;
  const int file = open("/dev/null", O_RDONLY);
  return close(file);
}
