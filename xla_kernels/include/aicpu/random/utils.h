// utils.h: seeds of random kernels, and random bits as numbers.
//
// All are templates, so that the author of a kernel may define functions of these names: a function
// is preferred to a template.
#ifndef MSOPS_AICPU_RANDOM_UTILS_H_
#define MSOPS_AICPU_RANDOM_UTILS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "../cpu_context.h"
#include "../kernel_log.h"
#include "../status.h"
#include "../utils/philox_random.h"

namespace aicpu {
namespace random {

// Returns 64 bits that nobody can predict.
template <typename = void>
uint64_t New64() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

// Returns the seed that two seeds make together; both 0 mean a new one each time.
template <typename = void>
uint64_t GetSeed(const uint64_t& global_seed, const uint64_t& ops_seed) {
  if (global_seed == 0 && ops_seed == 0) return New64();
  const auto low = [](uint64_t bits) { return static_cast<uint32_t>(bits); };
  const auto high = [](uint64_t bits) { return static_cast<uint32_t>(bits >> 32); };
  // The key is that of MindSpore's kernels, so equal seeds draw equal numbers.
  PhiloxRandom mix({low(global_seed), high(global_seed), low(ops_seed), high(ops_seed)},
                   {0x3ec8f720, 0x02461e29});
  const auto block = mix();
  return static_cast<uint64_t>(block[1]) << 32 | block[0];
}

// Returns the lowest 23 bits as a number in [0, 1).
template <typename = void>
float Uint32ToFloat(CpuKernelContext&, const uint32_t& x) {
  return std::ldexp(static_cast<float>(x & 0x7fffff), -23);
}

// Returns the lowest 20 bits of x0, followed by those of x1, as a number in [0, 1).
template <typename = void>
double Uint64ToDouble(CpuKernelContext&, const uint32_t& x0, const uint32_t& x1) {
  return std::ldexp(static_cast<double>(static_cast<uint64_t>(x0 & 0xfffff) << 32 | x1), -52);
}

// Makes two normally distributed numbers of two uniform ones, by the Box-Muller transform.
template <typename T>
void BoxMuller(T u, T v, T* sine, T* cosine) {
  const T radius = std::sqrt(-2 * std::log(std::max(u, static_cast<T>(1.0e-7))));
  const T angle = static_cast<T>(2 * 3.14159265358979323846) * v;
  *sine = radius * std::sin(angle);
  *cosine = radius * std::cos(angle);
}

template <typename = void>
void BoxMullerFloat(CpuKernelContext& ctx, const uint32_t& x0, const uint32_t& x1, float* f0,
                    float* f1) {
  BoxMuller(Uint32ToFloat(ctx, x0), Uint32ToFloat(ctx, x1), f0, f1);
}

template <typename = void>
void BoxMullerDouble(CpuKernelContext& ctx, const uint32_t& x0, const uint32_t& x1,
                     const uint32_t& x2, const uint32_t& x3, double* d0, double* d1) {
  BoxMuller(Uint64ToDouble(ctx, x0, x1), Uint64ToDouble(ctx, x2, x3), d0, d1);
}

// Returns the seed of a call, and writes that of the next one. Two inputs of uint64 hold the state:
// how often the kernel ran (0 or 1), and the seed of this call if that is not 0.
template <typename = void>
uint64_t GetCpuKernelRandomStates(CpuKernelContext& ctx, const uint32_t& counts_index,
                                  const uint32_t& states_index, const uint64_t& seed,
                                  const uint64_t& seed2, const std::string& kernel_name,
                                  uint32_t* kernel_ret) {
  const auto data = [&](uint32_t index) -> uint64_t* {
    Tensor* const input = ctx.Input(index);
    const bool is_state =
        input != nullptr && input->GetData() != nullptr && input->GetDataSize() >= sizeof(uint64_t);
    return is_state ? static_cast<uint64_t*>(input->GetData()) : nullptr;
  };
  uint64_t* const counts = data(counts_index);
  uint64_t* const states = data(states_index);
  if (counts == nullptr || states == nullptr) {
    CUST_KERNEL_LOG_ERROR(ctx, "[%s] needs counts and states of uint64 as inputs %u and %u.",
                          kernel_name.c_str(), counts_index, states_index);
    *kernel_ret = KERNEL_STATUS_INNER_ERROR;
    return 0;
  }
  const uint64_t current = *counts == 0 ? GetSeed(seed, seed2) : *states;
  *counts = 1;
  *states = std::mt19937(static_cast<std::mt19937::result_type>(current))();
  return current;
}

// Adds axes of size 1 in front, until there are `size`.
template <typename = void>
void NormalizeShape(std::vector<uint64_t>* shape, uint64_t size) {
  if (shape->size() < size) shape->insert(shape->begin(), size - shape->size(), 1);
}

// Broadcasts three shapes, each to the rank of the result. Appends that to `out_shape`, multiplies
// `count` by its size, and returns 1; returns 0 if the shapes do not match.
template <typename = void>
uint64_t InferOutputShape(std::vector<uint64_t>* out_shape, std::vector<uint64_t>* shape,
                          std::vector<uint64_t>* mean_shape, std::vector<uint64_t>* stddev_shape,
                          uint64_t* count) {
  std::vector<uint64_t>* const shapes[] = {shape, mean_shape, stddev_shape};
  const size_t rank = std::max({shape->size(), mean_shape->size(), stddev_shape->size()});
  for (auto* const given : shapes) NormalizeShape(given, rank);
  for (size_t axis = 0; axis < rank; ++axis) {
    uint64_t size = 0;
    for (const auto* const given : shapes) size = std::max(size, (*given)[axis]);
    for (const auto* const given : shapes) {
      if ((*given)[axis] != 1 && (*given)[axis] != size) return 0;
    }
    out_shape->push_back(size);
    *count *= size;
  }
  return 1;
}

}  // namespace random
}  // namespace aicpu

#endif  // MSOPS_AICPU_RANDOM_UTILS_H_
