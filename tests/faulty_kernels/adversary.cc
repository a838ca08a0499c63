// Faults that a kernel's author does not see, one function each, and healthy kernels of the same
// families. tests/fault_table.py has a row for each. They were written before the checks that find
// them: a fault must not be shaped after its check.

#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <clocale>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "custom_aot_extra.h"

#define KERNEL(name)                                                           \
  extern "C" int name(int nparam, void** params, int* ndims, int64_t** shapes, \
                      const char** dtypes, void* stream, void* extra)
// The kernels of this file are y = 2 x, unless their names say otherwise. They refuse what is not
// float32, so that nothing but the fault is wrong.
#define ARRAYS                                                   \
  if (nparam < 2 || strcmp(dtypes[0], "float32") != 0) return 2; \
  const float* x = static_cast<const float*>(params[0]);         \
  float* y = static_cast<float*>(params[nparam - 1]);            \
  const int64_t n = Size(ndims[0], shapes[0])
#define INTEGERS                                                \
  if (nparam != 2 || strcmp(dtypes[0], "int32") != 0) return 2; \
  const int32_t* x = static_cast<const int32_t*>(params[0]);    \
  int32_t* y = static_cast<int32_t*>(params[1]);                \
  const int64_t n = Size(ndims[0], shapes[0])
#define PAIR                                                                                 \
  if (nparam != 3 || strcmp(dtypes[0], "float32") != 0 || strcmp(dtypes[1], "float32") != 0) \
    return 2;                                                                                \
  const float* a = static_cast<const float*>(params[0]);                                     \
  const float* b = static_cast<const float*>(params[1]);                                     \
  float* y = static_cast<float*>(params[2]);                                                 \
  const int64_t n = Size(ndims[2], shapes[2])

#pragma GCC diagnostic ignored "-Wuse-after-free"

namespace {

int64_t Size(int rank, const int64_t* shape) {
  int64_t size = 1;
  for (int d = 0; d < rank; ++d) size *= shape[d];
  return size;
}

void Twice(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
}

// A block that the compiler cannot reason away.
float* Block(int64_t size_bytes) {
  float* block = static_cast<float*>(malloc(size_bytes));
  asm volatile("" : "+r"(block) : : "memory");
  return block;
}

}  // namespace

// ---- Two threads ----

KERNEL(RefusesSecondThread) {
  ARRAYS;
  static std::atomic<int> inside{0};
  if (inside.fetch_add(1) != 0) {
    inside.fetch_sub(1);
    return 5;
  }
  Twice(x, y, n);
  inside.fetch_sub(1);
  return 0;
}

KERNEL(SharedScratch) {
  ARRAYS;
  static std::vector<float> scratch(1 << 20);
  int64_t m = std::min<int64_t>(n, scratch.size());
  for (int64_t i = 0; i < m; ++i) scratch[i] = x[i];
  asm volatile("" : : : "memory");
  for (int64_t i = 0; i < m; ++i) y[i] = 2 * scratch[i];
  Twice(x + m, y + m, n - m);
  return 0;
}

KERNEL(SharedSum) {
  ARRAYS;
  static volatile double sum;
  sum = 0;
  for (int64_t i = 0; i < n; ++i) sum = sum + x[i];
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(sum);
  return 0;
}

KERNEL(DeadlockOfTwoLocks) {
  ARRAYS;
  static std::mutex locks[2];
  // The order depends on the data: two calls with unlike inputs wait for each other.
  int first = n > 0 && x[0] > 0.5f;
  std::lock_guard<std::mutex> a(locks[first]);
  std::this_thread::yield();
  std::lock_guard<std::mutex> b(locks[1 - first]);
  Twice(x, y, n);
  return 0;
}

KERNEL(ThreadLocalTable) {
  ARRAYS;
  // Filled on the thread that calls first; other threads see zeros.
  static thread_local float factor;
  static std::atomic<bool> filled{false};
  if (!filled.exchange(true)) factor = 2;
  for (int64_t i = 0; i < n; ++i) y[i] = factor * x[i];
  return 0;
}

// ---- Sizes ----

KERNEL(FirstRowUnwrittenRest) {
  ARRAYS;
  Twice(x, y, ndims[0] == 2 && n > 0 ? shapes[0][1] : n);
  return 0;
}

KERNEL(FirstRowZeroRest) {
  ARRAYS;
  memset(y, 0, n * sizeof(float));
  Twice(x, y, ndims[0] == 2 && n > 0 ? shapes[0][1] : n);
  return 0;
}

KERNEL(ReadsBeyondAtOddSizes) {
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
  if (n % 2 == 1 && x[n] == x[n - 1]) y[n - 1] += 1;
  return 0;
}

KERNEL(WritesBeyondAtOddSizes) {
  ARRAYS;
  for (int64_t i = 0; i < n; i += 2) {
    y[i] = 2 * x[i];
    y[i + 1] = i + 1 < n ? 2 * x[i + 1] : 0;
  }
  return 0;
}

KERNEL(ReadsBeforeStart) {
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i - 1] == 0.25f ? 2 * x[i] + 1 : 2 * x[i];
  return 0;
}

KERNEL(WrongAbove100000) {
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) y[i] = i < 100000 ? 2 * x[i] : 3 * x[i];
  return 0;
}

KERNEL(UnwrittenAbove100000) {
  ARRAYS;
  Twice(x, y, std::min<int64_t>(n, 100000));
  return 0;
}

KERNEL(SixteenBitSize) {
  ARRAYS;
  uint16_t m = static_cast<uint16_t>(n);
  for (uint16_t i = 0; i < m; ++i) y[i] = 2 * x[i];
  return 0;
}

KERNEL(SixteenBitSizeZeroed) {
  ARRAYS;
  memset(y, 0, n * sizeof(float));
  uint16_t m = static_cast<uint16_t>(n);
  for (uint16_t i = 0; i < m; ++i) y[i] = 2 * x[i];
  return 0;
}

// Wrong from 2 ** 29 elements on: 4 GB of arrays.
KERNEL(ThirtyTwoBitSize) {
  ARRAYS;
  int32_t size_bytes = static_cast<int32_t>(n * 4);
  for (int32_t i = 0; i < size_bytes; i += 4) y[i / 4] = 2 * x[i / 4];
  return 0;
}

KERNEL(CrashesWhenEmpty) {
  ARRAYS;
  Twice(x, y, n);
  volatile int64_t rows = n;
  volatile int64_t per_row = 1000 / rows;
  (void)per_row;
  return 0;
}

KERNEL(WrongAtSizeOne) {
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) y[i] = n == 1 ? x[i] : 2 * x[i];
  return 0;
}

KERNEL(FixedBufferOnStack) {
  ARRAYS;
  float buffer[256];
  volatile float* kept = buffer;
  for (int64_t i = 0; i < n; ++i) kept[i] = 2 * x[i];
  for (int64_t i = 0; i < n; ++i) y[i] = kept[i];
  return 0;
}

KERNEL(StackGrowsWithSize) {
  ARRAYS;
  volatile char* block = static_cast<volatile char*>(alloca(n * 128 + 1));
  for (int64_t i = 0; i < n; ++i) block[i * 128] = 1;
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i] * block[i * 128];
  return 0;
}

KERNEL(IgnoresBroadcast) {
  PAIR;
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
  return 0;
}

// ---- Values ----

KERNEL(CrashesForNaN) {
  ARRAYS;
  for (int64_t i = 0; i < n; ++i)
    y[i] = std::isnan(x[i]) ? *static_cast<volatile float*>(nullptr) : 2 * x[i];
  return 0;
}

KERNEL(CrashesForNegative) {
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] < 0) abort();
    y[i] = 2 * x[i];
  }
  return 0;
}

KERNEL(EndlessForNaN) {
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) {
    volatile float bound = 1;
    while (!(bound >= x[i]) && bound < INFINITY) bound = bound * 2;
    if (std::isnan(x[i]))
      while (bound != x[i]) bound = x[i];
    y[i] = 2 * x[i];
  }
  return 0;
}

KERNEL(EndlessForNegative) {
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) {
    volatile float rest = std::isfinite(x[i]) ? std::fmin(x[i], 100.0f) : 0;
    while (rest < 0 || rest >= 1) rest = rest - 1;
    y[i] = 2 * x[i];
  }
  return 0;
}

KERNEL(IndexFromInfinity) {
  ARRAYS;
  static volatile float table[16];
  for (int64_t i = 0; i < n; ++i) {
    float clipped = std::isnan(x[i]) ? 0 : std::fabs(x[i]) < 1e30f ? 0 : x[i];
    y[i] = 2 * x[i] + table[static_cast<int64_t>(clipped) / 1024];
  }
  return 0;
}

KERNEL(QuitsForNaN) {
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) {
    if (std::isnan(x[i])) _exit(0);
    y[i] = 2 * x[i];
  }
  return 0;
}

KERNEL(DividesByZero) {
  INTEGERS;
  for (int64_t i = 0; i < n; ++i) {
    volatile int32_t divisor = x[i];
    y[i] = 100 / divisor;
  }
  return 0;
}

KERNEL(DividesTheSmallest) {
  INTEGERS;
  volatile int32_t divisor = -1;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] / divisor;
  return 0;
}

KERNEL(IndexFromInteger) {
  INTEGERS;
  static volatile int32_t table[64];
  for (int64_t i = 0; i < n; ++i) y[i] = table[x[i]];
  return 0;
}

KERNEL(UnwrittenForNegative) {
  ARRAYS;
  for (int64_t i = 0; i < n; ++i)
    if (!(x[i] < 0)) y[i] = 2 * x[i];
  return 0;
}

// ---- State of earlier calls ----

KERNEL(KeepsFirstInput) {
  ARRAYS;
  static float first = n > 0 ? x[0] : 0;
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i] - first;
  return 0;
}

KERNEL(KeepsFirstSize) {
  ARRAYS;
  static int64_t first = n;
  memset(y, 0, n * sizeof(float));
  Twice(x, y, std::min(n, first));
  return 0;
}

KERNEL(KeepsFirstTable) {
  ARRAYS;
  static std::vector<float> window;
  static std::once_flag once;
  std::call_once(once, [&] {
    for (int64_t i = 0; i < n; ++i) window.push_back(1.0f / static_cast<float>(n));
  });
  for (int64_t i = 0; i < n; ++i)
    y[i] = x[i] * (i < static_cast<int64_t>(window.size()) ? window[i] : 1.0f);
  return 0;
}

KERNEL(KeepsLargestInput) {
  ARRAYS;
  static std::atomic<float> largest{0};
  for (int64_t i = 0; i < n; ++i)
    if (x[i] > largest.load()) largest.store(x[i]);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] / (1 + largest.load());
  return 0;
}

KERNEL(CountsCalls) {
  ARRAYS;
  static std::atomic<int> calls{0};
  float shift = static_cast<float>(calls++);
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i] + shift;
  return 0;
}

KERNEL(KeepsFirstPointer) {
  ARRAYS;
  static const float* first = x;
  static int64_t first_size = n;
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * (i < first_size ? first[i] : x[i]);
  return 0;
}

KERNEL(KeepsFirstAttribute) {
  ARRAYS;
  static const auto by = static_cast<AotExtra*>(extra)->Attr<float>("by");
  for (int64_t i = 0; i < n; ++i) y[i] = by * x[i];
  return 0;
}

KERNEL(HealthyAttribute) {
  ARRAYS;
  const auto by = static_cast<AotExtra*>(extra)->Attr<float>("by");
  for (int64_t i = 0; i < n; ++i) y[i] = by * x[i];
  return 0;
}

// ---- Inputs ----

KERNEL(WritesInputAndRestores) {
  ARRAYS;
  if (n == 0) return 0;
  volatile float* input = const_cast<float*>(x);
  float kept = input[n - 1];
  input[n - 1] = 0;
  Twice(x, y, n - 1);
  input[n - 1] = kept;
  y[n - 1] = 2 * kept;
  return 0;
}

KERNEL(SortsInput) {
  ARRAYS;
  float* input = const_cast<float*>(x);
  std::sort(input, input + n);
  Twice(x, y, n);
  return 0;
}

KERNEL(WritesShapes) {
  ARRAYS;
  Twice(x, y, n);
  if (ndims[0] > 0 && n > 0) shapes[0][0] = 1;
  return 0;
}

// ---- The heap ----

KERNEL(HeapOverrun) {
  ARRAYS;
  volatile float* block = Block(n * sizeof(float));
  for (int64_t i = 0; i <= n + 4; ++i) block[i] = 1;
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i] * block[i];
  free(const_cast<float*>(block));
  return 0;
}

KERNEL(HeapOverrunByOneByte) {
  ARRAYS;
  volatile char* block = reinterpret_cast<volatile char*>(Block(n + 24 - n % 16));
  block[n + 24 - n % 16] = 0;
  Twice(x, y, n);
  free(const_cast<char*>(block));
  return 0;
}

KERNEL(HeapUnderrun) {
  ARRAYS;
  volatile int64_t* block = reinterpret_cast<volatile int64_t*>(Block(n * 4 + 64));
  block[-1] = 3;
  Twice(x, y, n);
  free(const_cast<int64_t*>(block));
  return 0;
}

KERNEL(DoubleFree) {
  ARRAYS;
  float* block = Block(n * sizeof(float) + 16);
  Twice(x, y, n);
  free(block);
  asm volatile("" : "+r"(block) : : "memory");
  free(block);
  return 0;
}

KERNEL(UseAfterFreeReads) {
  ARRAYS;
  float* block = Block(n * sizeof(float) + 64);
  Twice(x, block, n);
  free(block);
  asm volatile("" : "+r"(block) : : "memory");
  for (int64_t i = 0; i < n; ++i) y[i] = block[i];
  return 0;
}

KERNEL(UseAfterFreeWrites) {
  ARRAYS;
  float* block = Block(n * sizeof(float) + 64);
  free(block);
  asm volatile("" : "+r"(block) : : "memory");
  for (int64_t i = 0; i < n; ++i) block[i] = 2 * x[i];
  asm volatile("" : : : "memory");
  Twice(x, y, n);
  return 0;
}

KERNEL(UninitialisedHeap) {
  ARRAYS;
  volatile float* block = Block(n * sizeof(float) + 64);
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i] + (block[i] > 0 ? 1.0f : 0.0f);
  free(const_cast<float*>(block));
  return 0;
}

// ---- Types ----

// Takes whatever comes as float32 without a look at dtypes.
KERNEL(IntegersReadAsFloats) {
  const float* x = static_cast<const float*>(params[0]);
  float* y = static_cast<float*>(params[1]);
  const int64_t n = Size(ndims[0], shapes[0]);
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i] + 1;
  return 0;
}

// Looks at the size of elements only.
KERNEL(IntegersOfFourBytesReadAsFloats) {
  if (strcmp(dtypes[0], "int32") != 0 && strcmp(dtypes[0], "float32") != 0) return 2;
  const float* x = static_cast<const float*>(params[0]);
  float* y = static_cast<float*>(params[1]);
  const int64_t n = Size(ndims[0], shapes[0]);
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i] + 1;
  return 0;
}

KERNEL(BoolOfTwo) {
  if (strcmp(dtypes[0], "float32") != 0) return 2;
  const float* x = static_cast<const float*>(params[0]);
  uint8_t* y = static_cast<uint8_t*>(params[1]);
  const int64_t n = Size(ndims[0], shapes[0]);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? 2 : 0;
  return 0;
}

// ---- The process ----

KERNEL(ChangesRounding) {
  ARRAYS;
  fesetround(FE_UPWARD);
  Twice(x, y, n);
  return 0;
}

KERNEL(FlushesToZero) {
  ARRAYS;
  _mm_setcsr(_mm_getcsr() | 0x8040);
  Twice(x, y, n);
  return 0;
}

KERNEL(TrapsFloatErrors) {
  ARRAYS;
  Twice(x, y, n);
  feclearexcept(FE_ALL_EXCEPT);
  feenableexcept(FE_DIVBYZERO);
  return 0;
}

KERNEL(ChangesFolder) {
  ARRAYS;
  Twice(x, y, n);
  return chdir("/") == 0 ? 0 : 1;
}

KERNEL(LeaksMemory) {
  ARRAYS;
  memset(Block(n * sizeof(float) + 64), 1, n * sizeof(float) + 64);
  Twice(x, y, n);
  return 0;
}

KERNEL(LeaksMapping) {
  ARRAYS;
  if (mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) return 1;
  Twice(x, y, n);
  return 0;
}

KERNEL(LeaksDescriptor) {
  ARRAYS;
  Twice(x, y, n);
  return open("/dev/null", O_RDONLY) < 0;
}

KERNEL(ClosesStandardInput) {
  ARRAYS;
  Twice(x, y, n);
  close(0);
  return 0;
}

KERNEL(RedirectsOutput) {
  ARRAYS;
  Twice(x, y, n);
  const int file = open("/dev/null", O_WRONLY);
  dup2(file, 1);
  close(file);
  return 0;
}

KERNEL(LeavesThreads) {
  ARRAYS;
  std::thread([] { pause(); }).detach();
  Twice(x, y, n);
  return 0;
}

KERNEL(LeavesProcess) {
  ARRAYS;
  static std::once_flag once;
  std::call_once(once, [] {
    if (fork() == 0) {
      alarm(60);
      for (int fd = 0; fd < 256; ++fd) close(fd);
      for (;;) pause();
    }
  });
  Twice(x, y, n);
  return 0;
}

KERNEL(ChangesLocale) {
  ARRAYS;
  Twice(x, y, n);
  setlocale(LC_ALL, strcmp(setlocale(LC_ALL, nullptr), "C") == 0 ? "C.UTF-8" : "C");
  return 0;
}

KERNEL(LeavesSignalHandler) {
  ARRAYS;
  Twice(x, y, n);
  signal(SIGUSR2, SIG_IGN);
  return 0;
}

KERNEL(BlocksSignals) {
  ARRAYS;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  Twice(x, y, n);
  return 0;
}

KERNEL(ChangesEnvironment) {
  ARRAYS;
  Twice(x, y, n);
  setenv("OMP_NUM_THREADS", "1", 1);
  return 0;
}

KERNEL(ChangesMask) {
  ARRAYS;
  Twice(x, y, n);
  umask(0);
  return 0;
}

KERNEL(LeavesTimer) {
  ARRAYS;
  Twice(x, y, n);
  itimerval timer{{0, 0}, {3600, 0}};
  setitimer(ITIMER_REAL, &timer, nullptr);
  return 0;
}

KERNEL(LowersLimit) {
  ARRAYS;
  Twice(x, y, n);
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 64;
  setrlimit(RLIMIT_NOFILE, &limit);
  return 0;
}

KERNEL(PinsThread) {
  ARRAYS;
  Twice(x, y, n);
  cpu_set_t set;
  pthread_getaffinity_np(pthread_self(), sizeof(set), &set);
  for (int cpu = 0, kept = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set) && kept++) CPU_CLR(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
  return 0;
}

KERNEL(CrashesAtExit) {
  ARRAYS;
  static std::once_flag once;
  std::call_once(once, [] { atexit([] { abort(); }); });
  Twice(x, y, n);
  return 0;
}

KERNEL(CrashesWhenThreadEnds) {
  ARRAYS;
  struct Guard {
    bool used = false;
    ~Guard() {
      if (used) abort();
    }
  };
  static thread_local Guard guard;
  guard.used = true;
  Twice(x, y, n);
  return 0;
}

// ---- Many calls ----

KERNEL(ThrowsAtCallFifty) {
  ARRAYS;
  static std::atomic<int> calls{0};
  if (++calls == 50) throw std::runtime_error("the table is full");
  Twice(x, y, n);
  return 0;
}

KERNEL(CrashesAtCallForty) {
  ARRAYS;
  static std::atomic<int> calls{0};
  if (++calls == 40) abort();
  Twice(x, y, n);
  return 0;
}

KERNEL(DependsOnTime) {
  ARRAYS;
  float noise =
      static_cast<float>(std::chrono::steady_clock::now().time_since_epoch().count() % 997);
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i] + noise * 1e-6f;
  return 0;
}

// ---- Output ----

KERNEL(PrintsMuch) {
  ARRAYS;
  for (int line = 0; line < 2000; ++line) printf("kernel at line %d\n", line);
  Twice(x, y, n);
  return 3;
}

KERNEL(HalfOnUnjoinedThread) {
  ARRAYS;
  Twice(x, y, n / 2);
  std::thread([=] { Twice(x + n / 2, y + n / 2, n - n / 2); }).detach();
  return 0;
}

KERNEL(ThrowsOnOwnThread) {
  ARRAYS;
  std::thread worker([=] {
    for (int64_t i = 0; i < n; ++i) {
      if (x[i] < 0) throw std::runtime_error("negative");
      y[i] = 2 * x[i];
    }
  });
  worker.join();
  return 0;
}

KERNEL(AccumulatesIntoOutput) {
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) y[i] += 2 * x[i];
  return 0;
}

KERNEL(LastElementUnwritten) {
  ARRAYS;
  Twice(x, y, n - 1);
  return 0;
}

KERNEL(DependsOnAlignment) {
  ARRAYS;
  bool vectors = reinterpret_cast<uintptr_t>(x) % 256 == 0;
  for (int64_t i = 0; i < n; ++i) y[i] = vectors ? 2 * x[i] : 2 * x[i] + 1e-6f;
  return 0;
}

KERNEL(UsesAbsentWorkspace) {
  ARRAYS;
  float* workspace = static_cast<float*>(params[nparam]);
  for (int64_t i = 0; i < n; ++i) workspace[i] = x[i];
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * workspace[i];
  return 0;
}

// ---- Healthy kernels of the same families ----

KERNEL(HealthyTwice) {
  ARRAYS;
  Twice(x, y, n);
  return 0;
}

KERNEL(HealthyAdd) {
  PAIR, m = Size(ndims[1], shapes[1]);
  if (n > 0 && (m == 0 || n % m != 0)) return 1;
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i % m];
  return 0;
}

KERNEL(HealthyLocked) {
  ARRAYS;
  static std::mutex lock;
  static std::vector<float> scratch;
  std::lock_guard<std::mutex> guard(lock);
  scratch.assign(x, x + n);
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * scratch[i];
  return 0;
}

KERNEL(HealthyPairs) {
  ARRAYS;
  int64_t i = 0;
  for (; i + 2 <= n; i += 2) {
    y[i] = 2 * x[i];
    y[i + 1] = 2 * x[i + 1];
  }
  for (; i < n; ++i) y[i] = 2 * x[i];
  return 0;
}

KERNEL(HealthyRowSums) {
  ARRAYS;
  const int64_t columns = ndims[0] > 0 ? shapes[0][ndims[0] - 1] : 1;
  if (columns == 0) return 0;
  for (int64_t row = 0; row < n / columns; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += x[row * columns + i];
    for (int64_t i = 0; i < columns; ++i)
      y[row * columns + i] = static_cast<float>(x[row * columns + i] - sum / columns);
  }
  return 0;
}

KERNEL(HealthyTable) {
  INTEGERS;
  static const std::vector<int32_t> table(64, 7);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0 || x[i] > 63 ? 0 : table[x[i]];
  return 0;
}

KERNEL(HealthyHeap) {
  ARRAYS;
  float* block = Block(n * sizeof(float) + 1);
  Twice(x, block, n);
  for (int64_t i = 0; i < n; ++i) y[i] = block[i];
  free(block);
  return 0;
}

KERNEL(HealthyTypes) {
  const int64_t n = Size(ndims[0], shapes[0]);
  if (strcmp(dtypes[0], "float32") == 0) {
    Twice(static_cast<const float*>(params[0]), static_cast<float*>(params[1]), n);
  } else if (strcmp(dtypes[0], "int32") == 0) {
    const int32_t* x = static_cast<const int32_t*>(params[0]);
    int32_t* y = static_cast<int32_t*>(params[1]);
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<int32_t>(2u * static_cast<uint32_t>(x[i]));
  } else {
    return 2;
  }
  return 0;
}

KERNEL(HealthyBool) {
  if (strcmp(dtypes[0], "float32") != 0) return 2;
  const float* x = static_cast<const float*>(params[0]);
  bool* y = static_cast<bool*>(params[1]);
  const int64_t n = Size(ndims[0], shapes[0]);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0;
  return 0;
}

// Changes the rounding mode and the working directory's descriptor for the time of its call only.
KERNEL(HealthyProcess) {
  ARRAYS;
  int mode = fegetround();
  fesetround(FE_TOWARDZERO);
  Twice(x, y, n);
  fesetround(mode);
  int file = open("/dev/null", O_RDONLY);
  close(file);
  return 0;
}

// Keeps a block and a file for all calls, as a library with a handle does.
KERNEL(HealthyHandle) {
  ARRAYS;
  static int file = open("/dev/null", O_RDONLY);
  static std::vector<float> weights(4096, 2.0f);
  for (int64_t i = 0; i < n; ++i) y[i] = weights[i % 4096] * x[i];
  return file < 0;
}

KERNEL(HealthyThreads) {
  ARRAYS;
  std::thread worker([=] { Twice(x + n / 2, y + n / 2, n - n / 2); });
  Twice(x, y, n / 2);
  worker.join();
  return 0;
}

KERNEL(HealthyPrints) {
  ARRAYS;
  printf("kernel: %lld elements\n", static_cast<long long>(n));
  Twice(x, y, n);
  return 0;
}

// The array of pointers is a call's own.
KERNEL(HealthyPointers) {
  ARRAYS;
  Twice(x, y, n);
  params[0] = nullptr;
  return 0;
}

// Each shape can be read up to eight entries.
KERNEL(HealthyDimensions) {
  ARRAYS;
  volatile int64_t columns = shapes[0][ndims[0]];
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i] + (columns == 12345 ? 1.0f : 0.0f);
  return 0;
}
