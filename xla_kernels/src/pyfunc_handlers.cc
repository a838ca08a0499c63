#include "pyfunc_handlers.h"

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attributes.h"
#include "call_table.h"
#include "frame_check.h"
#include "host_function.h"
#include "late_binding.h"
#include "platforms.h"

namespace msops {
namespace {

namespace ffi = xla::ffi;

constexpr char kTarget[] = "msops_pyfunc";

using Shapes = std::vector<std::vector<int64_t>>;

// A call whose shapes are known.
struct BoundCall {
  BoundCall(const std::string& who, const std::string& id, const Shapes& shapes,
            const std::vector<std::string>& dtypes, size_t input_count)
      : check(who, shapes, dtypes), function(who, id, shapes, dtypes, input_count) {}

  const FrameCheck check;
  const HostFunction function;
};

// What instantiate leaves for execute.
struct State {
  State(const std::string& who, const std::string& id, const Shapes& shapes,
        const std::vector<std::string>& dtypes, size_t input_count)
      : call(who, shapes, dtypes, [=](const Shapes& known) {
          return std::make_unique<BoundCall>(who, id, known, dtypes, input_count);
        }) {}

  static ffi::TypeId id;

  LateBinding<BoundCall> call;
};
ffi::TypeId State::id = {};
// Outside of State: what deletes an incomplete type runs no destructor.
constexpr XLA_FFI_TypeInfo kStateInfo = ffi::MakeTypeInfo<State>();

using Int64s = ffi::Span<const int64_t>;

std::vector<int64_t> Vector(Int64s values) { return {values.begin(), values.end()}; }

ffi::ErrorOr<std::unique_ptr<State>> Instantiate(std::string_view op, std::string_view function,
                                                 Int64s ranks, Int64s dims, std::string_view dtypes,
                                                 int64_t input_count) {
  try {
    return std::make_unique<State>("Custom '" + std::string(op) + "' on CPU", std::string(function),
                                   SplitRows(Vector(dims), Vector(ranks)),
                                   SplitNames(std::string(dtypes)),
                                   static_cast<size_t>(input_count));
  } catch (const std::exception& error) {
    return ffi::Unexpected(ffi::Error(ffi::ErrorCode::kInvalidArgument, error.what()));
  }
}

ffi::Error Execute(State* state, ffi::RemainingArgs inputs, ffi::RemainingRets outputs) {
  try {
    BoundCall& call = state->call.For(inputs, outputs);
    std::vector<void*> arrays(call.function.array_count());
    call.check.Fill(inputs, outputs, arrays.data());
    call.function.Call(arrays.data());
    return ffi::Error::Success();
  } catch (const std::exception& error) {
    return ffi::Error(ffi::ErrorCode::kInternal, error.what());
  }
}

auto InstantiateBinding() {
  return ffi::Ffi::BindInstantiate()
      .Attr<std::string_view>("op")
      .Attr<std::string_view>("function")
      .Attr<Int64s>("ranks")
      .Attr<Int64s>("dims")
      .Attr<std::string_view>("dtypes")
      .Attr<int64_t>("input_count");
}

auto ExecuteBinding() {
  return ffi::Ffi::BindExecute().Ctx<ffi::State<State>>().RemainingArgs().RemainingRets();
}

}  // namespace

FfiHandlers CpuPyfuncHandlers() {
  XLA_FFI_DEFINE_HANDLER(instantiate, Instantiate, InstantiateBinding());
  XLA_FFI_DEFINE_HANDLER(execute, Execute, ExecuteBinding());
  return {kTarget, Cpu::kName, &State::id, &kStateInfo, instantiate, execute};
}

}  // namespace msops
