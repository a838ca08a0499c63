// workspace_pool.h: scratch memory for kernels on the CPU, where XLA has no allocator for handlers.
#ifndef MSOPS_WORKSPACE_POOL_H_
#define MSOPS_WORKSPACE_POOL_H_

#include <cstddef>
#include <mutex>
#include <vector>

namespace msops {

// Keeps blocks that calls have given back, so that a call in a loop allocates nothing. Safe under
// threads: a block has one holder at a time. Contents are not cleared.
class WorkspacePool {
 public:
  static constexpr size_t kAlignment = 64;

  struct Block {
    void* data = nullptr;
    size_t size_bytes = 0;
  };

  // The pool of the process; it outlives every thread that may still run a kernel at exit.
  static WorkspacePool& Get();

  // Returns a block of at least `size_bytes`. Throws std::bad_alloc if there is no such memory.
  Block Acquire(size_t size_bytes);

  // Takes back a block that Acquire returned.
  void Release(Block block) noexcept;

 private:
  WorkspacePool();

  std::mutex mutex_;
  std::vector<Block> free_;
  size_t free_bytes_ = 0;
};

// Holds a block for the duration of one call.
class WorkspaceLease {
 public:
  explicit WorkspaceLease(size_t size_bytes)
      : block_(size_bytes ? WorkspacePool::Get().Acquire(size_bytes) : WorkspacePool::Block{}) {}
  ~WorkspaceLease() {
    if (block_.data) WorkspacePool::Get().Release(block_);
  }
  WorkspaceLease(const WorkspaceLease&) = delete;
  WorkspaceLease& operator=(const WorkspaceLease&) = delete;

  char* data() const { return static_cast<char*>(block_.data); }

 private:
  WorkspacePool::Block block_;
};

}  // namespace msops

#endif  // MSOPS_WORKSPACE_POOL_H_
