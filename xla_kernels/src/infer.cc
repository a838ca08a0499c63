#include "infer.h"

#include <memory>

#include "call_table.h"
#include "extra_host.h"
#include "library_store.h"
#include "message.h"

namespace msops {
namespace {

// Kernel authors declare this enum themselves, each with the enumerators they use.
enum TypeId : int {};

// One companion and the AotExtra it is given, which lives for this one question, as does kernel
// data that the companion may attach to it.
class Companion {
 public:
  Companion(const InferSpec& spec, const char* suffix)
      : name_(spec.symbol + suffix),
        library_(LibraryStore::Get().Open(spec.library_hash, "library")),
        function_(library_.FindFunction(name_)),
        extra_(MakeExtra(spec.attributes, library_.has_old_string_abi())) {
    if (!function_) {
      throw MissingCompanion(Explain("Library " + library_.Label(),
                                     "expected a function " + name_ + ", found none", {},
                                     "Add it to the source, or pass out_shape and out_dtype."));
    }
  }

  // Calls the companion as a function of type `Result(Arguments..., AotExtra*)`.
  template <typename Result, typename... Arguments>
  Result Call(Arguments... arguments) const {
    try {
      return reinterpret_cast<Result (*)(Arguments..., void*)>(function_)(arguments...,
                                                                          extra_->pointer());
    } catch (...) {
      throw std::runtime_error(Explain(name_ + " of library " + library_.Label(),
                                       "threw an exception", {DescribeCurrentException()},
                                       "Pass what it asks for, or handle the case in its source."));
    }
  }

 private:
  const std::string name_;
  const Library& library_;
  void* const function_;
  const std::unique_ptr<ExtraHost> extra_;
};

}  // namespace

std::vector<std::vector<int64_t>> InferShape(const InferSpec& spec,
                                             const std::vector<std::vector<int64_t>>& input_shapes,
                                             const std::vector<std::string>& input_dtypes) {
  const Companion companion(spec, "InferShape");
  CallTable table(input_shapes, input_dtypes, input_shapes.size());
  using Shape = std::vector<int64_t>;
  if (spec.multiple) return companion.Call<std::vector<Shape>>(table.ndims(), table.shapes());
  return {companion.Call<Shape>(table.ndims(), table.shapes())};
}

std::vector<int> InferType(const InferSpec& spec, const std::vector<int>& input_type_ids) {
  const Companion companion(spec, "InferType");
  std::vector<TypeId> inputs;
  for (int id : input_type_ids) inputs.push_back(static_cast<TypeId>(id));
  if (!spec.multiple) return {companion.Call<TypeId>(inputs)};
  const auto outputs = companion.Call<std::vector<TypeId>>(inputs);
  return {outputs.begin(), outputs.end()};
}

}  // namespace msops
