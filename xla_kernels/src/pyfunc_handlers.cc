// pyfunc_handlers.cc: the FFI handlers that call Python functions.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "call_frame.h"
#include "host_function.h"
#include "host_threads.h"

namespace msops {
namespace {

namespace ffi = xla::ffi;

// A function that makes no progress may outlive its program, whose call has failed.
struct SharedFunction {
  using Spec = HostFunctionSpec;

  explicit SharedFunction(HostFunctionSpec spec)
      : function(std::make_shared<const HostFunction>(std::move(spec))) {}

  size_t parameter_count() const { return function->parameter_count(); }

  const std::shared_ptr<const HostFunction> function;
};

using State = CallState<Cpu, SharedFunction>;

void ReadSpec(const CallAttributes& attributes, HostFunctionSpec* spec) {
  spec->id = attributes.Text("function");
}

ffi::Error InternalError(const std::string& problem) {
  return ffi::Error(ffi::ErrorCode::kInternal, problem);
}

HostArrays ArraysOf(const ffi::RemainingArgs& inputs, const ffi::RemainingRets& outputs,
                    void** addresses) {
  HostArrays arrays;
  arrays.input_count = inputs.size();
  for (size_t i = 0; i < inputs.size(); ++i) {
    arrays.sizes_bytes.push_back(inputs.get<ffi::AnyBuffer>(i)->size_bytes());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    arrays.sizes_bytes.push_back((*outputs.get<ffi::AnyBuffer>(i))->size_bytes());
  }
  arrays.addresses.assign(addresses, addresses + arrays.sizes_bytes.size());
  return arrays;
}

// How an execution went, or the future of one that goes on: a future costs more than a short
// function.
struct Outcome {
  ffi::Error error;
  std::optional<ffi::Future> future;
};

Outcome Execute(State* state, ffi::RemainingArgs inputs, ffi::RemainingRets outputs) {
  std::optional<ffi::Future> future;
  ffi::Error error =
      state->Execute(inputs, outputs, [&](const SharedFunction& shared, void** addresses) {
        if (IsPythonThread()) return shared.function->Call(addresses);
        auto promise = std::make_shared<ffi::Promise>();
        future.emplace(*promise);
        const auto finish = [promise](const std::string& problem) {
          if (problem.empty()) {
            promise->SetAvailable();
          } else {
            promise->SetError(InternalError(problem));
          }
        };
        RunOnThread(
            shared.function->Who(), ArraysOf(inputs, outputs, addresses),
            [function = shared.function](void** arrays) { function->Call(arrays); }, finish);
      });
  // Without a thread nothing will ever resolve the future.
  if (error.failure()) future.reset();
  return {std::move(error), std::move(future)};
}

}  // namespace
}  // namespace msops

// Returns to XLA the error, success, or the future.
template <xla::ffi::ExecutionStage stage>
struct xla::ffi::ResultEncoding<stage, msops::Outcome> {
  static std::variant<XLA_FFI_Error*, XLA_FFI_Future*> Encode(const XLA_FFI_Api* api,
                                                              XLA_FFI_ExecutionContext* ctx,
                                                              msops::Outcome outcome) {
    if (outcome.future) {
      return ResultEncoding<stage, Future>::Encode(api, ctx, std::move(*outcome.future));
    }
    return ResultEncoding<stage, Error>::Encode(api, ctx, std::move(outcome.error));
  }
};

namespace msops {

FfiHandlers CpuPyfuncHandlers() {
  XLA_FFI_DEFINE_HANDLER(
      execute, Execute,
      ffi::Ffi::BindExecute().Ctx<ffi::State<State>>().RemainingArgs().RemainingRets());
  return State::Handlers<ReadSpec>("msops_pyfunc", execute);
}

}  // namespace msops
