#include "aicpu_call.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <variant>

#include "aicpu/cpu_types.h"
#include "input_copies.h"
#include "message.h"
#include "padded_output.h"
#include "parallel_for.h"
#include "python_log.h"

namespace msops {
namespace {

constexpr char kLogger[] = "msops.aicpu";

struct Dtype {
  const char* name;
  aicpu::DataType number;
};

constexpr Dtype kDtypes[] = {
    {"bool", aicpu::DT_BOOL},
    {"int8", aicpu::DT_INT8},
    {"int16", aicpu::DT_INT16},
    {"int32", aicpu::DT_INT32},
    {"int64", aicpu::DT_INT64},
    {"uint8", aicpu::DT_UINT8},
    {"uint16", aicpu::DT_UINT16},
    {"uint32", aicpu::DT_UINT32},
    {"uint64", aicpu::DT_UINT64},
    {"float16", aicpu::DT_FLOAT16},
    {"bfloat16", aicpu::DT_BFLOAT16},
    {"float32", aicpu::DT_FLOAT},
    {"float64", aicpu::DT_DOUBLE},
    {"complex64", aicpu::DT_COMPLEX64},
    {"complex128", aicpu::DT_COMPLEX128},
};

const char* StatusName(uint32_t code) {
  switch (code) {
    case 1:
      return " (KERNEL_STATUS_PARAM_INVALID)";
    case 2:
      return " (KERNEL_STATUS_INNER_ERROR)";
    case 3:
      return " (KERNEL_STATUS_TIMEOUT)";
    case 4:
      return " (KERNEL_STATUS_PROTOBUF_ERROR)";
    case 5:
      return " (KERNEL_STATUS_SHARDER_ERROR)";
    case 201:
      return " (KERNEL_STATUS_END_OF_SEQUENCE)";
    default:
      return "";
  }
}

std::string Describe(const std::vector<int64_t>& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

}  // namespace

// One run of the kernel: what it says while it computes.
class AicpuCall::Execution {
 public:
  Execution(const AicpuCall& site, int64_t threads)
      : site_(site), threads_(threads), output_count_(CountOutputs(site.spec_)) {}

  size_t output_count() const { return output_count_; }

  // Returns the shape the kernel gave an output.
  const std::vector<int64_t>& shape(size_t output) const {
    return changed_.empty() || !changed_[output].is_set ? declared(output) : changed_[output].dims;
  }
  const std::vector<int64_t>& declared(size_t output) const {
    return site_.spec_.shapes[site_.spec_.operand_count + output];
  }

  // Returns the last lines of errors, each with its end.
  std::string errors() const {
    std::string text;
    for (const std::string& line : last_errors_) text.append(line).append("\n");
    return text;
  }

  static const MsopsAicpuHost kHost;

 private:
  struct Changed {
    bool is_set = false;
    std::vector<int64_t> dims;
  };

  static size_t CountOutputs(const AicpuSpec& spec) {
    return spec.shapes.size() - spec.operand_count - (spec.dynamic_outputs ? 1 : 0);
  }

  static Execution& Of(void* call) { return *static_cast<Execution*>(call); }

  static int64_t ThreadCount(void* call) { return Of(call).threads_; }

  static int WantsLog(void* call, int level) {
    if (level >= MSOPS_AICPU_ERROR) return 1;
    Execution& self = Of(call);
    // Asked once per run: a kernel may log in its inner loop, and Python's lock is not free.
    int lowest = self.lowest_level_.load(std::memory_order_relaxed);
    if (lowest == kUnknown) self.lowest_level_ = lowest = PythonLogLevel(kLogger);
    return level >= lowest;
  }

  static void Log(void* call, int level, const char* file, int line, const char* function,
                  const char* text) {
    Execution& self = Of(call);
    if (level >= MSOPS_AICPU_ERROR) {
      std::lock_guard<std::mutex> lock(self.mutex_);
      self.last_errors_.emplace_back(text);
      if (self.last_errors_.size() > kMostErrors) self.last_errors_.pop_front();
    }
    LogToPython(kLogger, level, file, line, function, text);
  }

  static void SetShape(void* call, uint32_t output, int32_t rank, const int64_t* dims) {
    Execution& self = Of(call);
    const std::vector<int64_t>& declared = self.declared(output);
    if (std::equal(dims, dims + rank, declared.begin(), declared.end())) return;
    self.changed_.resize(self.output_count_);
    self.changed_[output] = {true, std::vector<int64_t>(dims, dims + rank)};
  }

  static constexpr int kUnknown = -1;
  // A kernel says in its last line that a check failed, and the check in the line before, why.
  static constexpr size_t kMostErrors = 3;

  const AicpuCall& site_;
  const int64_t threads_;
  const size_t output_count_;
  std::vector<Changed> changed_;
  std::atomic<int> lowest_level_{kUnknown};
  std::mutex mutex_;
  std::deque<std::string> last_errors_;
};

const MsopsAicpuHost AicpuCall::Execution::kHost = {&ParallelFor, &ThreadCount, &WantsLog, &Log,
                                                    &SetShape};

AicpuCall::AicpuCall(AicpuSpec spec)
    : spec_(std::move(spec)),
      library_(LibraryStore::Get().Open(spec_.library_hash, spec_.library_name)) {
  CheckLibrary();
  ReadTensors();
  ReadAttributes();
  if (!spec_.reentrant) library_.Serialise();
}

std::string AicpuCall::Location() const {
  return "kernel " + spec_.type + " of library " + library_.Label();
}

void AicpuCall::CheckLibrary() {
  const auto version =
      reinterpret_cast<uint32_t (*)()>(library_.FindFunction("msops_aicpu_version"));
  if (!version || version() != MSOPS_AICPU_VERSION) {
    const std::string found = version ? "version " + std::to_string(version()) : "none";
    throw std::runtime_error(
        Explain(Who(),
                "expected a library of AICPU kernels for version " +
                    std::to_string(MSOPS_AICPU_VERSION) + " of msops's headers, got " + found,
                {"library " + library_.Label()},
                "Build the library against the headers in msops.get_include() + \"/aicpu\", or "
                "give its sources as func."));
  }
  const auto has = reinterpret_cast<int (*)(const char*)>(library_.FindFunction("msops_aicpu_has"));
  if (!has(spec_.type.c_str())) {
    const auto names =
        reinterpret_cast<const char* (*)()>(library_.FindFunction("msops_aicpu_kernels"));
    std::string known = names();
    if (!known.empty()) known.pop_back();
    std::replace(known.begin(), known.end(), '\n', ' ');
    throw std::runtime_error(
        Explain(Who(), "library " + library_.Label() + " has no kernel " + spec_.type,
                {"it has: " + (known.empty() ? "none" : known)},
                "Give the op info the name that the source registers, "
                "CustomRegOp(\"" +
                    spec_.type + "\"), or name another library by cust_aicpu."));
  }
  compute_ = reinterpret_cast<Compute>(library_.FindFunction("msops_aicpu_compute"));
}

void AicpuCall::ReadTensors() {
  for (size_t i = 0; i < spec_.shapes.size(); ++i) {
    const auto* const found =
        std::find_if(std::begin(kDtypes), std::end(kDtypes),
                     [&](const Dtype& dtype) { return spec_.dtypes[i] == dtype.name; });
    if (found == std::end(kDtypes)) {
      throw std::runtime_error(Explain(Who(), "AICPU kernels have no dtype " + spec_.dtypes[i], {},
                                       "Cast to a dtype of msops.common.dtype."));
    }
    uint64_t size_bytes = static_cast<uint64_t>(aicpu::GetSizeByDataType(found->number));
    for (const int64_t dim : spec_.shapes[i]) size_bytes *= static_cast<uint64_t>(dim);
    tensors_.push_back({nullptr, size_bytes, found->number,
                        static_cast<int32_t>(spec_.shapes[i].size()), spec_.shapes[i].data()});
  }
}

void AicpuCall::ReadAttributes() {
  const auto& entries = spec_.attributes.entries();
  // Pointers into these are handed out, so they must not move.
  names_.reserve(entries.size());
  for (const auto& entry : entries) {
    names_.emplace_back(entry.name.begin(), entry.name.end());
    MsopsAicpuAttribute attribute = {names_.back().c_str(), 0, 0, nullptr, 1, nullptr, 0};
    const auto view = [](const Text& text) { return MsopsAicpuText{text.data(), text.size()}; };
    const bool is_readable = std::visit(
        [&](const auto& value) {
          using Value = std::decay_t<decltype(value)>;
          const auto set = [&](int kind, int depth, const void* values, uint64_t count) {
            attribute.kind = kind;
            attribute.depth = depth;
            attribute.values = values;
            attribute.count = count;
          };
          const auto flatten = [&](int kind, const auto& rows) {
            lengths_.emplace_back();
            flat_values_.emplace_back();
            uint64_t count = 0;
            for (const auto& row : rows) {
              lengths_.back().push_back(static_cast<int64_t>(row.size()));
              const char* const begin = reinterpret_cast<const char*>(row.data());
              flat_values_.back().insert(flat_values_.back().end(), begin,
                                         begin + row.size() * sizeof(row[0]));
              count += row.size();
            }
            set(kind, 2, flat_values_.back().data(), count);
            attribute.lengths = lengths_.back().data();
            attribute.rows = lengths_.back().size();
          };
          if constexpr (std::is_same_v<Value, bool>) {
            set(MSOPS_AICPU_BOOL, 0, &value, 1);
          } else if constexpr (std::is_same_v<Value, int64_t>) {
            set(MSOPS_AICPU_INT, 0, &value, 1);
          } else if constexpr (std::is_same_v<Value, double>) {
            set(MSOPS_AICPU_FLOAT, 0, &value, 1);
          } else if constexpr (std::is_same_v<Value, Text>) {
            texts_.push_back({view(value)});
            set(MSOPS_AICPU_TEXT, 0, texts_.back().data(), 1);
          } else if constexpr (std::is_same_v<Value, std::vector<int64_t>>) {
            set(MSOPS_AICPU_INT, 1, value.data(), value.size());
          } else if constexpr (std::is_same_v<Value, std::vector<double>>) {
            set(MSOPS_AICPU_FLOAT, 1, value.data(), value.size());
          } else if constexpr (std::is_same_v<Value, Bools>) {
            set(MSOPS_AICPU_BOOL, 1, value.data(), value.size());
          } else if constexpr (std::is_same_v<Value, std::vector<Text>>) {
            texts_.emplace_back();
            for (const Text& text : value) texts_.back().push_back(view(text));
            set(MSOPS_AICPU_TEXT, 1, texts_.back().data(), value.size());
          } else if constexpr (std::is_same_v<Value, Rows<int64_t>>) {
            flatten(MSOPS_AICPU_INT, value);
          } else if constexpr (std::is_same_v<Value, Rows<double>>) {
            flatten(MSOPS_AICPU_FLOAT, value);
          } else {
            return false;
          }
          return true;
        },
        entry.value);
    if (is_readable) attributes_.push_back(attribute);
  }
}

void AicpuCall::Run(void** parameters, int64_t threads) {
  std::vector<MsopsAicpuTensor> tensors = tensors_;
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].data = parameters[i];
  Execution execution(*this, threads);
  const MsopsAicpuCall call = {
      &Execution::kHost,
      &execution,
      spec_.type.c_str(),
      tensors.data(),
      static_cast<uint32_t>(spec_.operand_count),
      tensors.data() + spec_.operand_count,
      static_cast<uint32_t>(execution.output_count()),
      attributes_.data(),
      static_cast<uint32_t>(attributes_.size()),
  };
  uint32_t code = 0;
  try {
    std::unique_lock<std::mutex> lock(library_.call_mutex(), std::defer_lock);
    if (library_.is_serialised()) lock.lock();
    code = compute_(&call);
  } catch (...) {
    throw std::runtime_error(
        Explain(Who(), "Compute threw an exception, expected it to return 0",
                {DescribeCurrentException(), Location(), spec_.DescribeArrays()},
                "Pass what the kernel asks for, or handle the case in its source."));
  }
  if (code != 0) {
    throw std::runtime_error(Explain(
        Who(), "Compute returned " + std::to_string(code) + StatusName(code) + ", expected 0",
        {execution.errors() + Location(), spec_.DescribeArrays()},
        "Pass what the kernel asks for; what else it said is in Python's log msops.aicpu."));
  }
  Finish(execution, parameters);
}

void AicpuCall::RunOnCopies(void** parameters, int64_t threads) {
  if (!spec_.writable) return Run(parameters, threads);
  std::vector<size_t> sizes_bytes;
  for (size_t i = 0; i < spec_.operand_count; ++i) sizes_bytes.push_back(tensors_[i].size_bytes);
  std::optional<InputCopies> copies;
  try {
    copies.emplace(sizes_bytes, parameters, parameter_count());
  } catch (const std::bad_alloc&) {
    throw std::runtime_error(
        Explain(Who(), "no memory for copies of its inputs, which the kernel may write to", {},
                "Leave more memory, or pass writable=False if the kernel only reads its inputs."));
  }
  Run(parameters, threads);
}

void AicpuCall::Finish(const Execution& execution, void** parameters) const {
  for (size_t i = 0; i < execution.output_count(); ++i) {
    const std::vector<int64_t>&dims = execution.shape(i), &room = execution.declared(i);
    if (dims == room) continue;
    const std::string what = "the kernel gave output " + std::to_string(i) + " the shape " +
                             Describe(dims) + ", out_shape declares " + Describe(room);
    if (!spec_.dynamic_outputs) {
      throw std::runtime_error(
          Explain(Who(), what, {Location()},
                  "Make the op with dynamic_outputs=True to get the true shapes as one more "
                  "output, or declare this shape in out_shape."));
    }
    const bool fits = dims.size() == room.size() &&
                      std::equal(dims.begin(), dims.end(), room.begin(),
                                 [](int64_t dim, int64_t most) { return 0 <= dim && dim <= most; });
    if (!fits) {
      throw std::runtime_error(Explain(Who(), what, {Location()},
                                       "Declare the largest shape the output can have, with as "
                                       "many axes."));
    }
    const MsopsAicpuTensor& tensor = tensors_[spec_.operand_count + i];
    const auto dtype = static_cast<aicpu::DataType>(tensor.dtype);
    SpreadIntoRoom(static_cast<char*>(parameters[spec_.operand_count + i]), dims, room,
                   static_cast<size_t>(aicpu::GetSizeByDataType(dtype)));
  }
  if (!spec_.dynamic_outputs) return;
  const size_t highest_rank = static_cast<size_t>(spec_.shapes.back().back());
  auto* next = static_cast<int32_t*>(parameters[spec_.shapes.size() - 1]);
  for (size_t i = 0; i < execution.output_count(); ++i) {
    const std::vector<int64_t>& dims = execution.shape(i);
    for (size_t axis = 0; axis < highest_rank; ++axis) {
      *next++ = axis < dims.size() ? static_cast<int32_t>(dims[axis]) : 1;
    }
  }
}

}  // namespace msops
