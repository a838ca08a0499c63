// foreign_handlers.cc: the custom call that runs a handler of XLA's FFI out of a library, such as
// one that was written for jax.ffi.ffi_call.
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "call_frame.h"
#include "frame_check.h"
#include "library_store.h"
#include "message.h"

namespace msops {
namespace {

namespace ffi = xla::ffi;

// What a program says about a call.
struct ForeignSpec : FrameSpec {
  std::string library_hash;
  std::string library_name;  // for messages
  std::string symbol;
  bool reentrant = true;
};

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

// Returns what an error says, and ends its life.
std::string TakeMessage(const XLA_FFI_Api* api, XLA_FFI_Error* error) {
  XLA_FFI_Error_GetMessage_Args get{};
  get.struct_size = XLA_FFI_Error_GetMessage_Args_STRUCT_SIZE;
  get.error = error;
  api->XLA_FFI_Error_GetMessage(&get);
  std::string message = get.message ? get.message : "";
  XLA_FFI_Error_Destroy_Args destroy{};
  destroy.struct_size = XLA_FFI_Error_Destroy_Args_STRUCT_SIZE;
  destroy.error = error;
  api->XLA_FFI_Error_Destroy(&destroy);
  return message;
}

// A handler bound to one call of a program.
class ForeignCall {
 public:
  using Spec = ForeignSpec;

  explicit ForeignCall(ForeignSpec spec)
      : spec_(std::move(spec)),
        library_(LibraryStore::Get().Open(spec_.library_hash, spec_.library_name)),
        handler_(reinterpret_cast<XLA_FFI_Handler*>(library_.FindFunction(spec_.symbol))) {
    if (!handler_) {
      throw std::runtime_error(
          Explain(spec_.Who(), "expected a handler in a library, found none", {Location()},
                  "Define it by XLA_FFI_DEFINE_HANDLER_SYMBOL, and spell its name as there."));
    }
    if (!spec_.reentrant) library_.Serialise();
  }

  size_t parameter_count() const { return spec_.shapes.size(); }

  // Calls the handler. Throws std::runtime_error with a message for the user if it fails.
  void Run(XLA_FFI_CallFrame* frame) const {
    const XLA_FFI_Attrs* const attributes = FindOwnAttributes(frame->attrs);
    if (!attributes) {
      throw std::runtime_error(Explain(spec_.Who(), "the program has no attributes for the handler",
                                       {Location()},
                                       "Lower the program again with this version of msops."));
    }
    XLA_FFI_Error* const error = Call(frame, *attributes);
    if (!error) return;
    throw std::runtime_error(
        Explain(spec_.Who(), "the handler failed",
                {TakeMessage(frame->api, error), Location(), spec_.DescribeArrays()},
                "See the handler's binding and source; an attribute has the type of its default in "
                "attrs, such as np.float32(1e-5)."));
  }

 private:
  XLA_FFI_Error* Call(XLA_FFI_CallFrame* frame, const XLA_FFI_Attrs& attributes) const {
    std::unique_lock<std::mutex> lock(library_.call_mutex(), std::defer_lock);
    if (library_.is_serialised()) lock.lock();
    const OwnFrame own(frame, attributes);
    try {
      return handler_(frame);
    } catch (...) {
      throw std::runtime_error(Explain(spec_.Who(), "the handler threw an exception",
                                       {DescribeCurrentException(), Location()},
                                       "Return an ffi::Error instead."));
    }
  }

  std::string Location() const {
    return "symbol " + spec_.symbol + " of library " + library_.Label();
  }

  const ForeignSpec spec_;
  Library& library_;
  XLA_FFI_Handler* const handler_;
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
