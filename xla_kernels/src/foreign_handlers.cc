// foreign_handlers.cc: the custom call that runs a handler of XLA's FFI out of a library, such as
// one that was written for jax.ffi.ffi_call.
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "call_frame.h"
#include "foreign_handler.h"
#include "frame_check.h"
#include "message.h"

namespace msops {
namespace {

namespace ffi = xla::ffi;

// Returns the dictionary that the handler finds its attributes in, of those of our custom call.
const XLA_FFI_Attrs* FindOwnAttributes(const XLA_FFI_Attrs& attributes) {
  constexpr std::string_view kName = "attributes";
  for (int64_t i = 0; i < attributes.size; ++i) {
    const XLA_FFI_ByteSpan& name = *attributes.names[i];
    if (attributes.types[i] == XLA_FFI_AttrType_DICTIONARY &&
        std::string_view(name.ptr, name.len) == kName) {
      return static_cast<const XLA_FFI_Attrs*>(attributes.attrs[i]);
    }
  }
  return nullptr;
}

// For its lifetime a frame is as the handler expects it: with its own attributes, and without the
// tokens by which XLA keeps the order of calls. XLA makes a frame for each call.
class OwnFrame {
 public:
  OwnFrame(XLA_FFI_CallFrame* frame, const XLA_FFI_Attrs& attributes)
      : frame_(frame), args_(frame->args), rets_(frame->rets), attrs_(frame->attrs) {
    frame->args.size = static_cast<int64_t>(ArrayCount(ffi::RemainingArgs(&args_, 0)));
    frame->rets.size = static_cast<int64_t>(ArrayCount(ffi::RemainingRets(&rets_, 0)));
    frame->attrs = attributes;
  }
  OwnFrame(const OwnFrame&) = delete;
  OwnFrame& operator=(const OwnFrame&) = delete;
  ~OwnFrame() {
    frame_->args = args_;
    frame_->rets = rets_;
    frame_->attrs = attrs_;
  }

 private:
  XLA_FFI_CallFrame* const frame_;
  const XLA_FFI_Args args_;
  const XLA_FFI_Rets rets_;
  const XLA_FFI_Attrs attrs_;
};

// A handler bound to one call of a program.
class ForeignCall {
 public:
  using Spec = ForeignSpec;

  explicit ForeignCall(ForeignSpec spec) : handler_(std::move(spec)) {}

  size_t parameter_count() const { return handler_.spec().shapes.size(); }

  // Calls the handler. Throws std::runtime_error with a message for the user if it fails.
  void Run(XLA_FFI_CallFrame* frame) const {
    const XLA_FFI_Attrs* const attributes = FindOwnAttributes(frame->attrs);
    if (!attributes) {
      throw std::runtime_error(
          Explain(handler_.spec().Who(), "the program has no attributes for the handler",
                  {handler_.Location()}, "Lower the program again with this version of msops."));
    }
    const OwnFrame own(frame, *attributes);
    handler_.Run(frame);
  }

 private:
  const ForeignHandler handler_;
};

template <typename Platform>
using State = CallState<Platform, ForeignCall>;

void ReadSpec(const CallAttributes& attributes, ForeignSpec* spec) {
  spec->library_hash = attributes.Text("library");
  spec->library_name = attributes.Text("library_name");
  spec->symbol = attributes.Text("symbol");
  spec->reentrant = attributes.Flag("reentrant");
}

// The frame that this thread is in: a binding hands over parts of it only.
thread_local XLA_FFI_CallFrame* current_frame = nullptr;

template <typename Platform>
ffi::Error ExecuteInFrame(State<Platform>* state, ffi::RemainingArgs inputs,
                          ffi::RemainingRets outputs) {
  return state->Execute(inputs, outputs,
                        [](const ForeignCall& call, void**) { call.Run(current_frame); });
}

template <typename Platform>
XLA_FFI_Error* Execute(XLA_FFI_CallFrame* frame) {
  XLA_FFI_DEFINE_HANDLER(execute, ExecuteInFrame<Platform>,
                         ffi::Ffi::BindExecute()
                             .template Ctx<ffi::State<State<Platform>>>()
                             .RemainingArgs()
                             .RemainingRets());
  XLA_FFI_CallFrame* const outer = std::exchange(current_frame, frame);
  XLA_FFI_Error* const error = execute(frame);
  current_frame = outer;
  return error;
}

template <typename Platform>
FfiHandlers Handlers() {
  return State<Platform>::template Handlers<ReadSpec>("msops_ffi", Execute<Platform>);
}

}  // namespace

FfiHandlers CpuForeignHandlers() { return Handlers<Cpu>(); }

FfiHandlers CudaForeignHandlers() { return Handlers<Cuda>(); }

FfiHandlers RocmForeignHandlers() { return Handlers<Rocm>(); }

}  // namespace msops
