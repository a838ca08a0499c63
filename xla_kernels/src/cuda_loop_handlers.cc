#include "cuda_loop_handlers.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attributes.h"
#include "call_table.h"
#include "cuda_call.h"
#include "frame_check.h"
#include "message.h"
#include "platforms.h"

namespace msops {
namespace {

namespace ffi = xla::ffi;

// Separates texts in one attribute.
constexpr char kSeparator = '\x1f';

// The two kinds of calls; see the header.
struct Recordable {
  static constexpr char kTarget[] = "msops_loops_cuda";
};
struct UsesScratch {
  static constexpr char kTarget[] = "msops_loops_cuda_scratch";
};

// What instantiate leaves for execute.
template <typename Kind>
struct State {
  State(CudaCallSpec spec, const std::vector<std::vector<int64_t>>& shapes,
        const std::vector<std::string>& dtypes)
      : call(std::move(spec)), check(call.who(), shapes, dtypes) {}

  static ffi::TypeId id;
  static constexpr XLA_FFI_TypeInfo kInfo = ffi::MakeTypeInfo<State>();

  CudaCall call;
  const FrameCheck check;
};
template <typename Kind>
ffi::TypeId State<Kind>::id = {};

using Int64s = ffi::Span<const int64_t>;

std::vector<int64_t> Vector(Int64s span) { return {span.begin(), span.end()}; }

template <typename Kind>
ffi::ErrorOr<std::unique_ptr<State<Kind>>> Instantiate(std::string_view op, std::string_view cubins,
                                                       std::string_view functions, Int64s plan,
                                                       Int64s workspaces, std::string_view checks,
                                                       int64_t, Int64s ranks, Int64s dims,
                                                       std::string_view dtypes) {
  try {
    const auto shapes = SplitRows(Vector(dims), Vector(ranks));
    CudaCallSpec spec;
    spec.op = op;
    spec.cubins = SplitNames(std::string(cubins));
    spec.functions = SplitNames(std::string(functions));
    spec.plan = Vector(plan);
    spec.array_count = shapes.size();
    spec.workspace_sizes_bytes = Vector(workspaces);
    spec.checks = SplitNames(std::string(checks), kSeparator);
    return std::make_unique<State<Kind>>(std::move(spec), shapes, SplitNames(std::string(dtypes)));
  } catch (const std::exception& error) {
    return ffi::Unexpected(ffi::Error(ffi::ErrorCode::kInvalidArgument, error.what()));
  }
}

template <typename Kind>
void Fill(State<Kind>* state, const ffi::RemainingArgs& inputs, const ffi::RemainingRets& outputs,
          std::vector<void*>* buffers) {
  buffers->resize(state->call.buffer_count());
  state->check.Fill(inputs, outputs, buffers->data());
}

ffi::Error Execute(void* stream, State<Recordable>* state, ffi::RemainingArgs inputs,
                   ffi::RemainingRets outputs) {
  try {
    std::vector<void*> buffers;
    Fill(state, inputs, outputs, &buffers);
    state->call.Run(buffers.data(), stream);
    return ffi::Error::Success();
  } catch (const std::exception& error) {
    return ffi::Error(ffi::ErrorCode::kInternal, error.what());
  }
}

ffi::Error ExecuteWithScratch(void* stream, ffi::ScratchAllocator scratch,
                              State<UsesScratch>* state, ffi::RemainingArgs inputs,
                              ffi::RemainingRets outputs) {
  try {
    CudaCall& call = state->call;
    std::vector<void*> buffers;
    Fill(state, inputs, outputs, &buffers);
    const std::optional<void*> block =
        scratch.Allocate(call.workspace_bytes(), CudaCall::kAlignmentBytes);
    if (!block || !*block) {
      throw std::runtime_error(
          Explain(call.who(),
                  "no device memory for temporaries of " + std::to_string(call.workspace_bytes()) +
                      " bytes",
                  {}, "Leave XLA more memory to allocate from, or use smaller arrays."));
    }
    call.PlaceWorkspaces(static_cast<char*>(*block), buffers.data());
    call.Run(buffers.data(), stream);
    return ffi::Error::Success();
  } catch (const std::exception& error) {
    return ffi::Error(ffi::ErrorCode::kInternal, error.what());
  }
}

template <typename Kind>
FfiHandlers Handlers(XLA_FFI_Handler* execute) {
  XLA_FFI_DEFINE_HANDLER(instantiate, Instantiate<Kind>,
                         ffi::Ffi::BindInstantiate()
                             .template Attr<std::string_view>("op")
                             .template Attr<std::string_view>("cubins")
                             .template Attr<std::string_view>("functions")
                             .template Attr<Int64s>("plan")
                             .template Attr<Int64s>("workspaces")
                             .template Attr<std::string_view>("checks")
                             .template Attr<int64_t>("operands")
                             .template Attr<Int64s>("ranks")
                             .template Attr<Int64s>("dims")
                             .template Attr<std::string_view>("dtypes"));
  return {Kind::kTarget, Cuda::kName, &State<Kind>::id, &State<Kind>::kInfo, instantiate, execute};
}

}  // namespace

FfiHandlers CudaLoopHandlers() {
  // A plan is a constant, so a call launches the same operations each time.
  XLA_FFI_DEFINE_HANDLER(execute, Execute,
                         ffi::Ffi::BindExecute()
                             .Ctx<ffi::PlatformStream<void*>>()
                             .Ctx<ffi::State<State<Recordable>>>()
                             .RemainingArgs()
                             .RemainingRets(),
                         {ffi::Traits::kCmdBufferCompatible});
  return Handlers<Recordable>(execute);
}

FfiHandlers CudaLoopHandlersWithScratch() {
  XLA_FFI_DEFINE_HANDLER(execute, ExecuteWithScratch,
                         ffi::Ffi::BindExecute()
                             .Ctx<ffi::PlatformStream<void*>>()
                             .Ctx<ffi::ScratchAllocator>()
                             .Ctx<ffi::State<State<UsesScratch>>>()
                             .RemainingArgs()
                             .RemainingRets());
  return Handlers<UsesScratch>(execute);
}

}  // namespace msops
