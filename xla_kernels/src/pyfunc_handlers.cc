// pyfunc_handlers.cc: the FFI handlers that call Python functions.
#include "call_frame.h"
#include "host_function.h"

namespace msops {
namespace {

namespace ffi = xla::ffi;

using State = CallState<Cpu, HostFunction>;

void ReadSpec(const CallAttributes& attributes, HostFunctionSpec* spec) {
  spec->id = attributes.Text("function");
}

ffi::Error Execute(State* state, ffi::RemainingArgs inputs, ffi::RemainingRets outputs) {
  return state->Execute(inputs, outputs,
                        [](const HostFunction& function, void** arrays) { function.Call(arrays); });
}

}  // namespace

FfiHandlers CpuPyfuncHandlers() {
  XLA_FFI_DEFINE_HANDLER(
      execute, Execute,
      ffi::Ffi::BindExecute().Ctx<ffi::State<State>>().RemainingArgs().RemainingRets());
  return State::Handlers<ReadSpec>("msops_pyfunc", execute);
}

}  // namespace msops
