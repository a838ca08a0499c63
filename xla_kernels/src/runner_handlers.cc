// runner_handlers.cc: the XLA custom calls that launch runners of extension modules.
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "call_frame.h"
#include "device_memory.h"
#include "message.h"
#include "runner_store.h"
#include "workspace_pool.h"

namespace msops {
namespace {

namespace ffi = xla::ffi;

constexpr char kTarget[] = "msops_runner";
constexpr int64_t kNoOutput = -1;

// What a program says about a run. Its operands are the inputs of the kernel, then arrays that it
// gets as outputs and updates.
struct RunnerSpec : FrameSpec {
  std::string id;
  size_t input_count = 0;
  std::vector<int64_t> updates;  // for each operand, the output that is its new value, or none
  std::vector<int64_t> type_ids;

  std::string Who() const { return "Runner '" + op + "' on " + platform; }
};

class RunnerCall {
 public:
  using Spec = RunnerSpec;

  explicit RunnerCall(RunnerSpec spec)
      : spec_(std::move(spec)),
        output_count_(spec_.shapes.size() - spec_.operand_count),
        binding_(Find(spec_), KernelArrays(spec_), spec_.input_count) {}

  // Operands and results of the call, then inputs and outputs of the kernel.
  size_t parameter_count() const { return spec_.shapes.size() + spec_.input_count + output_count_; }

  // Launches on the arrays of a frame. An input that is updated is the output that holds its new
  // value; `copy(to, from, operand)` moves the old one there if XLA gave them different memory.
  template <typename Copy>
  void Run(bool is_on_host, void** frame, void* stream, RunnerBinding::Allocator* allocator,
           Copy&& copy) const {
    void** const outputs = frame + spec_.operand_count;
    void** const data = outputs + output_count_;
    for (size_t i = 0; i < spec_.operand_count; ++i) {
      const int64_t output = spec_.updates[i];
      if (output != kNoOutput && frame[i] != outputs[output]) copy(outputs[output], frame[i], i);
      if (i < spec_.input_count) data[i] = output == kNoOutput ? frame[i] : outputs[output];
    }
    for (size_t i = 0; i < output_count_; ++i) data[spec_.input_count + i] = outputs[i];
    if (is_on_host) ReplaceNull(data, spec_.input_count + output_count_);
    try {
      binding_.Launch(data, stream, allocator);
    } catch (const std::exception& error) {
      throw std::runtime_error(Explain(spec_.Who(), "its kernel failed",
                                       {TextOf(error), spec_.DescribeArrays()},
                                       "See the kernel's source."));
    }
  }

 private:
  static std::shared_ptr<const Runner> Find(const RunnerSpec& spec) {
    std::shared_ptr<const Runner> runner = RunnerStore::Get().Find(spec.id);
    if (runner) return runner;
    throw std::runtime_error(Explain(
        spec.Who(), "its program refers to an object of another process, or one that is gone",
        {"runner " + spec.id},
        "Trace the function again in this process: a program with a PyboostRunner cannot "
        "be exported."));
  }

  static std::vector<RunnerArray> KernelArrays(const RunnerSpec& spec) {
    std::vector<RunnerArray> arrays;
    for (size_t i = 0; i < spec.shapes.size(); ++i) {
      if (i >= spec.input_count && i < spec.operand_count) continue;
      arrays.push_back({static_cast<int32_t>(spec.type_ids[i]), spec.shapes[i], {}, 0});
    }
    return arrays;
  }

  const RunnerSpec spec_;
  const size_t output_count_;
  const RunnerBinding binding_;
};

template <typename Platform>
using State = CallState<Platform, RunnerCall>;

// A program is text, which anyone may have written.
void CheckDescription(const RunnerSpec& spec) {
  const auto output_count = static_cast<int64_t>(spec.shapes.size() - spec.operand_count);
  bool agrees = spec.updates.size() == spec.operand_count &&
                spec.input_count <= spec.operand_count &&
                spec.type_ids.size() == spec.shapes.size();
  for (const int64_t output : spec.updates) {
    agrees = agrees && output >= kNoOutput && output < output_count;
  }
  if (!agrees) {
    throw std::runtime_error(Explain(spec.Who(),
                                     "the program's description of the run does not agree with "
                                     "itself",
                                     {}, "Trace the function again in this process."));
  }
}

void ReadSpec(const CallAttributes& attributes, RunnerSpec* spec) {
  spec->id = attributes.Text("runner");
  spec->input_count = static_cast<size_t>(attributes.Number("input_count"));
  spec->updates = attributes.Numbers("updates");
  spec->type_ids = attributes.Numbers("type_ids");
  CheckDescription(*spec);
}

class DeviceAllocator final : public RunnerBinding::Allocator {
 public:
  explicit DeviceAllocator(ffi::ScratchAllocator* scratch) : scratch_(scratch) {}
  void* Allocate(size_t size_bytes) override {
    return TryAllocateOnDevice(scratch_, size_bytes, WorkspacePool::kAlignment);
  }

 private:
  ffi::ScratchAllocator* scratch_;
};

ffi::Error ExecuteOnHost(State<Cpu>* state, ffi::RemainingArgs operands,
                         ffi::RemainingRets results) {
  return state->Execute(operands, results, [&](const RunnerCall& call, void** frame) {
    PoolAllocator allocator;
    call.Run(true, frame, nullptr, &allocator, [&](void* to, const void* from, size_t operand) {
      std::memcpy(to, from, operands.get<ffi::AnyBuffer>(operand)->size_bytes());
    });
  });
}

template <typename Platform>
ffi::Error ExecuteOnDevice(void* stream, ffi::ScratchAllocator scratch, State<Platform>* state,
                           ffi::RemainingArgs operands, ffi::RemainingRets results) {
  return state->Execute(operands, results, [&](const RunnerCall& call, void** frame) {
    DeviceAllocator allocator(&scratch);
    call.Run(false, frame, stream, &allocator, [&](void*, const void*, size_t operand) {
      if (!operands.get<ffi::AnyBuffer>(operand)->size_bytes()) return;
      throw std::runtime_error("XLA gave an array that is updated two buffers");
    });
  });
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
  return State<Platform>::template Handlers<ReadSpec>(kTarget, execute);
}

}  // namespace

FfiHandlers CpuRunnerHandlers() {
  XLA_FFI_DEFINE_HANDLER(
      execute, ExecuteOnHost,
      ffi::Ffi::BindExecute().Ctx<ffi::State<State<Cpu>>>().RemainingArgs().RemainingRets());
  return State<Cpu>::Handlers<ReadSpec>(kTarget, execute);
}

FfiHandlers CudaRunnerHandlers() { return DeviceHandlers<Cuda>(); }

FfiHandlers RocmRunnerHandlers() { return DeviceHandlers<Rocm>(); }

}  // namespace msops
