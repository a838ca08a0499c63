// Kernels that split their work; see test_parallel_for.py.
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "msops_parallel_for.h"

namespace {

#define KERNEL(name)                                                                         \
  extern "C" int name(int nparam, void** params, int* ndims, int64_t** shapes, const char**, \
                      void*, void* extra)

const float* In(void** params) { return static_cast<const float*>(params[0]); }

template <typename T>
T* Out(void** params, int nparam) {
  return static_cast<T*>(params[nparam - 1]);
}

}  // namespace

// y = sqrt(x), element by element.
KERNEL(ParallelSqrt) {
  if (ndims[0] != 1) return 1;
  const float* x = In(params);
  float* y = Out<float>(params, nparam);
  msops::ParallelFor(extra, shapes[0][0], 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = std::sqrt(x[i]);
  });
  return 0;
}

// How often each of the iterations ran, then how many threads took part.
KERNEL(Visits) {
  const int64_t n = shapes[1][0] - 1;
  auto* const visits = Out<int32_t>(params, nparam);
  for (int64_t i = 0; i <= n; ++i) visits[i] = 0;
  std::mutex mutex;
  std::condition_variable came;
  std::set<std::thread::id> threads;
  msops::ParallelFor(
      extra, n, static_cast<int64_t>(In(params)[0]), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++visits[i];
        std::unique_lock<std::mutex> lock(mutex);
        threads.insert(std::this_thread::get_id());
        came.notify_all();
        // On a busy machine the others come late: they must find a block.
        if (end - begin < n) {
          came.wait_for(lock, std::chrono::seconds(10), [&] { return threads.size() > 1; });
        }
      });
  visits[n] = static_cast<int32_t>(threads.size());
  return 0;
}

// The sum of i * j over a square, its rows split and each row split again.
KERNEL(Nested) {
  const int64_t n = shapes[0][0];
  std::atomic<int64_t> sum{0};
  msops::ParallelFor(extra, n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      msops::ParallelFor(extra, n, 1, [&, i](int64_t first, int64_t last) {
        for (int64_t j = first; j < last; ++j) sum += i * j;
      });
    }
  });
  *Out<float>(params, nparam) = static_cast<float>(sum);
  return 0;
}

// Loops in a row, each over what the one before wrote, turned round: y[i] counts them. Before some,
// helpers of the one before have had the time to leave; some blocks take long.
KERNEL(InARow) {
  const int64_t n = shapes[0][0];
  auto* const y = Out<int32_t>(params, nparam);
  std::vector<int32_t> other(n, 0);
  for (int64_t i = 0; i < n; ++i) y[i] = 0;
  for (int round = 0; round < 400; ++round) {
    const int32_t* const from = round % 2 ? other.data() : y;
    int32_t* const to = round % 2 ? y : other.data();
    if (round % 10 == 0) std::this_thread::sleep_for(std::chrono::microseconds(20 * (round % 50)));
    msops::ParallelFor(extra, n, 1 + round % 3, [=](int64_t begin, int64_t end) {
      if (begin > 0 && round % 8 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(10 * (round % 50)));
      }
      for (int64_t i = begin; i < end; ++i) to[i] = from[n - 1 - i] + 1;
    });
  }
  return 0;
}

KERNEL(Throws) {
  msops::ParallelFor(extra, 100, 1, [&](int64_t begin, int64_t) {
    if (begin == 50 || begin == 0) throw std::domain_error("no block may be round");
  });
  *Out<float>(params, nparam) = 1;
  return 0;
}

// Without `extra`, and from a thread of its own, loops are not split.
KERNEL(Unsplit) {
  auto* const calls = Out<int32_t>(params, nparam);
  calls[0] = calls[1] = 0;
  msops::ParallelFor(nullptr, 1000, 1, [&](int64_t, int64_t) { ++calls[0]; });
  std::thread([&] {
    msops::ParallelFor(extra, 1000, 1, [&](int64_t, int64_t) { ++calls[1]; });
  }).join();
  return 0;
}

// Asks for threads where none are lent: as long as the input, found by counting.
extern "C" std::vector<int64_t> CountedInferShape(int*, int64_t** shapes, void* extra) {
  int64_t count = 0;
  msops::ParallelFor(extra, shapes[0][0], 1,
                     [&](int64_t begin, int64_t end) { count += end - begin; });
  return {count};
}

KERNEL(Counted) { return ParallelSqrt(nparam, params, ndims, shapes, nullptr, nullptr, extra); }
