#include "cuda_call.h"

#include <stdexcept>
#include <utility>

#include "message.h"

namespace msops {

CudaCall::CudaCall(CudaCallSpec spec)
    : who_(spec.Who()),
      function_names_(std::move(spec.functions)),
      array_count_(spec.shapes.size()),
      plan_(std::move(spec.plan), function_names_.size(),
            array_count_ + spec.workspace_sizes_bytes.size(), who_),
      checks_(std::move(spec.checks)) {
  if (!checks_.empty() && spec.workspace_sizes_bytes.empty()) {
    throw std::runtime_error(Explain(who_,
                                     "the program checks indices, and has no workspace for it", {},
                                     "Lower the program again with this version of msops."));
  }
  for (int64_t size_bytes : spec.workspace_sizes_bytes) {
    workspace_offsets_.push_back(workspace_bytes_);
    workspace_bytes_ += (size_bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
  }
  for (const std::string& hash : spec.cubins) {
    cubins_.push_back(&CubinStore::Get().Find(hash, who_));
  }
}

void CudaCall::PlaceWorkspaces(char* block, void** buffers) const {
  void** next = buffers + array_count_;
  for (size_t offset : workspace_offsets_) *next++ = block + offset;
}

void CudaCall::Run(void* const* buffers, CudaDriver::Stream stream) {
  const CudaDriver& driver = CudaDriver::Get();
  const CudaContextScope scope(driver, stream, who_);
  plan_.Run(driver, FunctionsIn(driver, scope.context()), buffers, stream);
  if (!checks_.empty()) ReadChecks(driver, buffers, stream);
}

void CudaCall::ReadChecks(const CudaDriver& driver, void* const* buffers,
                          CudaDriver::Stream stream) const {
  int32_t code = 0;
  const auto failed = CudaDriver::Address(buffers[parameter_count() - 1]);
  driver.Check(driver.copy_to_host(&code, failed, sizeof code, stream), who_, "cuMemcpyDtoHAsync");
  driver.Check(driver.stream_synchronize(stream), who_, "cuStreamSynchronize");
  if (code > 0 && static_cast<size_t>(code) <= checks_.size()) {
    throw std::runtime_error(Explain(who_, "an index is out of range", {checks_[code - 1]},
                                     "Correct the index, or guard the access by an if."));
  }
}

const CudaCall::Functions& CudaCall::FunctionsIn(const CudaDriver& driver,
                                                 CudaDriver::Context context) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto known = functions_.find(context);
  if (known != functions_.end()) return known->second;
  const CudaDriver::Module module = LoadFirst(driver, context);
  Functions functions;
  for (const std::string& name : function_names_) {
    CudaDriver::Function function = nullptr;
    driver.Check(driver.module_get_function(&function, module, name.c_str()), who_,
                 "cuModuleGetFunction");
    functions.push_back(function);
  }
  // References into the map stay valid while other devices are added.
  return functions_.emplace(context, std::move(functions)).first->second;
}

CudaDriver::Module CudaCall::LoadFirst(const CudaDriver& driver,
                                       CudaDriver::Context context) const {
  for (Cubin* cubin : cubins_) {
    if (const CudaDriver::Module module = cubin->Load(driver, context, who_)) return module;
  }
  throw std::runtime_error(
      Explain(who_, "its code was compiled for GPUs of another architecture than this one", {},
              "Lower the program again with MSOPS_CUDA_ARCH naming this GPU's architecture, for "
              "example sm_90, or without that variable on a machine that has such a GPU."));
}

}  // namespace msops
