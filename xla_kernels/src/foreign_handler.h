// foreign_handler.h: a handler of XLA's FFI out of a library, bound to one call.
#ifndef MSOPS_FOREIGN_HANDLER_H_
#define MSOPS_FOREIGN_HANDLER_H_

#include <string>

#include "frame_spec.h"
#include "library_store.h"
#include "xla/ffi/api/ffi.h"

namespace msops {

// What is said of a call.
struct ForeignSpec : FrameSpec {
  std::string library_hash;
  std::string library_name;  // for messages
  std::string symbol;
  bool reentrant = true;
};

class ForeignHandler {
 public:
  // Opens the library and finds the handler. Throws std::runtime_error with a message for the user.
  explicit ForeignHandler(ForeignSpec spec);

  const ForeignSpec& spec() const { return spec_; }

  // Calls the handler. Throws std::runtime_error with a message for the user if it fails.
  void Run(XLA_FFI_CallFrame* frame) const;

  // The symbol and the library, for messages.
  std::string Location() const;

 private:
  XLA_FFI_Error* Call(XLA_FFI_CallFrame* frame) const;

  const ForeignSpec spec_;
  Library& library_;
  XLA_FFI_Handler* const handler_;
};

}  // namespace msops

#endif  // MSOPS_FOREIGN_HANDLER_H_
