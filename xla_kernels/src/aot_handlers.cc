#include "aot_handlers.h"

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attributes.h"
#include "call_site.h"
#include "ffi_attributes.h"
#include "frame_check.h"
#include "late_binding.h"
#include "message.h"
#include "parallel_for.h"
#include "parameters.h"
#include "platforms.h"
#include "workspace_pool.h"
#include "xla_thread_pool.h"

namespace msops {
namespace {

namespace ffi = xla::ffi;

constexpr char kTarget[] = "msops_aot";

// A call whose shapes are known.
struct BoundCall {
  explicit BoundCall(CallSpec spec)
      : site(std::move(spec)), check(site.Who(), site.spec().shapes, site.spec().dtypes) {}

  CallSite site;
  const FrameCheck check;
};

// What instantiate leaves for execute.
template <typename Platform>
struct State {
  explicit State(const CallSpec& spec)
      : call(WhoCalls(spec), spec.shapes, spec.dtypes,
             [spec](const LateBinding<BoundCall>::Shapes& shapes) {
               CallSpec whole = spec;
               whole.shapes = shapes;
               return std::make_unique<BoundCall>(std::move(whole));
             }) {}

  static ffi::TypeId id;
  static constexpr XLA_FFI_TypeInfo kInfo = ffi::MakeTypeInfo<State>();

  LateBinding<BoundCall> call;
};
template <typename Platform>
ffi::TypeId State<Platform>::id = {};

using Int64s = ffi::Span<const int64_t>;

template <typename Platform>
ffi::ErrorOr<std::unique_ptr<State<Platform>>> Instantiate(
    std::string_view op, std::string_view library, std::string_view library_name,
    std::string_view symbol, Int64s ranks, Int64s dims, std::string_view dtypes,
    Attributes attributes, bool reentrant, Int64s workspaces) {
  try {
    CallSpec spec;
    spec.op = op;
    spec.platform = Platform::kShownName;
    spec.library_hash = library;
    spec.library_name = library_name;
    spec.symbol = symbol;
    spec.shapes = SplitRows(std::vector<int64_t>(dims.begin(), dims.end()),
                            std::vector<int64_t>(ranks.begin(), ranks.end()));
    spec.dtypes = SplitNames(std::string(dtypes));
    spec.attributes = std::move(attributes);
    spec.reentrant = reentrant;
    spec.workspace_sizes_bytes.assign(workspaces.begin(), workspaces.end());
    return std::make_unique<State<Platform>>(spec);
  } catch (const std::exception& error) {
    return ffi::Unexpected(ffi::Error(ffi::ErrorCode::kInvalidArgument, error.what()));
  }
}

// Runs `body`, which may throw; a failed call names itself in its message.
template <typename Body>
ffi::Error Reported(Body&& body) {
  try {
    body();
    return ffi::Error::Success();
  } catch (const std::exception& error) {
    return ffi::Error(ffi::ErrorCode::kInternal, error.what());
  }
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
  return Reported([&] {
    BoundCall& call = state->call.For(inputs, outputs);
    CallSite& site = call.site;
    Parameters parameters(site.parameter_count());
    call.check.Fill(inputs, outputs, parameters.data());
    // Buffers without elements come without memory; kernels may yet look for null pointers.
    alignas(WorkspacePool::kAlignment) static char nothing[WorkspacePool::kAlignment];
    for (size_t i = 0; i < site.spec().shapes.size(); ++i) {
      if (!parameters.data()[i]) parameters.data()[i] = nothing;
    }
    const WorkspaceLease workspace = LeaseWorkspace(site);
    site.PlaceWorkspaces(workspace.data(), parameters.data());
    XlaThreadPool pool(threads);
    const PoolScope scope(&pool);
    site.Run(parameters.data(), nullptr);
  });
}

template <typename Platform>
ffi::Error ExecuteOnDevice(void* stream, ffi::ScratchAllocator scratch, State<Platform>* state,
                           ffi::RemainingArgs inputs, ffi::RemainingRets outputs) {
  return Reported([&] {
    BoundCall& call = state->call.For(inputs, outputs);
    CallSite& site = call.site;
    Parameters parameters(site.parameter_count());
    call.check.Fill(inputs, outputs, parameters.data());
    if (const size_t size_bytes = site.workspace_bytes()) {
      const std::optional<void*> block = scratch.Allocate(size_bytes, WorkspacePool::kAlignment);
      if (!block || !*block) {
        throw std::runtime_error(
            Explain(site.Who(),
                    "no device memory for workspaces of " + std::to_string(size_bytes) + " bytes",
                    {}, "Ask for less in Init, or leave XLA more memory to allocate from."));
      }
      site.PlaceWorkspaces(static_cast<char*>(*block), parameters.data());
    }
    site.Run(parameters.data(), stream);
  });
}

template <typename Platform>
auto InstantiateBinding() {
  return ffi::Ffi::BindInstantiate()
      .template Attr<std::string_view>("op")
      .template Attr<std::string_view>("library")
      .template Attr<std::string_view>("library_name")
      .template Attr<std::string_view>("symbol")
      .template Attr<Int64s>("ranks")
      .template Attr<Int64s>("dims")
      .template Attr<std::string_view>("dtypes")
      .template Attr<Attributes>("attributes")
      .template Attr<bool>("reentrant")
      .template Attr<Int64s>("workspaces");
}

auto HostBinding() {
  return ffi::Ffi::BindExecute()
      .Ctx<ffi::ThreadPool>()
      .Ctx<ffi::State<State<Cpu>>>()
      .RemainingArgs()
      .RemainingRets();
}

template <typename Platform>
auto DeviceBinding() {
  return ffi::Ffi::BindExecute()
      .template Ctx<ffi::PlatformStream<void*>>()
      .template Ctx<ffi::ScratchAllocator>()
      .template Ctx<ffi::State<State<Platform>>>()
      .RemainingArgs()
      .RemainingRets();
}

template <typename Platform>
FfiHandlers Handlers(XLA_FFI_Handler* execute) {
  XLA_FFI_DEFINE_HANDLER(instantiate, Instantiate<Platform>, InstantiateBinding<Platform>());
  return {kTarget,     Platform::kName, &State<Platform>::id, &State<Platform>::kInfo,
          instantiate, execute};
}

template <typename Platform>
FfiHandlers DeviceHandlers() {
  XLA_FFI_DEFINE_HANDLER(execute, ExecuteOnDevice<Platform>, DeviceBinding<Platform>());
  return Handlers<Platform>(execute);
}

}  // namespace

FfiHandlers CpuAotHandlers() {
  XLA_FFI_DEFINE_HANDLER(execute, ExecuteOnHost, HostBinding());
  return Handlers<Cpu>(execute);
}

FfiHandlers CudaAotHandlers() { return DeviceHandlers<Cuda>(); }

FfiHandlers RocmAotHandlers() { return DeviceHandlers<Rocm>(); }

}  // namespace msops
