#include "workspace_pool.h"

#include <cstdlib>
#include <new>

namespace msops {
namespace {

// More blocks than threads that run kernels at once are never needed; the byte limit keeps one
// large workspace from staying with the process for ever.
constexpr size_t kMaxFreeBlocks = 64;
constexpr size_t kMaxFreeBytes = size_t{256} << 20;

}  // namespace

WorkspacePool& WorkspacePool::Get() {
  static auto* const pool = new WorkspacePool();
  return *pool;
}

// Reserved here so that Release cannot fail.
WorkspacePool::WorkspacePool() { free_.reserve(kMaxFreeBlocks); }

WorkspacePool::Block WorkspacePool::Acquire(size_t size_bytes) {
  const size_t rounded = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (rounded < size_bytes) throw std::bad_alloc();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    size_t best = free_.size();
    for (size_t i = 0; i < free_.size(); ++i) {
      // A block more than twice too large is left for a call that needs it.
      const bool fits = free_[i].size_bytes >= rounded && free_[i].size_bytes / 2 <= rounded;
      if (fits && (best == free_.size() || free_[i].size_bytes < free_[best].size_bytes)) best = i;
    }
    if (best != free_.size()) {
      const Block block = free_[best];
      free_.erase(free_.begin() + best);
      free_bytes_ -= block.size_bytes;
      return block;
    }
  }
  void* const data = std::aligned_alloc(kAlignment, rounded);
  if (!data) throw std::bad_alloc();
  return {data, rounded};
}

void WorkspacePool::Release(Block block) noexcept {
  if (block.size_bytes > kMaxFreeBytes) {
    std::free(block.data);
    return;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  // The block given back longest ago makes room: sizes that are no longer asked for leave first.
  while (free_.size() == kMaxFreeBlocks || free_bytes_ > kMaxFreeBytes - block.size_bytes) {
    std::free(free_.front().data);
    free_bytes_ -= free_.front().size_bytes;
    free_.erase(free_.begin());
  }
  free_.push_back(block);
  free_bytes_ += block.size_bytes;
}

}  // namespace msops
