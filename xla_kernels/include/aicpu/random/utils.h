// utils.h: seeds of random kernels.
#ifndef MSOPS_AICPU_RANDOM_UTILS_H_
#define MSOPS_AICPU_RANDOM_UTILS_H_

#include <cstdint>
#include <random>

namespace aicpu {
namespace random {

// Returns 64 bits that nobody can foretell.
inline uint64_t New64() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

// Returns the seed that two seeds make together; both 0 mean a new one each time.
inline uint64_t GetSeed(const uint64_t& global_seed, const uint64_t& ops_seed) {
  if (global_seed == 0 && ops_seed == 0) return New64();
  // The finaliser of splitmix64: seeds next to each other give streams far apart.
  uint64_t mixed = global_seed * 0x9e3779b97f4a7c15 + ops_seed;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

}  // namespace random
}  // namespace aicpu

#endif  // MSOPS_AICPU_RANDOM_UTILS_H_
