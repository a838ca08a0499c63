#include "launch_plan.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "message.h"

namespace msops {
namespace {

enum Kind : int64_t { kClear, kCopy, kLaunch, kKindCount };

// Number of words of a step with its kind, without a launch's arguments.
constexpr size_t kLength[kKindCount] = {3, 4, 5};
constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxThreads = 1024;

bool IsBetween(int64_t value, int64_t least, int64_t most) {
  return least <= value && value <= most;
}

}  // namespace

LaunchPlan::LaunchPlan(std::vector<int64_t> words, size_t function_count, size_t buffer_count,
                       std::string who)
    : words_(std::move(words)),
      function_count_(function_count),
      buffer_count_(buffer_count),
      who_(std::move(who)) {
  for (size_t position = 0; position != words_.size();) {
    const size_t next = CheckStep(position);
    if (next == position) {
      throw std::runtime_error(
          Explain(who_, "word " + std::to_string(position) + " of its launch plan begins no step",
                  {}, "Lower the program again with this version of msops."));
    }
    position = next;
  }
}

size_t LaunchPlan::CheckStep(size_t position) const {
  const int64_t* const word = &words_[position];
  const size_t left = words_.size() - position;
  if (!IsBetween(word[0], 0, kKindCount - 1) || kLength[word[0]] > left) return position;
  const auto is_buffer = [&](int64_t value) {
    return IsBetween(value, 0, static_cast<int64_t>(buffer_count_) - 1);
  };
  const size_t next = position + kLength[word[0]];
  switch (word[0]) {
    case kClear:
      return is_buffer(word[1]) && word[2] >= 0 ? next : position;
    case kCopy:
      return is_buffer(word[1]) && is_buffer(word[2]) && word[3] >= 0 ? next : position;
    default: {
      const auto rest = static_cast<int64_t>(words_.size() - next);
      const bool is_launch = IsBetween(word[1], 0, static_cast<int64_t>(function_count_) - 1) &&
                             IsBetween(word[2], 1, kMaxBlocks) &&
                             IsBetween(word[3], 1, kMaxThreads) && IsBetween(word[4], 0, rest);
      if (!is_launch || !std::all_of(word + 5, word + 5 + word[4], is_buffer)) return position;
      return next + word[4];
    }
  }
}

void LaunchPlan::Run(const CudaDriver& driver, const std::vector<CudaDriver::Function>& functions,
                     void* const* buffers, CudaDriver::Stream stream) const {
  std::vector<void*> arguments;
  for (size_t position = 0; position != words_.size();) {
    const int64_t* const word = &words_[position];
    position += kLength[word[0]];
    switch (word[0]) {
      case kClear:
        driver.Check(driver.memset_bytes(CudaDriver::Address(buffers[word[1]]), 0, word[2], stream),
                     who_, "cuMemsetD8Async");
        break;
      case kCopy:
        // A result that is a parameter may have that one's buffer.
        if (buffers[word[1]] == buffers[word[2]]) break;
        driver.Check(driver.copy_on_device(CudaDriver::Address(buffers[word[1]]),
                                           CudaDriver::Address(buffers[word[2]]), word[3], stream),
                     who_, "cuMemcpyDtoDAsync");
        break;
      default: {
        arguments.clear();
        for (int64_t i = 0; i < word[4]; ++i) {
          // The driver reads each argument through its address, and before the launch returns.
          arguments.push_back(const_cast<void**>(&buffers[word[5 + i]]));
        }
        const auto blocks = static_cast<unsigned>(word[2]);
        const auto threads = static_cast<unsigned>(word[3]);
        driver.Check(driver.launch_kernel(functions[word[1]], blocks, 1, 1, threads, 1, 1, 0,
                                          stream, arguments.data(), nullptr),
                     who_, "cuLaunchKernel");
        position += word[4];
      }
    }
  }
}

}  // namespace msops
