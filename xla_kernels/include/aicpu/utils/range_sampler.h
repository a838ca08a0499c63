// range_sampler.h: draws candidates from [0, range), and says how often each is to be expected.
//
// Source: S. Jean et al., "On Using Very Large Target Vocabulary for Neural Machine Translation",
// 2015; the expected counts of distinct draws are those of as many draws as it took.
#ifndef MSOPS_AICPU_UTILS_RANGE_SAMPLER_H_
#define MSOPS_AICPU_UTILS_RANGE_SAMPLER_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <unordered_set>
#include <vector>

#include "../random/utils.h"
#include "kernel_util.h"

namespace aicpu {

class RangeSampler {
 public:
  explicit RangeSampler(int64_t range) : range_(range) {}
  virtual ~RangeSampler() = default;

  // Returns one candidate.
  virtual int64_t Sample(CpuKernelContext& ctx) const = 0;
  virtual float Probability(int64_t value) const = 0;
  int64_t range() { return range_; }

  // Fills `batch` with candidates, which differ from one another if `unique`, and writes how often
  // each of them and of `extras` is to be expected in a batch. Seed 0 means a new one.
  void SampleBatchGetExpectedCount(CpuKernelContext& ctx, bool unique, int64_t seed,
                                   std::vector<int64_t>* batch,
                                   std::vector<float>* batch_expected_count,
                                   std::vector<int64_t> extras,
                                   std::vector<float>* extras_expected_count) const {
    SampleBatchGetExpectedCountAvoid(ctx, unique, seed, batch, batch_expected_count, extras,
                                     extras_expected_count, {});
  }

  // The same without the candidates of `avoided_values`.
  virtual void SampleBatchGetExpectedCountAvoid(CpuKernelContext& ctx, bool unique, int64_t seed,
                                                std::vector<int64_t>* batch,
                                                std::vector<float>* batch_expected_count,
                                                std::vector<int64_t> extras,
                                                std::vector<float>* extras_expected_count,
                                                std::vector<int64_t> avoided_values) const {
    std::unordered_set<int64_t> taken;
    for (const int64_t value : avoided_values) {
      if (value >= 0 && value < range_) taken.insert(value);
    }
    const auto free_count = range_ - static_cast<int64_t>(taken.size());
    if (free_count <= 0 || (unique && static_cast<int64_t>(batch->size()) > free_count)) {
      CUST_KERNEL_LOG_ERROR(ctx, "%zu candidates cannot be drawn from %lld values.", batch->size(),
                            static_cast<long long>(std::max<int64_t>(free_count, 0)));
      batch->clear();
    }
    engine_.seed(random::GetSeed(static_cast<uint64_t>(seed), 0));
    int64_t tries = 0;
    for (int64_t& value : *batch) {
      do {
        value = Sample(ctx);
        ++tries;
      } while (taken.count(value) != 0);
      if (unique) taken.insert(value);
    }
    const auto drawn = static_cast<double>(batch->size());
    const auto expected = [&](int64_t value) {
      const double p = Probability(value);
      return static_cast<float>(unique ? -std::expm1(static_cast<double>(tries) * std::log1p(-p))
                                       : p * drawn);
    };
    std::transform(batch->begin(), batch->end(), batch_expected_count->begin(), expected);
    std::transform(extras.begin(), extras.end(), extras_expected_count->begin(), expected);
  }

 protected:
  // Returns a number of [0, 1).
  double Draw() const { return std::generate_canonical<double, 53>(engine_); }

  const int64_t range_;

 private:
  mutable std::mt19937_64 engine_;
};

// Each value alike.
class UniformSampler : public RangeSampler {
 public:
  explicit UniformSampler(int64_t range) : RangeSampler(range) {}
  int64_t Sample(CpuKernelContext&) const override {
    return std::min(static_cast<int64_t>(Draw() * static_cast<double>(range_)), range_ - 1);
  }
  float Probability(int64_t) const override { return 1.0F / static_cast<float>(range_); }
};

// A value k with the probability log((k + 2) / (k + 1)) / log(range + 1), as words by their rank.
class LogUniformSampler : public RangeSampler {
 public:
  explicit LogUniformSampler(int64_t range)
      : RangeSampler(range), log_range_(std::log1p(static_cast<double>(range))) {}
  int64_t Sample(CpuKernelContext&) const override {
    return std::min(static_cast<int64_t>(std::exp(Draw() * log_range_)) - 1, range_ - 1);
  }
  float Probability(int64_t value) const override {
    return static_cast<float>(std::log1p(1.0 / static_cast<double>(value + 1)) / log_range_);
  }

 private:
  const double log_range_;
};

}  // namespace aicpu

#endif  // MSOPS_AICPU_UTILS_RANGE_SAMPLER_H_
