#include "aicpu_handlers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aicpu_call.h"
#include "attributes.h"
#include "call_table.h"
#include "ffi_attributes.h"
#include "frame_check.h"
#include "late_binding.h"
#include "message.h"
#include "parallel_for.h"
#include "parameters.h"
#include "platforms.h"
#include "xla_thread_pool.h"

namespace msops {
namespace {

namespace ffi = xla::ffi;

constexpr char kTarget[] = "msops_aicpu";

// A call whose shapes are known.
struct BoundCall {
  explicit BoundCall(AicpuSpec spec)
      : call(std::move(spec)), check(call.Who(), call.spec().shapes, call.spec().dtypes) {}

  AicpuCall call;
  const FrameCheck check;
};

// What instantiate leaves for execute.
struct State {
  explicit State(const AicpuSpec& spec)
      : call(WhoCalls(spec), spec.shapes, spec.dtypes,
             [spec](const LateBinding<BoundCall>::Shapes& shapes) {
               AicpuSpec whole = spec;
               whole.shapes = shapes;
               return std::make_unique<BoundCall>(std::move(whole));
             }) {}

  static ffi::TypeId id;
  static constexpr XLA_FFI_TypeInfo kInfo = ffi::MakeTypeInfo<State>();

  LateBinding<BoundCall> call;
};
ffi::TypeId State::id = {};

using Int64s = ffi::Span<const int64_t>;

// A program is text, which anyone may have written.
void CheckDescription(const AicpuSpec& spec) {
  const size_t arrays = spec.shapes.size();
  bool agrees = spec.dtypes.size() == arrays && spec.input_count <= arrays;
  if (agrees && spec.dynamic_outputs) {
    agrees = spec.input_count < arrays && spec.dtypes.back() == "int32" &&
             spec.shapes.back().size() == 2;
    if (agrees) {
      size_t highest_rank = 0;
      for (size_t i = spec.input_count; i + 1 < arrays; ++i) {
        highest_rank = std::max(highest_rank, spec.shapes[i].size());
      }
      const std::vector<int64_t> sizes = {static_cast<int64_t>(arrays - 1 - spec.input_count),
                                          static_cast<int64_t>(highest_rank)};
      agrees = spec.shapes.back() == sizes;
    }
  }
  if (!agrees) {
    throw std::runtime_error(Explain(WhoCalls(spec),
                                     "the program's description of the call does not agree with "
                                     "itself",
                                     {}, "Lower the program again with this version of msops."));
  }
}

ffi::ErrorOr<std::unique_ptr<State>> Instantiate(std::string_view op, std::string_view type,
                                                 std::string_view library,
                                                 std::string_view library_name, int64_t inputs,
                                                 Int64s ranks, Int64s dims, std::string_view dtypes,
                                                 Attributes attributes, bool reentrant,
                                                 bool dynamic_outputs) {
  try {
    AicpuSpec spec;
    spec.op = op;
    spec.type = type;
    spec.library_hash = library;
    spec.library_name = library_name;
    spec.shapes = SplitRows(std::vector<int64_t>(dims.begin(), dims.end()),
                            std::vector<int64_t>(ranks.begin(), ranks.end()));
    spec.dtypes = SplitNames(std::string(dtypes));
    spec.attributes = std::move(attributes);
    spec.reentrant = reentrant;
    spec.dynamic_outputs = dynamic_outputs;
    spec.input_count = static_cast<size_t>(inputs);
    CheckDescription(spec);
    return std::make_unique<State>(spec);
  } catch (const std::exception& error) {
    return ffi::Unexpected(ffi::Error(ffi::ErrorCode::kInvalidArgument, error.what()));
  }
}

ffi::Error Execute(ffi::ThreadPool threads, State* state, ffi::RemainingArgs inputs,
                   ffi::RemainingRets outputs) {
  try {
    BoundCall& bound = state->call.For(inputs, outputs);
    Parameters parameters(bound.call.spec().shapes.size());
    bound.check.Fill(inputs, outputs, parameters.data());
    XlaThreadPool pool(threads);
    const PoolScope scope(&pool);
    bound.call.Run(parameters.data(), pool.num_threads());
    return ffi::Error::Success();
  } catch (const std::exception& error) {
    return ffi::Error(ffi::ErrorCode::kInternal, error.what());
  }
}

auto InstantiateBinding() {
  return ffi::Ffi::BindInstantiate()
      .Attr<std::string_view>("op")
      .Attr<std::string_view>("type")
      .Attr<std::string_view>("library")
      .Attr<std::string_view>("library_name")
      .Attr<int64_t>("inputs")
      .Attr<Int64s>("ranks")
      .Attr<Int64s>("dims")
      .Attr<std::string_view>("dtypes")
      .Attr<Attributes>("attributes")
      .Attr<bool>("reentrant")
      .Attr<bool>("dynamic_outputs");
}

auto ExecuteBinding() {
  return ffi::Ffi::BindExecute()
      .Ctx<ffi::ThreadPool>()
      .Ctx<ffi::State<State>>()
      .RemainingArgs()
      .RemainingRets();
}

}  // namespace

FfiHandlers AicpuHandlers() {
  XLA_FFI_DEFINE_HANDLER(instantiate, Instantiate, InstantiateBinding());
  XLA_FFI_DEFINE_HANDLER(execute, Execute, ExecuteBinding());
  return {kTarget, Cpu::kName, &State::id, &State::kInfo, instantiate, execute};
}

}  // namespace msops
