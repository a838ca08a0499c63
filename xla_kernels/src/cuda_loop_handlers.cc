// cuda_loop_handlers.cc: the FFI handlers that run generated code on CUDA.
#include "call_frame.h"
#include "call_table.h"
#include "cuda_call.h"
#include "device_memory.h"

namespace msops {
namespace {

namespace ffi = xla::ffi;

// Separates texts in one attribute.
constexpr char kSeparator = '\x1f';

// A call with temporaries has a state type of its own, as each target has one.
struct ScratchCall : CudaCall {
  using CudaCall::CudaCall;
};

using State = CallState<Cuda, CudaCall>;
using ScratchState = CallState<Cuda, ScratchCall>;

void ReadSpec(const CallAttributes& attributes, CudaCallSpec* spec) {
  spec->cubins = SplitNames(attributes.Text("cubins"));
  spec->functions = SplitNames(attributes.Text("functions"));
  spec->plan = attributes.Numbers("plan");
  spec->workspace_sizes_bytes = attributes.Numbers("workspaces");
  spec->checks = SplitNames(attributes.Text("checks"), kSeparator);
}

ffi::Error Execute(void* stream, State* state, ffi::RemainingArgs inputs,
                   ffi::RemainingRets outputs) {
  return state->Execute(inputs, outputs,
                        [&](CudaCall& call, void** buffers) { call.Run(buffers, stream); });
}

ffi::Error ExecuteWithScratch(void* stream, ffi::ScratchAllocator scratch, ScratchState* state,
                              ffi::RemainingArgs inputs, ffi::RemainingRets outputs) {
  return state->Execute(inputs, outputs, [&](CudaCall& call, void** buffers) {
    char* const block = AllocateOnDevice(&scratch, call.workspace_bytes(),
                                         CudaCall::kAlignmentBytes, call.who(), "temporaries");
    call.PlaceWorkspaces(block, buffers);
    call.Run(buffers, stream);
  });
}

}  // namespace

FfiHandlers CudaLoopHandlers() {
  // A plan is a constant, so a call launches the same operations each time.
  XLA_FFI_DEFINE_HANDLER(execute, Execute,
                         ffi::Ffi::BindExecute()
                             .Ctx<ffi::PlatformStream<void*>>()
                             .Ctx<ffi::State<State>>()
                             .RemainingArgs()
                             .RemainingRets(),
                         {ffi::Traits::kCmdBufferCompatible});
  return State::Handlers<ReadSpec>("msops_loops_cuda", execute);
}

FfiHandlers CudaLoopHandlersWithScratch() {
  XLA_FFI_DEFINE_HANDLER(execute, ExecuteWithScratch,
                         ffi::Ffi::BindExecute()
                             .Ctx<ffi::PlatformStream<void*>>()
                             .Ctx<ffi::ScratchAllocator>()
                             .Ctx<ffi::State<ScratchState>>()
                             .RemainingArgs()
                             .RemainingRets());
  return ScratchState::Handlers<ReadSpec>("msops_loops_cuda_scratch", execute);
}

}  // namespace msops
