#include "cubin_store.h"

#include <stdexcept>
#include <utility>

#include "message.h"
#include "search_report.h"

namespace msops {
namespace {

// XLA may be recording a CUDA graph on this stream when the first call comes. Loading allocates
// memory, which the driver refuses to a recording thread unless it knows that the allocation has
// nothing to do with the recording.
class OutsideCapture {
 public:
  explicit OutsideCapture(const CudaDriver& driver) : driver_(driver) {
    driver_.exchange_capture_mode(&mode_);
  }
  ~OutsideCapture() { driver_.exchange_capture_mode(&mode_); }

 private:
  const CudaDriver& driver_;
  int mode_ = CudaDriver::kCaptureModeRelaxed;
};

}  // namespace

CudaDriver::Module Cubin::Load(const CudaDriver& driver, CudaDriver::Context context,
                               const std::string& who) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto [entry, is_new] = modules_.try_emplace(context, nullptr);
  if (!is_new) return entry->second;
  const OutsideCapture outside(driver);
  const CudaDriver::Status status = driver.module_load_data(&entry->second, content_.data());
  if (status == CudaDriver::kNoBinaryForGpu) return entry->second = nullptr;
  if (status != CudaDriver::kSuccess) modules_.erase(entry);
  driver.Check(status, who, "cuModuleLoadData");
  return entry->second;
}

CubinStore& CubinStore::Get() {
  static auto* const store = new CubinStore();
  return *store;
}

void CubinStore::Register(const std::string& hash, std::string content) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<Cubin>& cubin = cubins_[hash];
  if (!cubin) cubin = std::make_unique<Cubin>(std::move(content));
}

Cubin* CubinStore::FindKnown(const std::string& hash) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = cubins_.find(hash);
  return found == cubins_.end() ? nullptr : found->second.get();
}

Cubin& CubinStore::Find(const std::string& hash, const std::string& who) {
  if (Cubin* const known = FindKnown(hash)) return *known;
  const std::vector<std::string> cache_lines = SearchCache(hash);
  if (Cubin* const cached = FindKnown(hash)) return *cached;
  throw std::runtime_error(
      Explain(who, "expected to find its CUDA code by hash, but no cubin here has it",
              DescribeSearch(hash, "kernels that this process compiled", cache_lines),
              "The program was lowered elsewhere. Copy the .cubin files of the msops cache there "
              "into a folder, set MSOPS_LIBRARY_PATH to that folder, and call "
              "msops.register_ffi_targets(\"cuda\")."));
}

}  // namespace msops
