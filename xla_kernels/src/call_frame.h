// call_frame.h: the frame of every custom call. Attributes are decoded once, when XLA instantiates
// the call, into a state that does not change; each execution fills in pointers, runs, and reports
// what failed.
#ifndef MSOPS_CALL_FRAME_H_
#define MSOPS_CALL_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ffi_attributes.h"
#include "ffi_handlers.h"
#include "frame_check.h"
#include "frame_spec.h"
#include "late_binding.h"
#include "message.h"
#include "parameters.h"
#include "platforms.h"

namespace msops {

// The attributes of a custom call by name. Each function throws std::runtime_error if the program
// has no such attribute of the type.
class CallAttributes {
 public:
  explicit CallAttributes(const xla::ffi::Dictionary& attributes) : attributes_(attributes) {}

  std::string Text(std::string_view name) const { return std::string(Get<std::string_view>(name)); }
  bool Flag(std::string_view name) const { return Get<bool>(name); }
  int64_t Number(std::string_view name) const { return Get<int64_t>(name); }
  std::vector<int64_t> Numbers(std::string_view name) const {
    const auto span = Get<xla::ffi::Span<const int64_t>>(name);
    return {span.begin(), span.end()};
  }
  Attributes OfOp() const { return Get<Attributes>("attributes"); }

  // Reads what all calls have.
  void ReadFrame(const char* platform, FrameSpec* spec) const;

 private:
  [[noreturn]] static void Refuse(std::string_view name, const std::string& problem);

  template <typename T>
  T Get(std::string_view name) const {
    xla::ffi::ErrorOr<T> value = attributes_.get<T>(name);
    if (value.has_error()) Refuse(name, value.error().message());
    return std::move(*value);
  }

  const xla::ffi::Dictionary& attributes_;
};

// The state of a custom call of one kind on one platform.
//
// `Call` is bound to arrays of known shapes by its constructor and does not change afterwards, so
// overlapping executions share it. It has
//   Call::Spec                 a FrameSpec, and what else the program says
//   Call(Call::Spec)           may throw std::runtime_error with a message for the user
//   size_t parameter_count()   how many pointers it takes: inputs, outputs, and maybe more behind
template <typename Platform, typename Call>
class CallState {
 public:
  using Spec = typename Call::Spec;
  // Reads what the program says of such calls alone.
  using ReadSpec = void (*)(const CallAttributes& attributes, Spec* spec);

  explicit CallState(const Spec& spec)
      : call_(spec.Who(), spec.shapes, spec.dtypes,
              [spec](const std::vector<std::vector<int64_t>>& shapes) {
                Spec whole = spec;
                whole.shapes = shapes;
                return std::make_unique<Bound>(std::move(whole));
              }),
        who_(spec.Who()) {}

  // Calls `run(call, parameters)` with the pointers of inputs and outputs. It may throw.
  template <typename Run>
  xla::ffi::Error Execute(const xla::ffi::RemainingArgs& inputs,
                          const xla::ffi::RemainingRets& outputs, Run&& run) {
    try {
      Bound& bound = call_.For(inputs, outputs);
      Parameters parameters(bound.call.parameter_count());
      bound.check.Fill(inputs, outputs, parameters.data());
      run(bound.call, parameters.data());
      return xla::ffi::Error::Success();
    } catch (const std::exception& error) {
      return xla::ffi::Error(xla::ffi::ErrorCode::kInternal, ExplainFailure(who_, error));
    }
  }

  // Returns what XLA gets for such calls, whose attributes `read` reads and `execute` runs.
  template <ReadSpec read>
  static FfiHandlers Handlers(const char* target, XLA_FFI_Handler* execute) {
    XLA_FFI_DEFINE_HANDLER(instantiate, Instantiate<read>,
                           xla::ffi::Ffi::BindInstantiate().Attrs<xla::ffi::Dictionary>());
    static constexpr XLA_FFI_TypeInfo kInfo = xla::ffi::MakeTypeInfo<CallState>();
    return {target, Platform::kName, &id, &kInfo, instantiate, execute};
  }

  static xla::ffi::TypeId id;

 private:
  // A call whose shapes are known.
  struct Bound {
    explicit Bound(Spec spec)
        : check(spec.Who(), spec.shapes, spec.dtypes), call(std::move(spec)) {}

    const FrameCheck check;
    Call call;
  };

  template <ReadSpec read>
  static xla::ffi::ErrorOr<std::unique_ptr<CallState>> Instantiate(xla::ffi::Dictionary given) {
    Spec spec;
    try {
      const CallAttributes attributes(given);
      attributes.ReadFrame(Platform::kShownName, &spec);
      read(attributes, &spec);
      return std::make_unique<CallState>(spec);
    } catch (const std::exception& error) {
      return xla::ffi::Unexpected(xla::ffi::Error(xla::ffi::ErrorCode::kInvalidArgument,
                                                  ExplainFailure(spec.Who(), error)));
    }
  }

  LateBinding<Bound> call_;
  const std::string who_;
};
template <typename Platform, typename Call>
xla::ffi::TypeId CallState<Platform, Call>::id = {};

// Gives arrays without elements, which come without memory, an address: kernels may look for null
// pointers.
void ReplaceNull(void** arrays, size_t count);

}  // namespace msops

#endif  // MSOPS_CALL_FRAME_H_
