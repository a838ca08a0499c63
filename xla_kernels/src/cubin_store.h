// cubin_store.h: the compiled CUDA modules of this process, found by the hash of their content.
//
// As with libraries (library_store.h), programs name a module by its hash alone.
#ifndef MSOPS_CUBIN_STORE_H_
#define MSOPS_CUBIN_STORE_H_

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "cuda_driver.h"

namespace msops {

// One cubin, and what became of it on each device. It stays loaded for the life of the process:
// compiled programs, and CUDA graphs that XLA recorded, refer to its functions.
class Cubin {
 public:
  explicit Cubin(std::string content) : content_(std::move(content)) {}

  // Returns the module on the device of `context`, which must be current; loads it on first use.
  // Null if it was compiled for devices of another kind. Throws std::runtime_error.
  CudaDriver::Module Load(const CudaDriver& driver, CudaDriver::Context context,
                          const std::string& who);

 private:
  const std::string content_;
  std::mutex mutex_;
  std::unordered_map<CudaDriver::Context, CudaDriver::Module> modules_;
};

class CubinStore {
 public:
  // The store of the process; never destroyed, as modules are never unloaded.
  static CubinStore& Get();

  // Makes a cubin known by the SHA-256 of its content.
  void Register(const std::string& hash, std::string content);

  // Returns a cubin. Throws std::runtime_error, in the name of `who`, with what to do about it if
  // this process does not have it.
  Cubin& Find(const std::string& hash, const std::string& who);

 private:
  // Returns a cubin, or null.
  Cubin* FindKnown(const std::string& hash);

  std::mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<Cubin>> cubins_;
};

}  // namespace msops

#endif  // MSOPS_CUBIN_STORE_H_
