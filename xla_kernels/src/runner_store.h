// runner_store.h: the runners of extension modules that programs refer to.
//
// A program names a runner by an id that is the same in every process that runs the same script
// (_extension/runners.py makes it). An object of this process stands behind it: whoever traced the
// program owns it, a compiled program shares in it, and the store only finds it.
#ifndef MSOPS_RUNNER_STORE_H_
#define MSOPS_RUNNER_STORE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "../include/msops_extension/table.h"
#include "workspace_pool.h"

namespace msops {

// A runner of a module, destroyed with its last owner.
class Runner {
 public:
  explicit Runner(MsopsRunner row) : row_(row) {}
  ~Runner() { row_.destroy(row_.self); }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  const MsopsRunner& row() const { return row_; }

 private:
  const MsopsRunner row_;
};

// An array of a runner's call, but for its address.
struct RunnerArray {
  int32_t type_id;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements; empty for a dense array
  int64_t offset;
};

// A runner at one call site.
class RunnerBinding {
 public:
  // `arrays` holds the inputs, then the outputs.
  RunnerBinding(std::shared_ptr<const Runner> runner, const std::vector<RunnerArray>& arrays,
                size_t input_count);
  ~RunnerBinding() { runner_->row().unbind(binding_); }
  RunnerBinding(const RunnerBinding&) = delete;
  RunnerBinding& operator=(const RunnerBinding&) = delete;

  // Gives the kernel its workspace, or null.
  class Allocator {
   public:
    virtual void* Allocate(size_t size_bytes) = 0;

   protected:
    ~Allocator() = default;
  };

  // Launches on memory; throws std::runtime_error with what the runner said if it failed.
  void Launch(void* const* data, void* stream, Allocator* allocator) const;

 private:
  const std::shared_ptr<const Runner> runner_;
  void* binding_;
};

// Workspaces on the CPU, for one launch.
class PoolAllocator final : public RunnerBinding::Allocator {
 public:
  void* Allocate(size_t size_bytes) override {
    lease_.emplace(size_bytes);
    return lease_->data();
  }

 private:
  std::optional<WorkspaceLease> lease_;
};

class RunnerStore {
 public:
  // The store of the process; never destroyed, as programs may run at exit.
  static RunnerStore& Get();

  void Register(const std::string& id, const std::shared_ptr<const Runner>& runner);

  // Returns the runner with this id, or null if there is none or it is gone.
  std::shared_ptr<const Runner> Find(const std::string& id);

  // How many of the registered runners are still there.
  size_t CountAlive();

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<const Runner>> runners_;
  size_t swept_size_ = 0;
};

}  // namespace msops

#endif  // MSOPS_RUNNER_STORE_H_
