// Kernels with one fault each, planted for msops.testing.opcheck to find: y = x + 1 in float32
// otherwise.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "custom_aot_extra.h"

namespace {

int64_t Size(const int* ndims, int64_t** shapes) {
  int64_t size = 1;
  for (int i = 0; i < ndims[0]; ++i) size *= shapes[0][i];
  return size;
}

bool Refused(int nparam, const char** dtypes) {
  return nparam < 2 || std::strcmp(dtypes[0], "float32") != 0;
}

// The bytes of an element of the first array, from the number that ends its dtype's name.
int64_t ItemBytes(const char** dtypes) {
  const std::string name = dtypes[0];
  if (name == "bool") return 1;
  if (name.compare(0, 6, "float8") == 0) return 1;
  return std::stoi(name.substr(name.find_last_not_of("0123456789") + 1)) / 8;
}

void ReadByte(const void* base, int64_t offset) {
  static_cast<void>(static_cast<const volatile char*>(base)[offset]);
}

// Writes what is there already, where that can be read.
void WriteByte(void* base, int64_t offset) { static_cast<volatile char*>(base)[offset] = 1; }

// Keeps the compiler from seeing what a pointer points to.
float* Float(void* pointer) { return static_cast<float*>(pointer); }

}  // namespace

#define KERNEL(Name)                                                           \
  extern "C" int Name(int nparam, void** params, int* ndims, int64_t** shapes, \
                      const char** dtypes, void* stream, void* extra)

#define TAKE_FLOATS                      \
  if (Refused(nparam, dtypes)) return 1; \
  const int64_t n = Size(ndims, shapes); \
  float* const x = Float(params[0]);     \
  float* const y = Float(params[1]);     \
  static_cast<void>(n);                  \
  static_cast<void>(x);                  \
  static_cast<void>(y)

// Right, for comparison.
KERNEL(Right) {
  TAKE_FLOATS;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + 1;
  return 0;
}

// Right for every dtype but for one byte, read or written outside of one array.
#define COPIES_BUT(Name, touch)                                   \
  KERNEL(Name) {                                                  \
    const int64_t size = Size(ndims, shapes) * ItemBytes(dtypes); \
    touch;                                                        \
    std::memcpy(params[1], params[0], static_cast<size_t>(size)); \
    return 0;                                                     \
  }

COPIES_BUT(ReadsByteBeyondInput, ReadByte(params[0], size))
COPIES_BUT(ReadsByteBeforeInput, ReadByte(params[0], -1))
COPIES_BUT(ReadsByteBeyondOutput, ReadByte(params[1], size))
COPIES_BUT(WritesByteBeyondInput, WriteByte(params[0], size))
COPIES_BUT(WritesByteBeyondOutput, WriteByte(params[1], size))
COPIES_BUT(WritesByteBeforeOutput, WriteByte(params[1], -1))

// Reads one element beyond, which shows in no result: neighbours differ whatever lies there.
KERNEL(ComparesNext) {
  TAKE_FLOATS;
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i + 1] == x[i]);
  return 0;
}

// Goes one too far in both arrays, and writes first.
KERNEL(ClearsAndCopiesBeyond) {
  TAKE_FLOATS;
  for (int64_t i = 0; i <= n; ++i) {
    const_cast<volatile float*>(y)[i] = 0;
    y[i] = x[i];
  }
  return 0;
}

// Right for an op with inplace={0: 0}.
KERNEL(DoublesInPlace) {
  TAKE_FLOATS;
  for (int64_t i = 0; i < n; ++i) y[i] *= 2;
  return 0;
}

// One element beyond the end.
KERNEL(WritesBeyond) {
  TAKE_FLOATS;
  for (int64_t i = 0; i <= n; ++i) y[i] = 1;
  return 0;
}

// One element before the start.
KERNEL(WritesBefore) {
  TAKE_FLOATS;
  for (int64_t i = -1; i < n; ++i) y[i] = 1;
  return 0;
}

// A row of 1024 elements beyond the end.
KERNEL(WritesFarBeyond) {
  TAKE_FLOATS;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + 1;
  y[n + 1024] = 1;
  return 0;
}

// A thousand arrays instead of one, from the first byte beyond the end on.
KERNEL(FillsFarBeyond) {
  TAKE_FLOATS;
  for (int64_t i = 0; i < 1000 * n; ++i) y[i] = x[0];
  return 0;
}

KERNEL(WritesVeryFar) {
  TAKE_FLOATS;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + 1;
  y[n + 40000000] = 1;
  return 0;
}

// One element too far, in both arrays.
KERNEL(CopiesBeyond) {
  TAKE_FLOATS;
  for (int64_t i = 0; i <= n; ++i) y[i] = x[i];
  return 0;
}

// The last result depends on what lies behind the input.
KERNEL(ReadsBeyond) {
  TAKE_FLOATS;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i + 1];
  return 0;
}

KERNEL(SkipsLast) {
  TAKE_FLOATS;
  for (int64_t i = 0; i + 1 < n; ++i) y[i] = x[i] + 1;
  return 0;
}

KERNEL(WritesInput) {
  TAKE_FLOATS;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + 1;
  x[1] = 0;
  return 0;
}

// Takes the output for zeroed.
KERNEL(AddsToOutput) {
  TAKE_FLOATS;
  for (int64_t i = 0; i < n; ++i) y[i] += x[i] + 1;
  return 0;
}

// Keeps a count between calls.
KERNEL(Counts) {
  TAKE_FLOATS;
  static float count = 0;
  ++count;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + count;
  return 0;
}

// Adds what no other call does.
KERNEL(AddsClock) {
  TAKE_FLOATS;
  const auto ticks = std::chrono::steady_clock::now().time_since_epoch().count();
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + static_cast<float>(ticks % (1 << 20));
  return 0;
}

// Takes the output for aligned to 256 bytes.
KERNEL(RoundsPointers) {
  TAKE_FLOATS;
  float* const rounded = Float(reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(y) & ~255));
  for (int64_t i = 0; i < n; ++i) rounded[i] = x[i] + 1;
  return 0;
}

// Takes the output for aligned to 32 bytes. The instruction itself, as compilers may choose the
// unaligned one for _mm256_store_ps; the machine must have AVX.
#if defined(__x86_64__)
namespace {

void StoreAligned(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i + 8 <= n; i += 8) {
    __asm__ volatile("vmovups (%0), %%ymm0; vmovaps %%ymm0, (%1); vzeroupper"
                     :
                     : "r"(x + i), "r"(y + i)
                     : "xmm0", "memory");
  }
  for (int64_t i = n / 8 * 8; i < n; ++i) y[i] = x[i];
}

}  // namespace

KERNEL(StoresAligned) {
  TAKE_FLOATS;
  StoreAligned(x, y, n);
  return 0;
}

// Besides, reads the second element beyond the end.
KERNEL(StoresAlignedReadsBeyond) {
  TAKE_FLOATS;
  StoreAligned(x, y, n);
  ReadByte(x, 4 * (n + 1));
  return 0;
}
#endif

// Takes the arrays for aligned to 64 bytes, as XLA aligns them, and finds their ends by that.
KERNEL(RoundsTo64) {
  TAKE_FLOATS;
  const auto round = [](float* p) { return reinterpret_cast<uintptr_t>(p) & ~uintptr_t{63}; };
  const float* const from = Float(reinterpret_cast<void*>(round(x)));
  float* const to = Float(reinterpret_cast<void*>(round(y)));
  for (int64_t i = 0; i < n; ++i) to[i] = from[i] + 1;
  return 0;
}

// Keeps intermediate results where every thread sees them.
KERNEL(SharesScratch) {
  TAKE_FLOATS;
  static volatile float scratch[4096];
  if (n > 4096) return 2;
  for (int64_t i = 0; i < n; ++i) scratch[i] = x[i];
  for (int64_t i = 0; i < n; ++i) y[i] = scratch[i] + 1;
  return 0;
}

// Whole vectors of four only.
KERNEL(ForgetsTail) {
  TAKE_FLOATS;
  for (int64_t i = 0; i + 4 <= n; i += 4) {
    for (int64_t k = 0; k < 4; ++k) y[i + k] = x[i + k] + 1;
  }
  return 0;
}

// Reads the first element even of nothing.
KERNEL(NeedsAnElement) {
  TAKE_FLOATS;
  y[0] = x[0] + 1;
  for (int64_t i = 1; i < n; ++i) y[i] = x[i] + 1;
  return 0;
}

// Takes every dtype for float32.
KERNEL(TakesAnything) {
  const int64_t n = Size(ndims, shapes);
  const float* x = Float(params[0]);
  float* y = Float(params[1]);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + 1;
  return 0;
}

KERNEL(Fails) { return 7; }

KERNEL(FollowsNull) {
  TAKE_FLOATS;
  volatile float* volatile nowhere = nullptr;
  *nowhere = 1;
  return 0;
}

// Divides integers by zero, which ends the process by SIGFPE on x86.
KERNEL(DividesByZero) {
  TAKE_FLOATS;
  volatile int64_t zero = 0;
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(i / zero);
  return 0;
}

KERNEL(Aborts) { __builtin_trap(); }

extern "C" int OverrunsWorkspaceInit(int* ndims, int64_t** shapes, const char** dtypes,
                                     AotExtra* extra) {
  extra->SetWorkSpace({512});
  return 0;
}

KERNEL(OverrunsWorkspace) {
  TAKE_FLOATS;
  float* const scratch = Float(params[2]);
  for (int64_t i = 0; i < 129; ++i) scratch[i] = 1;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + scratch[0];
  return 0;
}

// Says [n + 1], while the op says [n].
extern "C" std::vector<int64_t> InfersOtherInferShape(int* ndims, int64_t** shapes,
                                                      AotExtra* extra) {
  return {shapes[0][0] + 1};
}

KERNEL(InfersOther) {
  TAKE_FLOATS;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + 1;
  return 0;
}

enum TypeId : int {};

// Says float64, while the op says float32.
extern "C" TypeId InfersOtherTypeInferType(std::vector<TypeId> type_ids, AotExtra* extra) {
  return static_cast<TypeId>(44);
}

KERNEL(InfersOtherType) {
  TAKE_FLOATS;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + 1;
  return 0;
}

// Refuses what is not float32 once, and then no more.
KERNEL(RefusesOnce) {
  static bool has_refused = false;
  if (std::strcmp(dtypes[0], "float32") != 0 && !has_refused) {
    has_refused = true;
    return 1;
  }
  const int64_t n = Size(ndims, shapes);
  const int64_t width = std::strcmp(dtypes[0], "float16") == 0 ? 2 : 8;
  std::memset(params[1], 0, static_cast<size_t>(n) * (Refused(nparam, dtypes) ? width : 4));
  return 0;
}

// Ends for no inputs.
KERNEL(Spins) {
  for (volatile int64_t i = 0;; ++i) {
  }
}

// Ends for inputs that are not empty.
KERNEL(SpinsOnNothing) {
  TAKE_FLOATS;
  for (volatile int64_t i = 0; n == 0; ++i) {
  }
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + 1;
  return 0;
}

// Ends for inputs that begin with their least element.
KERNEL(SpinsUnlessSorted) {
  TAKE_FLOATS;
  for (volatile int64_t i = 0; n > 1 && x[1] < x[0]; ++i) {
  }
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + 1;
  return 0;
}

// Two calls at once wait for one another to end.
KERNEL(WaitsForOthers) {
  TAKE_FLOATS;
  static std::atomic<int> running{0};
  ++running;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + 1;
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  while (running > 1) {
  }
  --running;
  return 0;
}

// Right, but the process does not end.
KERNEL(SpinsAtExit) {
  TAKE_FLOATS;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + 1;
  return std::atexit([] {
    for (volatile int64_t i = 0;; ++i) {
    }
  });
}

// Right, and takes its time.
KERNEL(Slow) {
  TAKE_FLOATS;
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + 1;
  return 0;
}

// Right for inputs that begin with their least element; for others it refuses, or goes astray.
KERNEL(TrustsFirst) {
  TAKE_FLOATS;
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] < x[0]) return i > 1 ? 3 : static_cast<int>(x[1 << 26]);
  }
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] - x[0];
  return 0;
}

// Is the sum of a batch, if it is given one.
KERNEL(SubtractsFirst) {
  TAKE_FLOATS;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] - x[0];
  return 0;
}

// An int that overflows, which the undefined behaviour sanitizer sees and no value shows.
KERNEL(OverflowsInt) {
  TAKE_FLOATS;
  volatile int32_t most = std::numeric_limits<int32_t>::max();
  const int32_t more = most + 1;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + static_cast<float>(more == 0);
  return 0;
}

// Reads an array of its own behind its end, which lies in no buffer of the call.
KERNEL(OverreadsOwnArray) {
  TAKE_FLOATS;
  float own[4] = {1, 1, 1, 1};
  volatile int64_t at = 4;
  volatile float unused = own[at];
  static_cast<void>(unused);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + own[0];
  return 0;
}
