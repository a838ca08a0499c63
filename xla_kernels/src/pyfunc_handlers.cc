// pyfunc_handlers.cc: the FFI handlers that call Python functions.
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "call_frame.h"
#include "host_function.h"
#include "host_threads.h"
#include "message.h"

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
  arrays.input_count = ArrayCount(inputs);
  for (size_t i = 0; i < ArrayCount(inputs); ++i) {
    arrays.sizes_bytes.push_back(inputs.get<ffi::AnyBuffer>(i)->size_bytes());
  }
  for (size_t i = 0; i < ArrayCount(outputs); ++i) {
    arrays.sizes_bytes.push_back((*outputs.get<ffi::AnyBuffer>(i))->size_bytes());
  }
  arrays.addresses.assign(addresses, addresses + arrays.sizes_bytes.size());
  return arrays;
}

// A call that goes on after XLA's has returned: `start` lets it begin, and resolves the future if
// it cannot.
struct Pending {
  std::string who;
  ffi::Future future;
  std::function<void()> start;
};

// How an execution went, or one that goes on: a future costs more than a short function.
struct Outcome {
  ffi::Error error;
  std::optional<Pending> pending;
};

// Resolves a promise with the error of a call, if it has one. Nobody else would: it never throws.
void Resolve(ffi::Promise* promise, const std::string& problem) noexcept {
  if (problem.empty()) {
    promise->SetAvailable();
    return;
  }
  try {
    promise->SetError(InternalError(problem));
  } catch (const std::bad_alloc&) {
    promise->SetError(InternalError(kOutOfMemory));
  }
}

Outcome Execute(State* state, ffi::RemainingArgs inputs, ffi::RemainingRets outputs) {
  std::optional<Pending> pending;
  ffi::Error error =
      state->Execute(inputs, outputs, [&](const SharedFunction& shared, void** addresses) {
        if (IsPythonThread()) {
          return CallInPlace([&] { return shared.function->Who(); },
                             [&] { shared.function->Call(addresses); });
        }
        auto promise = std::make_shared<ffi::Promise>();
        ffi::Future future(*promise);
        const std::string who = shared.function->Who();
        const auto finish = [promise](const std::string& problem) {
          Resolve(promise.get(), problem);
        };
        auto start = PrepareThread(
            who, ArraysOf(inputs, outputs, addresses),
            [function = shared.function](void** arrays) { function->Call(arrays); }, finish);
        pending.emplace(Pending{who, std::move(future), std::move(start)});
      });
  return {std::move(error), std::move(pending)};
}

}  // namespace
}  // namespace msops

// Returns to XLA the error, success, or the future. The call that goes on begins when XLA has the
// future: if XLA cannot have it, nobody would wait for the call.
template <xla::ffi::ExecutionStage stage>
struct xla::ffi::ResultEncoding<stage, msops::Outcome> {
  using Encoded = std::variant<XLA_FFI_Error*, XLA_FFI_Future*>;

  static Encoded Encode(const XLA_FFI_Api* api, XLA_FFI_ExecutionContext* ctx,
                        msops::Outcome outcome) {
    if (!outcome.pending) {
      return ResultEncoding<stage, Error>::Encode(api, ctx, std::move(outcome.error));
    }
    msops::Pending& pending = *outcome.pending;
    try {
      Encoded future = ResultEncoding<stage, Future>::Encode(api, ctx, std::move(pending.future));
      pending.start();
      return future;
    } catch (const std::bad_alloc& error) {
      return ResultEncoding<stage, Error>::Encode(
          api, ctx, msops::InternalError(msops::ExplainFailure(pending.who, error)));
    }
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
