#include "runner_store.h"

#include <new>
#include <stdexcept>
#include <utility>

#include "message.h"

namespace msops {
namespace {

// What one launch may ask for, and what it says when it fails.
struct Context {
  RunnerBinding::Allocator* allocator;
  std::string message;
};

void* Allocate(void* context, size_t size_bytes) {
  try {
    return static_cast<Context*>(context)->allocator->Allocate(size_bytes);
  } catch (const std::bad_alloc&) {
    // It is the module's to say, on the other side of a C function.
    return nullptr;
  }
}

void Fail(void* context, const char* message) {
  static_cast<Context*>(context)->message = AsUtf8(message ? message : "");
}

}  // namespace

RunnerBinding::RunnerBinding(std::shared_ptr<const Runner> runner,
                             const std::vector<RunnerArray>& arrays, size_t input_count)
    : runner_(std::move(runner)) {
  std::vector<MsopsArray> views;
  views.reserve(arrays.size());
  for (const RunnerArray& array : arrays) {
    views.push_back({array.type_id, static_cast<int64_t>(array.shape.size()), array.shape.data(),
                     array.strides.empty() ? nullptr : array.strides.data(), array.offset});
  }
  const MsopsRunner& row = runner_->row();
  binding_ = row.bind(row.self, views.data(), input_count, views.size() - input_count);
}

void RunnerBinding::Launch(void* const* data, void* stream, Allocator* allocator) const {
  Context context{allocator, {}};
  const MsopsExecution execution = {data, stream, &context, Allocate, Fail};
  if (!runner_->row().launch(binding_, &execution)) throw std::runtime_error(context.message);
}

RunnerStore& RunnerStore::Get() {
  static RunnerStore* const store = new RunnerStore;
  return *store;
}

void RunnerStore::Register(const std::string& id, const std::shared_ptr<const Runner>& runner) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // Entries of what is gone are swept whenever the table has doubled since the last time.
  if (runners_.size() > 2 * swept_size_ + 64) {
    for (auto entry = runners_.begin(); entry != runners_.end();) {
      entry = entry->second.expired() ? runners_.erase(entry) : std::next(entry);
    }
    swept_size_ = runners_.size();
  }
  runners_[id] = runner;
}

std::shared_ptr<const Runner> RunnerStore::Find(const std::string& id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = runners_.find(id);
  return found == runners_.end() ? nullptr : found->second.lock();
}

size_t RunnerStore::CountAlive() {
  const std::lock_guard<std::mutex> lock(mutex_);
  size_t count = 0;
  for (const auto& [id, runner] : runners_) count += !runner.expired();
  return count;
}

}  // namespace msops
