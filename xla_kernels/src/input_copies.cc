#include "input_copies.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "parallel_for.h"

namespace msops {
namespace {

// A thread copies so much while another one wakes up.
constexpr int64_t kGrainBytes = 256 << 10;

struct Range {
  char* to;
  const char* from;
};

int CopyRange(void* argument, int64_t begin, int64_t end) {
  const Range& range = *static_cast<Range*>(argument);
  std::memcpy(range.to + begin, range.from + begin, static_cast<size_t>(end - begin));
  return 0;
}

}  // namespace

InputCopies::InputCopies(const std::vector<size_t>& sizes_bytes, void** parameters,
                         size_t parameter_count)
    : copies_(Choose(sizes_bytes, parameters, parameter_count)), memory_(EndOf(copies_)) {
  for (const Copy& copy : copies_) {
    Range range{memory_.data() + copy.offset, copy.original};
    ParallelFor(0, static_cast<int64_t>(copy.size_bytes), kGrainBytes, &CopyRange, &range);
    parameters[copy.input] = range.to;
  }
}

std::vector<InputCopies::Copy> InputCopies::Choose(const std::vector<size_t>& sizes_bytes,
                                                   void** parameters, size_t parameter_count) {
  std::vector<Copy> copies;
  void** const outputs = parameters + sizes_bytes.size();
  void** const end = parameters + parameter_count;
  for (size_t i = 0; i < sizes_bytes.size(); ++i) {
    const bool is_output = std::find(outputs, end, parameters[i]) != end;
    if (sizes_bytes[i] == 0 || is_output) continue;
    copies.push_back({i, static_cast<const char*>(parameters[i]), sizes_bytes[i], EndOf(copies)});
  }
  return copies;
}

size_t InputCopies::EndOf(const std::vector<Copy>& copies) {
  if (copies.empty()) return 0;
  const size_t alignment = WorkspacePool::kAlignment;
  const size_t end = copies.back().offset + copies.back().size_bytes;
  return (end + alignment - 1) / alignment * alignment;
}

}  // namespace msops
