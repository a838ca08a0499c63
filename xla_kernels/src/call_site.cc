#include "call_site.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "message.h"

namespace msops {
namespace {

// MindSpore's allocators round sizes up so, and kernels in the wild lean on it.
constexpr size_t kWorkspaceUnitBytes = 512;

// A workspace of no bytes still gets a pointer of its own.
size_t RoundedWorkspaceBytes(size_t size_bytes) {
  const size_t units = size_bytes / kWorkspaceUnitBytes + (size_bytes % kWorkspaceUnitBytes != 0);
  return std::max<size_t>(units, 1) * kWorkspaceUnitBytes;
}

}  // namespace

CallSite::CallSite(CallSpec spec)
    : spec_(std::move(spec)),
      library_(LibraryStore::Get().Open(spec_.library_hash, spec_.library_name)),
      kernel_(reinterpret_cast<Kernel>(library_.FindFunction(spec_.symbol))),
      extra_(MakeExtra(spec_.attributes, library_.has_old_string_abi())),
      init_table_(spec_.shapes, spec_.dtypes, spec_.shapes.size()),
      table_(spec_.shapes, spec_.dtypes, spec_.shapes.size()) {
  if (!kernel_) {
    throw std::runtime_error(Explain(Who(), "expected a function in a library, found none",
                                     {Location(spec_.symbol)},
                                     "Declare the kernel extern \"C\", and spell its name in func "
                                     "as in its source."));
  }
  if (!spec_.reentrant) library_.Serialise();
  const std::string init = spec_.symbol + "Init";
  if (auto* const function = reinterpret_cast<Init>(library_.FindFunction(init))) RunInit(function);
  LayOutWorkspaces();
  has_kernel_data_ = extra_->has_kernel_data();
}

std::string CallSite::Location(const std::string& symbol) const {
  return "symbol " + symbol + " of library " + library_.Label();
}

void CallSite::RunInit(Init init) {
  const std::string name = spec_.symbol + "Init";
  std::unique_lock<std::mutex> library_lock(library_.call_mutex(), std::defer_lock);
  if (library_.is_serialised()) library_lock.lock();
  int code = 0;
  try {
    code = init(init_table_.ndims(), init_table_.shapes(), init_table_.dtypes(), extra_->pointer());
  } catch (...) {
    throw std::runtime_error(
        Explain(Who(), "Init threw an exception, expected it to return 0",
                {DescribeCurrentException(), Location(name), spec_.DescribeArrays()},
                "Pass what Init asks for, or handle the case in its source."));
  }
  if (code != 0) {
    throw std::runtime_error(Explain(Who(),
                                     "Init returned " + std::to_string(code) + ", expected 0",
                                     {Location(name), spec_.DescribeArrays()},
                                     "The value is the kernel's own error code; see its source."));
  }
}

void CallSite::LayOutWorkspaces() {
  std::vector<size_t> sizes = spec_.workspace_sizes_bytes;
  const std::vector<size_t>& asked = extra_->workspace_sizes_bytes();
  sizes.insert(sizes.end(), asked.begin(), asked.end());
  for (size_t size_bytes : sizes) {
    const size_t rounded = RoundedWorkspaceBytes(size_bytes);
    // Leaves room for the rounding of the whole block, too.
    constexpr size_t kLimit = std::numeric_limits<size_t>::max() / 2;
    if (rounded < size_bytes || rounded > kLimit - workspace_bytes_) {
      throw std::runtime_error(
          Explain(Who(), "Init asked for a workspace of " + std::to_string(size_bytes) + " bytes",
                  {Location(spec_.symbol + "Init")},
                  "Pass sizes in bytes to SetWorkSpace, none of them negative."));
    }
    workspace_offsets_.push_back(workspace_bytes_);
    workspace_bytes_ += rounded;
  }
  parameter_count_ = spec_.shapes.size() + sizes.size();
  if (!sizes.empty()) table_ = CallTable(spec_.shapes, spec_.dtypes, parameter_count_);
}

std::vector<size_t> CallSite::workspace_sizes_bytes() const {
  std::vector<size_t> sizes;
  for (size_t i = 0; i < workspace_offsets_.size(); ++i) {
    const bool is_last = i + 1 == workspace_offsets_.size();
    const size_t end = is_last ? workspace_bytes_ : workspace_offsets_[i + 1];
    sizes.push_back(end - workspace_offsets_[i]);
  }
  return sizes;
}

void CallSite::PlaceWorkspaces(char* block, void** parameters) const {
  void** next = parameters + spec_.shapes.size();
  for (size_t offset : workspace_offsets_) *next++ = block + offset;
}

int CallSite::Call(void** parameters, void* stream) {
  // Both locks are taken in this order everywhere, so calls cannot wait for each other in a ring.
  std::unique_lock<std::mutex> library_lock(library_.call_mutex(), std::defer_lock);
  std::unique_lock<std::mutex> data_lock(data_mutex_, std::defer_lock);
  if (library_.is_serialised()) library_lock.lock();
  if (has_kernel_data_) data_lock.lock();
  return kernel_(static_cast<int>(parameter_count_), parameter_count_ ? parameters : nullptr,
                 table_.ndims(), table_.shapes(), table_.dtypes(), stream, extra_->pointer());
}

void CallSite::Run(void** parameters, void* stream) {
  int code = 0;
  try {
    code = Call(parameters, stream);
  } catch (...) {
    throw std::runtime_error(
        Explain(Who(), "kernel threw an exception, expected it to return 0",
                {DescribeCurrentException(), Location(spec_.symbol), spec_.DescribeArrays()},
                "Pass what the kernel asks for, or handle the case in its source."));
  }
  if (code != 0) {
    const std::string described = DescribeCode(code);
    throw std::runtime_error(Explain(
        Who(), "kernel returned " + std::to_string(code) + ", expected 0",
        {described + Location(spec_.symbol), spec_.DescribeArrays()},
        described.empty()
            ? "The value is the kernel's own error code; see its source."
            : "Correct what it names; an if can guard an access that is out of range. To see the "
              "values, run the kernel as Python, on numpy arrays."));
  }
}

std::string CallSite::DescribeCode(int code) const {
  const auto message = reinterpret_cast<Message>(library_.FindFunction(spec_.symbol + "Message"));
  try {
    const char* const text = message ? message(code) : nullptr;
    return text ? std::string(text) + "\n" : "";
  } catch (...) {
    return "";
  }
}

}  // namespace msops
