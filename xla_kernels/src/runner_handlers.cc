#include "runner_handlers.h"

#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attributes.h"
#include "call_table.h"
#include "frame_check.h"
#include "message.h"
#include "parameters.h"
#include "platforms.h"
#include "runner_store.h"
#include "workspace_pool.h"

namespace msops {
namespace {

namespace ffi = xla::ffi;

constexpr char kTarget[] = "msops_runner";
constexpr int64_t kNoOutput = -1;

using Int64s = ffi::Span<const int64_t>;

// What instantiate leaves for execute. The operands of the call are the inputs of the kernel, then
// arrays that it gets as outputs and updates.
template <typename Platform>
struct State {
  static ffi::TypeId id;
  static constexpr XLA_FFI_TypeInfo kInfo = ffi::MakeTypeInfo<State>();

  std::string who;
  std::optional<FrameCheck> check;
  std::optional<RunnerBinding> binding;
  size_t operand_count;
  size_t input_count;
  size_t output_count;
  std::vector<int64_t> updates;  // for each operand, the output that is its new value, or none
};
template <typename Platform>
ffi::TypeId State<Platform>::id = {};

template <typename Platform>
ffi::ErrorOr<std::unique_ptr<State<Platform>>> Instantiate(
    std::string_view op, std::string_view runner_id, int64_t input_count, Int64s updates,
    Int64s ranks, Int64s dims, std::string_view dtypes, Int64s type_ids) {
  try {
    auto state = std::make_unique<State<Platform>>();
    state->who = "Runner '" + std::string(op) + "' on " + Platform::kShownName;
    std::shared_ptr<const Runner> runner = RunnerStore::Get().Find(std::string(runner_id));
    if (!runner) {
      throw std::runtime_error(Explain(
          state->who, "its program refers to an object of another process, or one that is gone",
          {"runner " + std::string(runner_id)},
          "Trace the function again in this process: a program with a PyboostRunner cannot "
          "be exported."));
    }
    const auto shapes = SplitRows(std::vector<int64_t>(dims.begin(), dims.end()),
                                  std::vector<int64_t>(ranks.begin(), ranks.end()));
    state->check.emplace(state->who, shapes, SplitNames(std::string(dtypes)));
    state->updates.assign(updates.begin(), updates.end());
    state->operand_count = updates.size();
    state->input_count = static_cast<size_t>(input_count);
    state->output_count = shapes.size() - state->operand_count;
    std::vector<RunnerArray> arrays;
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (i >= state->input_count && i < state->operand_count) continue;
      arrays.push_back({static_cast<int32_t>(type_ids[i]), shapes[i], {}, 0});
    }
    state->binding.emplace(std::move(runner), arrays, state->input_count);
    return state;
  } catch (const std::exception& error) {
    return ffi::Unexpected(ffi::Error(ffi::ErrorCode::kInvalidArgument, error.what()));
  }
}

// Runs `body`, which may throw.
template <typename Body>
ffi::Error Reported(const std::string& who, Body&& body) {
  try {
    body();
    return ffi::Error::Success();
  } catch (const std::exception& error) {
    return ffi::Error(ffi::ErrorCode::kInternal, Explain(who, "its kernel failed", {error.what()},
                                                         "See the kernel's source."));
  }
}

// Addresses as the kernel gets them: inputs, then outputs. An input that is updated is the output
// that holds its new value; `copy` moves the old one there if XLA gave them different memory.
template <typename Platform, typename Copy>
void FillAddresses(const State<Platform>& state, ffi::RemainingArgs operands,
                   ffi::RemainingRets results, void** frame, void** data, Copy&& copy) {
  state.check->Fill(operands, results, frame);
  void** const outputs = frame + state.operand_count;
  for (size_t i = 0; i < state.operand_count; ++i) {
    const int64_t output = state.updates[i];
    if (output != kNoOutput && frame[i] != outputs[output]) {
      copy(outputs[output], frame[i], operands.get<ffi::AnyBuffer>(i)->size_bytes());
    }
    if (i < state.input_count) data[i] = output == kNoOutput ? frame[i] : outputs[output];
  }
  for (size_t i = 0; i < state.output_count; ++i) data[state.input_count + i] = outputs[i];
}

class DeviceAllocator final : public RunnerBinding::Allocator {
 public:
  explicit DeviceAllocator(ffi::ScratchAllocator* scratch) : scratch_(scratch) {}
  void* Allocate(size_t size_bytes) override {
    return scratch_->Allocate(size_bytes, WorkspacePool::kAlignment).value_or(nullptr);
  }

 private:
  ffi::ScratchAllocator* scratch_;
};

ffi::Error ExecuteOnHost(State<Cpu>* state, ffi::RemainingArgs operands,
                         ffi::RemainingRets results) {
  return Reported(state->who, [&] {
    Parameters frame(state->operand_count + state->output_count);
    Parameters data(state->input_count + state->output_count);
    FillAddresses(*state, operands, results, frame.data(), data.data(), std::memcpy);
    // Buffers without elements come without memory; kernels may yet look for null pointers.
    alignas(WorkspacePool::kAlignment) static char nothing[WorkspacePool::kAlignment];
    for (size_t i = 0; i < state->input_count + state->output_count; ++i) {
      if (!data.data()[i]) data.data()[i] = nothing;
    }
    PoolAllocator allocator;
    state->binding->Launch(data.data(), nullptr, &allocator);
  });
}

template <typename Platform>
ffi::Error ExecuteOnDevice(void* stream, ffi::ScratchAllocator scratch, State<Platform>* state,
                           ffi::RemainingArgs operands, ffi::RemainingRets results) {
  return Reported(state->who, [&] {
    Parameters frame(state->operand_count + state->output_count);
    Parameters data(state->input_count + state->output_count);
    FillAddresses(*state, operands, results, frame.data(), data.data(),
                  [](void*, const void*, size_t size_bytes) {
                    if (!size_bytes) return;
                    throw std::runtime_error("XLA gave an array that is updated two places");
                  });
    DeviceAllocator allocator(&scratch);
    state->binding->Launch(data.data(), stream, &allocator);
  });
}

template <typename Platform>
FfiHandlers Handlers(XLA_FFI_Handler* execute) {
  XLA_FFI_DEFINE_HANDLER(instantiate, Instantiate<Platform>,
                         ffi::Ffi::BindInstantiate()
                             .template Attr<std::string_view>("op")
                             .template Attr<std::string_view>("runner")
                             .template Attr<int64_t>("input_count")
                             .template Attr<Int64s>("updates")
                             .template Attr<Int64s>("ranks")
                             .template Attr<Int64s>("dims")
                             .template Attr<std::string_view>("dtypes")
                             .template Attr<Int64s>("type_ids"));
  return {kTarget,     Platform::kName, &State<Platform>::id, &State<Platform>::kInfo,
          instantiate, execute};
}

template <typename Platform>
FfiHandlers DeviceHandlers() {
  XLA_FFI_DEFINE_HANDLER(execute, ExecuteOnDevice<Platform>,
                         ffi::Ffi::BindExecute()
                             .template Ctx<ffi::PlatformStream<void*>>()
                             .template Ctx<ffi::ScratchAllocator>()
                             .template Ctx<ffi::State<State<Platform>>>()
                             .RemainingArgs()
                             .RemainingRets());
  return Handlers<Platform>(execute);
}

}  // namespace

FfiHandlers CpuRunnerHandlers() {
  XLA_FFI_DEFINE_HANDLER(
      execute, ExecuteOnHost,
      ffi::Ffi::BindExecute().Ctx<ffi::State<State<Cpu>>>().RemainingArgs().RemainingRets());
  return Handlers<Cpu>(execute);
}

FfiHandlers CudaRunnerHandlers() { return DeviceHandlers<Cuda>(); }

FfiHandlers RocmRunnerHandlers() { return DeviceHandlers<Rocm>(); }

}  // namespace msops
