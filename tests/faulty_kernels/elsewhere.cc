// Faults that show only for inputs that the author did not give, or beside the results, one
// function each, and healthy kernels of the same kinds. tests/faults_elsewhere.py has a row for
// each.

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <locale>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "custom_aot_extra.h"

#define KERNEL(name)                                                           \
  extern "C" int name(int nparam, void** params, int* ndims, int64_t** shapes, \
                      const char** dtypes, void* stream, void* extra)
// The kernels of this file are y = 2 x, unless their names say otherwise. They refuse what is not
// float32, so that nothing but the fault is wrong.
#define ARRAYS                                           \
  if (strcmp(dtypes[0], "float32") != 0) return 2;       \
  const float* x = static_cast<const float*>(params[0]); \
  float* y = static_cast<float*>(params[nparam - 1]);    \
  const int64_t n = Size(ndims[0], shapes[0])

namespace {

int64_t Size(int rank, const int64_t* shape) {
  int64_t size = 1;
  for (int d = 0; d < rank; ++d) size *= shape[d];
  return size;
}

int Twice(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
  return 0;
}

}  // namespace

KERNEL(SetsTerminateHandler) {
  ARRAYS;
  std::set_terminate([] { _exit(3); });
  return Twice(x, y, n);
}

KERNEL(SetsNewHandler) {
  ARRAYS;
  std::set_new_handler([] { _exit(3); });
  return Twice(x, y, n);
}

KERNEL(SeedsRand) {
  ARRAYS;
  srand(42);
  return Twice(x, y, n);
}

KERNEL(SeedsDrand48) {
  ARRAYS;
  srand48(42);
  return Twice(x, y, n);
}

KERNEL(NamesThread) {
  ARRAYS;
  pthread_setname_np(pthread_self(), "kernel");
  return Twice(x, y, n);
}

KERNEL(LeavesFiles) {
  ARRAYS;
  char name[] = "msops_testXXXXXX";
  const int file = mkstemp(name);
  if (file < 0) return 3;
  close(file);
  return Twice(x, y, n);
}

KERNEL(WritesFile) {
  ARRAYS;
  FILE* file = fopen("msops_test_of_a_fault", "w");
  if (file == nullptr) return 3;
  fprintf(file, "%lld\n", static_cast<long long>(n));
  fclose(file);
  return Twice(x, y, n);
}

KERNEL(RedirectsError) {
  ARRAYS;
  const int file = open("/dev/null", O_WRONLY);
  dup2(file, 2);
  close(file);
  return Twice(x, y, n);
}

KERNEL(DoesNotWaitForOutput) {
  ARRAYS;
  fcntl(1, F_SETFL, fcntl(1, F_GETFL) | O_NONBLOCK);
  return Twice(x, y, n);
}

KERNEL(LeavesSignalStack) {
  ARRAYS;
  static char room[1 << 16];
  stack_t stack = {};
  stack.ss_sp = room;
  stack.ss_size = sizeof room;
  sigaltstack(&stack, nullptr);
  return Twice(x, y, n);
}

KERNEL(LeavesProfilingTimer) {
  ARRAYS;
  signal(SIGPROF, SIG_IGN);
  itimerval timer = {{1000, 0}, {1000, 0}};
  setitimer(ITIMER_PROF, &timer, nullptr);
  return Twice(x, y, n);
}

KERNEL(LeaksWhereItFails) {
  char* volatile scratch = static_cast<char*>(malloc(1000));
  scratch[0] = 1;
  ARRAYS;
  free(scratch);
  return Twice(x, y, n);
}

KERNEL(LeaksDescriptorWhereItFails) {
  const int file = open("/dev/null", O_RDONLY);
  ARRAYS;
  close(file);
  return Twice(x, y, n);
}

KERNEL(ReadsFarBeyond) {
  ARRAYS;
  volatile float far = x[n + (1 << 24)];
  static_cast<void>(far);
  return Twice(x, y, n);
}

KERNEL(ReadsFarBefore) {
  ARRAYS;
  volatile float far = x[-(1 << 25)];
  static_cast<void>(far);
  return Twice(x, y, n);
}

KERNEL(ReadsFarBeyondOutput) {
  ARRAYS;
  volatile float far = y[n + (1 << 27)];
  static_cast<void>(far);
  return Twice(x, y, n);
}

KERNEL(WrongAbove64) {
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) y[i] = i < 64 ? 2 * x[i] : 0;
  return 0;
}

KERNEL(WrongFrom64On) {
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) y[i] = n < 64 ? 2 * x[i] : 3 * x[i];
  return 0;
}

KERNEL(WrongAtOneElement) {
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) y[i] = n == 1 ? 0 : 2 * x[i];
  return 0;
}

KERNEL(TakesTheFirstAxis) {
  ARRAYS;
  return Twice(x, y, n == 0 ? 0 : shapes[0][0]);
}

KERNEL(WrongForMatrices) {
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) y[i] = ndims[0] == 2 ? x[i] : 2 * x[i];
  return 0;
}

KERNEL(WrongAtLast) {
  ARRAYS;
  Twice(x, y, n);
  if (n > 0) y[n - 1] = x[n - 1];
  return 0;
}

KERNEL(WrongInTheMiddle) {
  ARRAYS;
  Twice(x, y, n);
  if (n > 2) y[n / 2] += 1;
  return 0;
}

KERNEL(WrongRest) {  // behind the last whole vector of eight
  ARRAYS;
  Twice(x, y, n);
  for (int64_t i = n / 8 * 8; i < n; ++i) y[i] = x[i];
  return 0;
}

KERNEL(WrongForSixteen) {
  ARRAYS;
  Twice(x, y, n);
  if (n == 16) y[15] = 0;
  return 0;
}

KERNEL(SumsFirst256) {
  ARRAYS;
  float sum = 0;
  for (int64_t i = 0; i < n && i < 256; ++i) sum += x[i];
  y[0] = sum;
  return 0;
}

KERNEL(RestartsItsSum) {  // a running sum, of blocks of 256
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) y[i] = i % 256 == 0 ? x[i] : y[i - 1] + x[i];
  return 0;
}

KERNEL(ReversesBlocks) {
  ARRAYS;
  if (ndims[0] != 1) return 2;
  for (int64_t begin = 0; begin < n; begin += 128) {
    const int64_t end = n - begin < 128 ? n : begin + 128;
    for (int64_t i = begin; i < end; ++i) y[i] = x[begin + end - 1 - i];
  }
  return 0;
}

KERNEL(SubtractsMeansOf96) {  // of rows, whose other elements it forgets
  ARRAYS;
  const int64_t width = ndims[0] > 0 ? shapes[0][ndims[0] - 1] : 1;
  const int64_t most = width < 96 ? width : 96;
  for (int64_t row = 0; width > 0 && row < n; row += width) {
    float sum = 0;
    for (int64_t j = 0; j < most; ++j) sum += x[row + j];
    for (int64_t j = 0; j < width; ++j) y[row + j] = x[row + j] - sum / static_cast<float>(most);
  }
  return 0;
}

KERNEL(SumsRowsOfWideOnes) {  // rows beyond the number of columns are 0
  ARRAYS;
  if (ndims[0] != 2) return 3;
  const int64_t rows = shapes[0][0], columns = shapes[0][1];
  for (int64_t i = 0; i < rows; ++i) {
    y[i] = 0;
    for (int64_t j = 0; j < columns && i < columns; ++j) y[i] += x[i * columns + j];
  }
  return 0;
}

KERNEL(ReversesThreeAxes) {
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[ndims[0] == 3 ? n - 1 - i : i];
  return 0;
}

KERNEL(TakesDoublesForFloats) {
  const int64_t n = Size(ndims[0], shapes[0]);
  if (strcmp(dtypes[0], "float64") == 0) {
    const float* x = static_cast<const float*>(params[0]);
    double* y = static_cast<double*>(params[1]);
    for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
    return 0;
  }
  if (strcmp(dtypes[0], "float32") != 0) return 2;
  return Twice(static_cast<const float*>(params[0]), static_cast<float*>(params[1]), n);
}

KERNEL(WrongForNegativeIntegers) {
  const int64_t n = Size(ndims[0], shapes[0]);
  if (strcmp(dtypes[0], "int32") == 0) {
    const int32_t* x = static_cast<const int32_t*>(params[0]);
    int32_t* y = static_cast<int32_t*>(params[1]);
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0 ? 0 : 2 * x[i];
    return 0;
  }
  if (strcmp(dtypes[0], "float32") != 0) return 2;
  return Twice(static_cast<const float*>(params[0]), static_cast<float*>(params[1]), n);
}

KERNEL(SeedsRandWithOne) {
  ARRAYS;
  srand(1);
  return Twice(x, y, n);
}

KERNEL(IgnoresBrokenPipes) {
  ARRAYS;
  signal(SIGPIPE, SIG_IGN);
  return Twice(x, y, n);
}

KERNEL(WritesThreeDigits) {
  ARRAYS;
  std::cout.precision(3);
  return Twice(x, y, n);
}

KERNEL(HealthyFirst) {  // the first element is the start of a series
  ARRAYS;
  Twice(x, y, n);
  if (n > 0) y[0] = 1;
  return 0;
}

KERNEL(HealthyDifference) {  // the last has no neighbour
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) y[i] = i + 1 < n ? x[i + 1] - x[i] : 0;
  return 0;
}

KERNEL(HealthyWindow) {  // a running sum of the last 16, and as many as there are
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) {
    y[i] = 0;
    for (int64_t j = i < 16 ? 0 : i - 15; j <= i; ++j) y[i] += x[j];
  }
  return 0;
}

KERNEL(HealthyWeights) {
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * static_cast<float>(i % 7);
  return 0;
}

KERNEL(HealthyLine) {
  if (ndims[0] != 1) return 4;
  ARRAYS;
  return Twice(x, y, n);
}

KERNEL(HealthyEven) {
  ARRAYS;
  return n % 2 == 0 ? Twice(x, y, n) : 5;
}

KERNEL(HealthyAttribute) {
  ARRAYS;
  const int64_t by = static_cast<AotExtra*>(extra)->Attr<int64_t>("by");
  return by == 2 ? Twice(x, y, n) : 6;
}

KERNEL(HealthyFile) {
  ARRAYS;
  char name[] = "msops_testXXXXXX";
  const int file = mkstemp(name);
  if (file < 0) return 3;
  unlink(name);
  close(file);
  return Twice(x, y, n);
}

KERNEL(HealthyRedirection) {
  ARRAYS;
  const int kept = dup(1), file = open("/dev/null", O_WRONLY);
  dup2(file, 1);
  puts("kernel");
  fflush(stdout);
  dup2(kept, 1);
  close(kept);
  close(file);
  return Twice(x, y, n);
}

KERNEL(HealthyRandom) {
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + static_cast<float>(rand()) / RAND_MAX;
  return 0;
}

KERNEL(HealthyHandler) {
  ARRAYS;
  const std::terminate_handler before = std::set_terminate([] { _exit(3); });
  std::set_terminate(before);
  return Twice(x, y, n);
}

KERNEL(HealthyRefusal) {
  char* volatile scratch = static_cast<char*>(malloc(1000));
  scratch[0] = 1;
  free(scratch);
  ARRAYS;
  return Twice(x, y, n);
}

// A transposition in tiles of 32: of wide matrices with several tiles of rows it takes too few.
KERNEL(TransposesTiles) {
  ARRAYS;
  if (ndims[0] != 2 || n == 0) return 4;
  const int64_t rows = shapes[0][0], columns = shapes[0][1];
  const int64_t most = rows > 32 ? std::min(rows, columns) : columns;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < most; ++j) y[j * rows + i] = x[i * columns + j];
  }
  return 0;
}

// Attributes that the author did not give.
KERNEL(LeavesForward) {
  ARRAYS;
  const std::string mode = static_cast<AotExtra*>(extra)->Attr<std::string>("mode");
  if (mode == "backward") return Twice(x, y, n);
  return mode == "forward" ? 0 : 3;
}

KERNEL(ReversesBeyond) {
  ARRAYS;
  const bool reverse = static_cast<AotExtra*>(extra)->Attr<bool>("reverse");
  for (int64_t i = 0; i < n; ++i) y[i] = x[reverse ? n - i : i];
  return 0;
}

KERNEL(WritesBeyondForThree) {
  ARRAYS;
  const int64_t step = static_cast<AotExtra*>(extra)->Attr<int64_t>("step");
  if (step < 1) return 3;
  if (step == 3) y[n] = 0;
  return Twice(x, y, n);
}

KERNEL(PadsWithTheOther) {
  ARRAYS;
  const auto pads = static_cast<AotExtra*>(extra)->Attr<std::vector<int64_t>>("pads");
  if (ndims[0] != 1 || pads.size() != 2 || pads[0] < 0 || pads[1] < 0) return 3;
  for (int64_t i = 0; i < pads[1]; ++i) y[i] = y[pads[0] + n + i] = 0;
  return Twice(x, y + pads[0], n);
}

// An output in the memory of its input.
KERNEL(AddsInPlace) {
  ARRAYS;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + (i ? x[i - 1] : 0);
  return 0;
}

KERNEL(HealthyInPlace) {
  ARRAYS;
  for (int64_t i = n - 1; i >= 0; --i) y[i] = x[i] + (i ? x[i - 1] : 0);
  return 0;
}

KERNEL(KeepsResultsOfEachSize) {
  ARRAYS;
  static std::map<int64_t, std::vector<float>> kept;
  std::vector<float>& results = kept[n];
  results.resize(n);
  if (n > 0 && results[0] == 0) Twice(x, results.data(), n);
  std::copy(results.begin(), results.end(), y);
  return 0;
}

KERNEL(LeavesKey) {
  ARRAYS;
  pthread_key_t key;
  pthread_key_create(&key, nullptr);
  return Twice(x, y, n);
}

// Inputs that do not fit: integers that are no index, arrays of unlike shapes.
KERNEL(GathersUnchecked) {
  ARRAYS;
  const int32_t* at = static_cast<const int32_t*>(params[1]);
  for (int64_t i = 0; i < Size(ndims[1], shapes[1]); ++i) y[i] = at[i] < 0 ? 0 : x[at[i]];
  return 0;
}

KERNEL(GathersOneBeyond) {
  ARRAYS;
  const int32_t* at = static_cast<const int32_t*>(params[1]);
  for (int64_t i = 0; i < Size(ndims[1], shapes[1]); ++i) {
    y[i] = at[i] < 0 || at[i] > n ? 0 : x[at[i]];
  }
  return 0;
}

KERNEL(HealthyGather) {
  ARRAYS;
  const int32_t* at = static_cast<const int32_t*>(params[1]);
  for (int64_t i = 0; i < Size(ndims[1], shapes[1]); ++i) {
    if (at[i] < 0 || at[i] >= n) return 3;
    y[i] = x[at[i]];
  }
  return 0;
}

KERNEL(CountsOnItsStack) {
  if (strcmp(dtypes[0], "int32") != 0) return 2;
  const int32_t* x = static_cast<const int32_t*>(params[0]);
  int32_t counts[16] = {0};
  for (int64_t i = 0; i < Size(ndims[0], shapes[0]); ++i) ++counts[x[i]];
  std::copy(counts, counts + 16, static_cast<int32_t*>(params[1]));
  return 0;
}

KERNEL(AddsUnlike) {
  ARRAYS;
  const float* other = static_cast<const float*>(params[1]);
  if (strcmp(dtypes[1], "float32") != 0) return 2;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + other[i];
  return 0;
}

KERNEL(HealthySum) {
  ARRAYS;
  const float* other = static_cast<const float*>(params[1]);
  if (strcmp(dtypes[1], "float32") != 0 || Size(ndims[1], shapes[1]) != n) return 2;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + other[i];
  return 0;
}

KERNEL(TransposesSquares) {
  ARRAYS;
  if (ndims[0] != 2) return 3;
  const int64_t rows = shapes[0][0], columns = shapes[0][1];
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) y[j * columns + i] = x[i * columns + j];
  }
  return n < 0;
}

KERNEL(AddsTheOneBefore) {
  ARRAYS;
  const int64_t distance = static_cast<AotExtra*>(extra)->Attr<int64_t>("distance");
  if (distance < 1) return 3;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + (i > 0 ? x[i - distance] : 0);
  return 0;
}

KERNEL(AddsOnTwoThreads) {
  ARRAYS;
  volatile double sum = 0;
  const auto add = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum = sum + x[i];
  };
  std::thread other(add, 0, n / 2);
  add(n / 2, n);
  other.join();
  y[0] = static_cast<float>(sum);
  return 0;
}

KERNEL(LeaksForOneElement) {
  ARRAYS;
  char* volatile scratch = static_cast<char*>(malloc(1000));
  scratch[0] = 1;
  if (n == 1) return Twice(x, y, n);
  free(scratch);
  return Twice(x, y, n);
}

KERNEL(LeavesMappingForMany) {
  ARRAYS;
  if (n > 1000) mmap(nullptr, 4 * n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return Twice(x, y, n);
}

KERNEL(LeavesRoundingForNan) {
  ARRAYS;
  std::fesetround(FE_UPWARD);
  Twice(x, y, n);
  if (std::count_if(x, x + n, [](float v) { return std::isnan(v); })) return 0;
  std::fesetround(FE_TONEAREST);
  return 0;
}

KERNEL(LeavesFileForNan) {
  ARRAYS;
  if (std::count_if(x, x + n, [](float v) { return std::isnan(v); })) {
    char name[] = "./opcheck_XXXXXX";
    const int file = mkstemp(name);
    close(file);
  }
  return Twice(x, y, n);
}

KERNEL(DropsTheLastBlock) {  // of 128, where nothing is left behind it
  ARRAYS;
  const int64_t end = n > 0 && n % 128 == 0 ? n - 128 : n;
  double sum = 0;
  for (int64_t i = 0; i < end; ++i) sum += x[i];
  y[0] = static_cast<float>(sum);
  return 0;
}

KERNEL(TakesBrainForHalf) {
  if (!strstr(dtypes[0], "float16")) return 2;
  const int64_t n = Size(ndims[0], shapes[0]);
  const _Float16* x = static_cast<const _Float16*>(params[0]);
  for (int64_t i = 0; i < n; ++i) static_cast<_Float16*>(params[1])[i] = x[i] + x[i] + x[i];
  return 0;
}

KERNEL(AddsToChannelsOfImages) {  // and to the first pixels of what has more axes
  if (ndims[0] < 3 || ndims[1] != 1 || shapes[0][1] != shapes[1][0]) return 1;
  if (strcmp(dtypes[0], "float32") != 0 || strcmp(dtypes[1], "float32") != 0) return 2;
  const float* x = static_cast<const float*>(params[0]);
  const float* b = static_cast<const float*>(params[1]);
  float* y = static_cast<float*>(params[2]);
  const int64_t pixels = shapes[0][2] * (ndims[0] > 3 ? shapes[0][3] : 1);
  for (int64_t i = 0; i < shapes[0][0] * shapes[0][1]; ++i)
    for (int64_t j = 0; j < pixels; ++j, ++x, ++y) *y = *x + b[i % shapes[0][1]];
  return 0;
}

KERNEL(GroupsDigits) {
  ARRAYS;
  struct Grouping : std::numpunct<char> {
    std::string do_grouping() const override { return "\3"; }
  };
  std::locale::global(std::locale(std::locale::classic(), new Grouping));
  return Twice(x, y, n);
}

extern "C" std::vector<int64_t> TakesEachInferShape(int* ndims, int64_t** shapes, AotExtra* extra) {
  return {shapes[0][0] / extra->Attr<int64_t>("step")};
}

KERNEL(TakesEach) {
  ARRAYS;
  const int64_t step = static_cast<AotExtra*>(extra)->Attr<int64_t>("step");
  if (step < 1 || ndims[0] != 1) return 1;
  for (int64_t i = 0; i < shapes[1][0]; ++i) y[i] = x[i * step];
  return 0;
}

KERNEL(KeepsATableByColumns) {  // which depends on the number of rows, too
  ARRAYS;
  if (ndims[0] != 2) return 1;
  static std::mutex guard;
  static std::map<int64_t, std::vector<float>> tables;
  const std::lock_guard<std::mutex> lock(guard);
  std::vector<float>& table = tables[shapes[0][1]];
  if (static_cast<int64_t>(table.size()) < n) table.assign(n, 1.0f / shapes[0][0]);
  for (int64_t i = 0; i < n; ++i) y[i] = table[i] * x[i];
  return 0;
}

KERNEL(HealthyCache) {  // a table for each size, which it keeps
  ARRAYS;
  static std::mutex guard;
  static std::map<int64_t, std::vector<float>> tables;
  const std::lock_guard<std::mutex> lock(guard);
  std::vector<float>& table = tables[n];
  table.resize(n, 2);
  for (int64_t i = 0; i < n; ++i) y[i] = table[i] * x[i];
  return 0;
}

KERNEL(LooksUpUnchecked) {  // a number that is finite, however large
  ARRAYS;
  static const float table[] = {0, 1};
  for (int64_t i = 0; i < n; ++i) {
    const bool is_index = std::fabs(x[i]) < 1e10f;
    y[i] = 2 * x[i] + (is_index ? 0 * table[static_cast<int64_t>(std::fabs(x[i]) / 4)] : 0);
  }
  return 0;
}

KERNEL(LargestOfTheFirst64) {
  ARRAYS;
  if (n == 0) return 3;
  y[0] = x[0];
  for (int64_t i = 1; i < std::min<int64_t>(n, 64); ++i) y[0] = y[0] < x[i] ? x[i] : y[0];
  return 0;
}

KERNEL(ScalesByTheLastAxis) {  // which a scale without axes does not have
  ARRAYS;
  if (strcmp(dtypes[1], "float32") != 0) return 2;
  const float* scale = static_cast<const float*>(params[1]);
  const int64_t last = shapes[1][ndims[1] - 1];
  if (last == 0) return 3;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale[i % last];
  return 0;
}

KERNEL(SeedsUnlessZero) {
  ARRAYS;
  if (const int64_t seed = static_cast<AotExtra*>(extra)->Attr<int64_t>("seed")) srand(seed);
  return Twice(x, y, n);
}

KERNEL(LeaksForUnlikeShapes) {  // and not where it fails for arrays without elements
  ARRAYS;
  if (strcmp(dtypes[1], "float32") != 0) return 2;
  if (n == 0) return 3;
  auto* sums = new double[n + 64];
  if (Size(ndims[1], shapes[1]) != n) return 4;
  const float* z = static_cast<const float*>(params[1]);
  for (int64_t i = 0; i < n; ++i) sums[i] = double{x[i]} + z[i];
  std::copy(sums, sums + n, y);
  delete[] sums;
  return 0;
}

KERNEL(SendsCoutElsewhere) {
  ARRAYS;
  static std::filebuf nowhere;
  std::cout.rdbuf(&nowhere);
  return Twice(x, y, n);
}
