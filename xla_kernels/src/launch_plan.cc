#include "launch_plan.h"

#include <limits>
#include <stdexcept>
#include <utility>

#include "message.h"

namespace msops {
namespace {

enum Kind : int64_t { kClear, kCopy, kLaunch, kRepeat, kKindCount };

// Number of words of a step with its kind, without a launch's arguments and a loop's body.
constexpr size_t kLength[kKindCount] = {3, 4, 5, 4};
constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxThreads = 1024;

bool IsBetween(int64_t value, int64_t least, int64_t most) {
  return least <= value && value <= most;
}

}  // namespace

// What one run passes down: the values of the loops around a step grow and shrink in `loops`.
struct LaunchPlan::Frame {
  const CudaDriver& driver;
  const std::vector<CudaDriver::Function>& functions;
  void* const* buffers;
  CudaDriver::Stream stream;
  std::vector<int32_t> loops;
  std::vector<void*> arguments;
};

LaunchPlan::LaunchPlan(std::vector<int64_t> words, size_t function_count, size_t buffer_count,
                       std::string who)
    : words_(std::move(words)),
      function_count_(function_count),
      buffer_count_(buffer_count),
      who_(std::move(who)) {
  CheckSteps(0, words_.size(), 0);
}

void LaunchPlan::CheckSteps(size_t begin, size_t end, size_t depth) const {
  for (size_t position = begin; position != end;) {
    const size_t next = CheckStep(position, end, depth);
    if (next == position) {
      throw std::runtime_error(
          Explain(who_, "word " + std::to_string(position) + " of its launch plan begins no step",
                  {}, "Lower the program again with this version of msops."));
    }
    position = next;
  }
}

size_t LaunchPlan::CheckStep(size_t position, size_t end, size_t depth) const {
  const size_t wrong = position;
  const int64_t* const word = &words_[position];
  if (!IsBetween(word[0], 0, kKindCount - 1) || kLength[word[0]] > end - position) return wrong;
  const auto is_buffer = [&](int64_t value) {
    return IsBetween(value, 0, static_cast<int64_t>(buffer_count_) - 1);
  };
  position += kLength[word[0]];
  const auto rest = static_cast<int64_t>(end - position);
  switch (word[0]) {
    case kClear:
      return is_buffer(word[1]) && word[2] >= 0 ? position : wrong;
    case kCopy:
      return is_buffer(word[1]) && is_buffer(word[2]) && word[3] >= 0 ? position : wrong;
    case kLaunch: {
      if (!IsBetween(word[1], 0, static_cast<int64_t>(function_count_) - 1) ||
          !IsBetween(word[2], 1, kMaxBlocks) || !IsBetween(word[3], 1, kMaxThreads) ||
          !IsBetween(word[4], 0, rest)) {
        return wrong;
      }
      for (int64_t i = 0; i < word[4]; ++i) {
        const int64_t argument = words_[position + i];
        if (!is_buffer(argument) && !IsBetween(argument, -static_cast<int64_t>(depth), -1)) {
          return wrong;
        }
      }
      return position + word[4];
    }
    default:
      constexpr int64_t least = std::numeric_limits<int32_t>::min();
      constexpr int64_t most = std::numeric_limits<int32_t>::max();
      if (!IsBetween(word[1], least, most) || !IsBetween(word[2], least, most) ||
          !IsBetween(word[3], 0, rest)) {
        return wrong;
      }
      CheckSteps(position, position + word[3], depth + 1);
      return position + word[3];
  }
}

void LaunchPlan::Run(const CudaDriver& driver, const std::vector<CudaDriver::Function>& functions,
                     void* const* buffers, CudaDriver::Stream stream) const {
  Frame frame{driver, functions, buffers, stream, {}, {}};
  RunSteps(0, words_.size(), frame);
}

void LaunchPlan::RunSteps(size_t begin, size_t end, Frame& frame) const {
  const CudaDriver& driver = frame.driver;
  for (size_t position = begin; position != end;) {
    const int64_t* const word = &words_[position];
    position += kLength[word[0]];
    switch (word[0]) {
      case kClear:
        driver.Check(driver.memset_bytes(CudaDriver::Address(frame.buffers[word[1]]), 0, word[2],
                                         frame.stream),
                     who_, "cuMemsetD8Async");
        break;
      case kCopy:
        // A result that is a parameter may lie in that one's buffer.
        if (frame.buffers[word[1]] == frame.buffers[word[2]]) break;
        driver.Check(driver.copy_on_device(CudaDriver::Address(frame.buffers[word[1]]),
                                           CudaDriver::Address(frame.buffers[word[2]]), word[3],
                                           frame.stream),
                     who_, "cuMemcpyDtoDAsync");
        break;
      case kLaunch:
        Launch(word + 1, frame);
        position += word[4];
        break;
      default:
        for (int64_t value = word[1]; value < word[2]; ++value) {
          frame.loops.push_back(static_cast<int32_t>(value));
          RunSteps(position, position + word[3], frame);
          frame.loops.pop_back();
        }
        position += word[3];
    }
  }
}

void LaunchPlan::Launch(const int64_t* operands, Frame& frame) const {
  frame.arguments.clear();
  for (int64_t i = 0; i < operands[3]; ++i) {
    const int64_t argument = operands[4 + i];
    // The driver reads each argument through its address, and before the launch returns.
    const void* const address = argument < 0 ? static_cast<const void*>(&frame.loops[-1 - argument])
                                             : &frame.buffers[argument];
    frame.arguments.push_back(const_cast<void*>(address));
  }
  const auto blocks = static_cast<unsigned>(operands[1]);
  const auto threads = static_cast<unsigned>(operands[2]);
  frame.driver.Check(
      frame.driver.launch_kernel(frame.functions[operands[0]], blocks, 1, 1, threads, 1, 1, 0,
                                 frame.stream, frame.arguments.data(), nullptr),
      who_, "cuLaunchKernel");
}

}  // namespace msops
