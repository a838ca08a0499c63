#include "input_copies.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace msops {
namespace {

// So many bytes are copied sooner than a kernel is started.
constexpr size_t kSmallBytes = 4096;
constexpr int kCheckedCalls = 8;

}  // namespace

InputWrites& InputWrites::Of(const std::string& library_hash, const std::string& type) {
  static auto* const mutex = new std::mutex;
  static auto* const records =
      new std::map<std::pair<std::string, std::string>, std::unique_ptr<InputWrites>>;
  const std::lock_guard<std::mutex> lock(*mutex);
  auto& record = (*records)[{library_hash, type}];
  if (!record) record = std::make_unique<InputWrites>();
  return *record;
}

bool InputWrites::StartCheck() {
  return calls_.load(std::memory_order_relaxed) < kCheckedCalls &&
         calls_.fetch_add(1, std::memory_order_relaxed) < kCheckedCalls;
}

InputCopies::InputCopies(InputWrites* writes, const std::vector<size_t>& sizes_bytes,
                         void** parameters, size_t parameter_count)
    : writes_(writes),
      checks_(writes->StartCheck()),
      copies_(Choose(*writes, checks_, sizes_bytes, parameters, parameter_count)),
      memory_(EndOf(copies_)) {
  for (const Copy& copy : copies_) {
    parameters[copy.input] =
        std::memcpy(memory_.data() + copy.offset, copy.original, copy.size_bytes);
  }
}

std::vector<size_t> InputCopies::FindWrites() const {
  std::vector<size_t> found;
  for (const Copy& copy : copies_) {
    const bool is_checked = checks_ && !writes_->IsWritten(copy.input);
    if (is_checked &&
        std::memcmp(memory_.data() + copy.offset, copy.original, copy.size_bytes) != 0 &&
        writes_->Note(copy.input)) {
      found.push_back(copy.input);
    }
  }
  return found;
}

std::vector<InputCopies::Copy> InputCopies::Choose(const InputWrites& writes, bool checks,
                                                   const std::vector<size_t>& sizes_bytes,
                                                   void** parameters, size_t parameter_count) {
  std::vector<Copy> copies;
  for (size_t i = 0; i < sizes_bytes.size(); ++i) {
    void** const outputs = parameters + sizes_bytes.size();
    const bool is_output = std::find(outputs, parameters + parameter_count, parameters[i]) !=
                           parameters + parameter_count;
    const bool is_needed = checks || sizes_bytes[i] <= kSmallBytes || writes.IsWritten(i);
    if (sizes_bytes[i] == 0 || is_output || !is_needed) continue;
    copies.push_back({i, parameters[i], sizes_bytes[i], EndOf(copies)});
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
