// lone_call.h: a call of a handler of XLA's FFI that no program of XLA makes.
#ifndef MSOPS_LONE_CALL_H_
#define MSOPS_LONE_CALL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "foreign_handler.h"

namespace msops {

// The value of an attribute: a text, or numbers of a dtype.
struct LoneAttribute {
  std::string name;
  std::string dtype;  // empty of a text
  bool is_list = false;
  std::string bytes;
};

// A handler with the frame of its call, in which only pointers to arrays change.
class LoneCall {
 public:
  // Throws std::runtime_error with a message for the user.
  LoneCall(ForeignSpec spec, std::vector<LoneAttribute> attributes);
  LoneCall(const LoneCall&) = delete;
  LoneCall& operator=(const LoneCall&) = delete;

  const ForeignSpec& spec() const { return handler_.spec(); }

  // Calls the handler on arrays, inputs first. Throws std::runtime_error if it fails. Calls may
  // overlap.
  void Run(const std::vector<void*>& pointers) const;

 private:
  void AddAttribute(const LoneAttribute& attribute);

  const ForeignHandler handler_;
  const std::vector<LoneAttribute> attributes_;  // by name, as handlers expect them
  // Of a deque, what is in it stays where it is.
  std::deque<XLA_FFI_Scalar> scalars_;
  std::deque<XLA_FFI_Array> lists_;
  std::deque<XLA_FFI_ByteSpan> texts_;
  std::vector<XLA_FFI_AttrType> types_;
  std::vector<XLA_FFI_ByteSpan*> names_;
  std::vector<void*> values_;
  std::vector<XLA_FFI_Buffer> buffers_;
};

}  // namespace msops

#endif  // MSOPS_LONE_CALL_H_
