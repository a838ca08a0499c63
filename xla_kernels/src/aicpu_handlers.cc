// aicpu_handlers.cc: the FFI handlers that serve every AICPU kernel.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "aicpu_call.h"
#include "call_frame.h"
#include "message.h"
#include "parallel_for.h"
#include "xla_thread_pool.h"

namespace msops {
namespace {

namespace ffi = xla::ffi;

using State = CallState<Cpu, AicpuCall>;

// A program is text, which anyone may have written.
void CheckDescription(const AicpuSpec& spec) {
  const size_t arrays = spec.shapes.size();
  bool agrees = spec.dtypes.size() == arrays;
  if (agrees && spec.dynamic_outputs) {
    agrees = spec.operand_count < arrays && spec.dtypes.back() == "int32" &&
             spec.shapes.back().size() == 2;
    if (agrees) {
      size_t highest_rank = 0;
      for (size_t i = spec.operand_count; i + 1 < arrays; ++i) {
        highest_rank = std::max(highest_rank, spec.shapes[i].size());
      }
      const std::vector<int64_t> sizes = {static_cast<int64_t>(arrays - 1 - spec.operand_count),
                                          static_cast<int64_t>(highest_rank)};
      agrees = spec.shapes.back() == sizes;
    }
  }
  if (!agrees) {
    throw std::runtime_error(Explain(spec.Who(),
                                     "the program's description of the call does not agree with "
                                     "itself",
                                     {}, "Lower the program again with this version of msops."));
  }
}

void ReadSpec(const CallAttributes& attributes, AicpuSpec* spec) {
  spec->type = attributes.Text("type");
  spec->library_hash = attributes.Text("library");
  spec->library_name = attributes.Text("library_name");
  spec->attributes = attributes.OfOp();
  spec->reentrant = attributes.Flag("reentrant");
  spec->dynamic_outputs = attributes.Flag("dynamic_outputs");
  spec->writable = attributes.Flag("writable");
  CheckDescription(*spec);
}

ffi::Error Execute(ffi::ThreadPool threads, State* state, ffi::RemainingArgs inputs,
                   ffi::RemainingRets outputs) {
  return state->Execute(inputs, outputs, [&](AicpuCall& call, void** parameters) {
    XlaThreadPool pool(threads);
    const PoolScope scope(&pool);
    call.RunOnCopies(parameters, pool.num_threads());
  });
}

}  // namespace

FfiHandlers AicpuHandlers() {
  XLA_FFI_DEFINE_HANDLER(execute, Execute,
                         ffi::Ffi::BindExecute()
                             .Ctx<ffi::ThreadPool>()
                             .Ctx<ffi::State<State>>()
                             .RemainingArgs()
                             .RemainingRets());
  return State::Handlers<ReadSpec>("msops_aicpu", execute);
}

}  // namespace msops
