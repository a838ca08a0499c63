// index_handlers.cc: the XLA custom call that gives back indices if all of them are in range, and
// fails if one is not.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "call_frame.h"
#include "message.h"

namespace msops {
namespace {

namespace ffi = xla::ffi;

// What a program says about indices: the operation that takes them, and what they count.
struct IndexSpec : FrameSpec {
  int64_t extent = 0;
  std::string place;  // such as " along axis 0"

  const std::string& Who() const { return op; }
};

// Returns the first element that is not in [-extent, extent), as text; empty if there is none.
template <typename T>
std::string FindOutside(const void* data, size_t count, int64_t extent) {
  const T* const indices = static_cast<const T*>(data);
  if (extent <= 0) return std::to_string(indices[0]);
  // In the indices' own type, and without a branch in the loop: compilers make vectors of it.
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<T>::max());
  const auto size = static_cast<uint64_t>(extent);
  const T high = static_cast<T>(std::min(size - 1, kMax));
  const T low = std::is_signed_v<T> ? static_cast<T>(-std::min(size, kMax + 1)) : T{0};
  T outside = 0;
  for (size_t i = 0; i < count; ++i) {
    outside |= static_cast<T>(indices[i] < low) | static_cast<T>(indices[i] > high);
  }
  if (!outside) return "";
  const T* const first = std::find_if(indices, indices + count,
                                      [low, high](T index) { return index < low || index > high; });
  return std::to_string(*first);
}

struct IndexType {
  const char* name;
  size_t size;
  std::string (*find)(const void* data, size_t count, int64_t extent);
};

constexpr IndexType kTypes[] = {
    {"int8", 1, FindOutside<int8_t>},     {"int16", 2, FindOutside<int16_t>},
    {"int32", 4, FindOutside<int32_t>},   {"int64", 8, FindOutside<int64_t>},
    {"uint8", 1, FindOutside<uint8_t>},   {"uint16", 2, FindOutside<uint16_t>},
    {"uint32", 4, FindOutside<uint32_t>}, {"uint64", 8, FindOutside<uint64_t>},
};

class IndexCall {
 public:
  using Spec = IndexSpec;

  explicit IndexCall(IndexSpec spec) : spec_(std::move(spec)), type_(TypeOf(spec_)) {
    for (const int64_t extent : spec_.shapes[0]) count_ *= static_cast<size_t>(extent);
  }

  size_t parameter_count() const { return spec_.shapes.size(); }

  // Copies the indices to the result. Throws std::runtime_error if one is out of range.
  void Run(void** parameters) const {
    if (count_ == 0) return;
    const std::string outside = type_.find(parameters[0], count_, spec_.extent);
    if (!outside.empty()) {
      throw std::runtime_error(Explain(spec_.Who(),
                                       "expected indices from " + std::to_string(-spec_.extent) +
                                           " to " + std::to_string(spec_.extent - 1) + spec_.place +
                                           "; got " + outside,
                                       {}, "Fix the index, or take a larger array."));
    }
    if (parameters[1] != parameters[0]) {
      std::memcpy(parameters[1], parameters[0], count_ * type_.size);
    }
  }

 private:
  static const IndexType& TypeOf(const IndexSpec& spec) {
    // A program is text, which anyone may have written.
    const bool agrees = spec.operand_count == 1 && spec.shapes.size() == 2 &&
                        spec.shapes[0] == spec.shapes[1] && spec.dtypes[0] == spec.dtypes[1];
    for (const IndexType& type : kTypes) {
      if (agrees && spec.dtypes[0] == type.name) return type;
    }
    throw std::runtime_error(Explain(spec.Who(),
                                     "the program's description of the call does not agree with "
                                     "itself",
                                     {}, "Lower the program again with this version of msops."));
  }

  const IndexSpec spec_;
  const IndexType& type_;
  size_t count_ = 1;
};

using State = CallState<Cpu, IndexCall>;

void ReadSpec(const CallAttributes& attributes, IndexSpec* spec) {
  spec->extent = attributes.Number("extent");
  spec->place = attributes.Text("place");
}

ffi::Error Execute(State* state, ffi::RemainingArgs inputs, ffi::RemainingRets outputs) {
  return state->Execute(inputs, outputs,
                        [](const IndexCall& call, void** parameters) { call.Run(parameters); });
}

}  // namespace

FfiHandlers IndexHandlers() {
  XLA_FFI_DEFINE_HANDLER(
      execute, Execute,
      ffi::Ffi::BindExecute().Ctx<ffi::State<State>>().RemainingArgs().RemainingRets());
  return State::Handlers<ReadSpec>("msops_indices", execute);
}

}  // namespace msops
