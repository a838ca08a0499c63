// philox_random.h: random bits by counting: each block of four depends on a seed and its number
// only, so threads may start anywhere.
//
// Source: J. K. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011, Philox4x32-10.
#ifndef MSOPS_AICPU_UTILS_PHILOX_RANDOM_H_
#define MSOPS_AICPU_UTILS_PHILOX_RANDOM_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace aicpu {
namespace random {

constexpr size_t kIndex0 = 0;
constexpr size_t kIndex1 = 1;
constexpr size_t kIndex2 = 2;
constexpr size_t kIndex3 = 3;

class PhiloxRandom {
 public:
  using ResultElementType = uint32_t;
  static constexpr int kKeyCount = 2;
  static constexpr int kResultElementCount = 4;
  static constexpr int kElementCost = 10;
  static constexpr int kMoveStepInBit = 32;
  using KeyArr = std::array<uint32_t, kKeyCount>;
  using ResultTypeArr = std::array<uint32_t, kResultElementCount>;

  PhiloxRandom() = default;
  // The first seed is the key, the second the upper half of the first block's number.
  explicit PhiloxRandom(uint64_t seed_low, uint64_t seed_high = 0)
      : key_{Low(seed_low), High(seed_low)}, counter_{0, 0, Low(seed_high), High(seed_high)} {}

  PhiloxRandom(ResultTypeArr counter, KeyArr key) : key_(key), counter_(counter) {}

  // Leaves out `count` blocks.
  void Skip(uint64_t count) {
    const uint64_t low = (static_cast<uint64_t>(counter_[1]) << 32 | counter_[0]) + count;
    counter_[0] = Low(low);
    counter_[1] = High(low);
    if (low < count && ++counter_[2] == 0) ++counter_[3];
  }

  // Returns the next block.
  ResultTypeArr operator()() {
    ResultTypeArr block = counter_;
    KeyArr key = key_;
    for (int round = 0; round < 10; ++round) {
      const uint64_t first = uint64_t{0xD2511F53} * block[0];
      const uint64_t second = uint64_t{0xCD9E8D57} * block[2];
      block = {High(second) ^ block[1] ^ key[0], Low(second), High(first) ^ block[3] ^ key[1],
               Low(first)};
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
    Skip(1);
    return block;
  }

 private:
  static constexpr uint32_t Low(uint64_t bits) { return static_cast<uint32_t>(bits); }
  static constexpr uint32_t High(uint64_t bits) { return static_cast<uint32_t>(bits >> 32); }

  KeyArr key_{};
  ResultTypeArr counter_{};
};

}  // namespace random
}  // namespace aicpu

#endif  // MSOPS_AICPU_UTILS_PHILOX_RANDOM_H_
