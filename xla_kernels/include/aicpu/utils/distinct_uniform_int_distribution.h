// distinct_uniform_int_distribution.h: integers of an interval, none of them twice.
#ifndef MSOPS_AICPU_UTILS_DISTINCT_UNIFORM_INT_DISTRIBUTION_H_
#define MSOPS_AICPU_UTILS_DISTINCT_UNIFORM_INT_DISTRIBUTION_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <unordered_set>

namespace aicpu {

template <typename IntType = int>
class DistinctUniformIntDistribution {
 public:
  using ResultType = IntType;

  // Draws from [inf, sup].
  DistinctUniformIntDistribution(ResultType inf, ResultType sup)
      : range_(Count(inf, sup)), distribution_(inf, sup) {}

  // From here on numbers drawn before may come again.
  void Reset() {
    drawn_.clear();
    distribution_.reset();
  }

  template <typename Generator>
  ResultType exec(Generator& engine) {
    if (drawn_.size() >= range_) {
      throw std::out_of_range("DistinctUniformIntDistribution: every number was drawn already");
    }
    ResultType number;
    do {
      number = distribution_(engine);
    } while (!drawn_.insert(number).second);
    return number;
  }

 private:
  // Of all 2^64 numbers it counts one less, which no one draws either.
  static uint64_t Count(ResultType inf, ResultType sup) {
    const uint64_t last = static_cast<uint64_t>(sup) - static_cast<uint64_t>(inf);
    return sup < inf ? 0 : std::max(last, last + 1);
  }

  const uint64_t range_;
  std::uniform_int_distribution<ResultType> distribution_;
  std::unordered_set<ResultType> drawn_;
};

}  // namespace aicpu

#endif  // MSOPS_AICPU_UTILS_DISTINCT_UNIFORM_INT_DISTRIBUTION_H_
