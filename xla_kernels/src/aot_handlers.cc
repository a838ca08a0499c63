// aot_handlers.cc: the FFI handlers that serve every aot kernel, one pair per platform.
#include <new>
#include <stdexcept>
#include <string>

#include "call_frame.h"
#include "call_site.h"
#include "device_memory.h"
#include "message.h"
#include "parallel_for.h"
#include "workspace_pool.h"
#include "xla_thread_pool.h"

namespace msops {
namespace {

namespace ffi = xla::ffi;

constexpr char kTarget[] = "msops_aot";

template <typename Platform>
using State = CallState<Platform, CallSite>;

void ReadSpec(const CallAttributes& attributes, CallSpec* spec) {
  spec->library_hash = attributes.Text("library");
  spec->library_name = attributes.Text("library_name");
  spec->symbol = attributes.Text("symbol");
  spec->attributes = attributes.OfOp();
  spec->reentrant = attributes.Flag("reentrant");
  const std::vector<int64_t> workspaces = attributes.Numbers("workspaces");
  spec->workspace_sizes_bytes.assign(workspaces.begin(), workspaces.end());
}

// Names the call that wants the memory: std::bad_alloc does not.
WorkspaceLease LeaseWorkspace(const CallSite& site) {
  try {
    return WorkspaceLease(site.workspace_bytes());
  } catch (const std::bad_alloc&) {
    throw std::runtime_error(
        Explain(site.Who(),
                "no memory for workspaces of " + std::to_string(site.workspace_bytes()) + " bytes",
                {}, "Ask for less in Init, or make the temporaries of the loops smaller."));
  }
}

ffi::Error ExecuteOnHost(ffi::ThreadPool threads, State<Cpu>* state, ffi::RemainingArgs inputs,
                         ffi::RemainingRets outputs) {
  return state->Execute(inputs, outputs, [&](CallSite& site, void** parameters) {
    ReplaceNull(parameters, site.spec().shapes.size());
    const WorkspaceLease workspace = LeaseWorkspace(site);
    site.PlaceWorkspaces(workspace.data(), parameters);
    XlaThreadPool pool(threads);
    const PoolScope scope(&pool);
    site.Run(parameters, nullptr);
  });
}

template <typename Platform>
ffi::Error ExecuteOnDevice(void* stream, ffi::ScratchAllocator scratch, State<Platform>* state,
                           ffi::RemainingArgs inputs, ffi::RemainingRets outputs) {
  return state->Execute(inputs, outputs, [&](CallSite& site, void** parameters) {
    if (const size_t size_bytes = site.workspace_bytes()) {
      char* const block = AllocateOnDevice(&scratch, size_bytes, WorkspacePool::kAlignment,
                                           site.Who(), "workspaces");
      site.PlaceWorkspaces(block, parameters);
    }
    site.Run(parameters, stream);
  });
}

template <typename Platform>
FfiHandlers DeviceHandlers() {
  XLA_FFI_DEFINE_HANDLER(execute, ExecuteOnDevice<Platform>,
                         ffi::Ffi::BindExecute()
                             .template Ctx<ffi::PlatformStream<void*>>()
                             .template Ctx<ffi::ScratchAllocator>()
                             .template Ctx<ffi::State<State<Platform>>>()
                             .RemainingArgs()
                             .RemainingRets());
  return State<Platform>::template Handlers<ReadSpec>(kTarget, execute);
}

}  // namespace

FfiHandlers CpuAotHandlers() {
  XLA_FFI_DEFINE_HANDLER(execute, ExecuteOnHost,
                         ffi::Ffi::BindExecute()
                             .Ctx<ffi::ThreadPool>()
                             .Ctx<ffi::State<State<Cpu>>>()
                             .RemainingArgs()
                             .RemainingRets());
  return State<Cpu>::Handlers<ReadSpec>(kTarget, execute);
}

FfiHandlers CudaAotHandlers() { return DeviceHandlers<Cuda>(); }

FfiHandlers RocmAotHandlers() { return DeviceHandlers<Rocm>(); }

}  // namespace msops
