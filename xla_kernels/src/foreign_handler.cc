#include "foreign_handler.h"

#include <mutex>
#include <stdexcept>
#include <utility>

#include "message.h"

namespace msops {
namespace {

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

}  // namespace

ForeignHandler::ForeignHandler(ForeignSpec spec)
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

std::string ForeignHandler::Location() const {
  return "symbol " + spec_.symbol + " of library " + library_.Label();
}

XLA_FFI_Error* ForeignHandler::Call(XLA_FFI_CallFrame* frame) const {
  std::unique_lock<std::mutex> lock(library_.call_mutex(), std::defer_lock);
  if (library_.is_serialised()) lock.lock();
  try {
    return handler_(frame);
  } catch (...) {
    throw std::runtime_error(Explain(spec_.Who(), "the handler threw an exception",
                                     {DescribeCurrentException(), Location()},
                                     "Return an ffi::Error instead."));
  }
}

void ForeignHandler::Run(XLA_FFI_CallFrame* frame) const {
  XLA_FFI_Error* const error = Call(frame);
  if (!error) return;
  throw std::runtime_error(
      Explain(spec_.Who(), "the handler failed",
              {TakeMessage(frame->api, error), Location(), spec_.DescribeArrays()},
              "See the handler's binding and source; an attribute has the type of its default in "
              "attrs, such as np.float32(1e-5)."));
}

}  // namespace msops
