#include "library_store.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "message.h"
#include "parallel_for.h"
#include "search_report.h"

namespace msops {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShownHashDigits = 12;
// A library that exports a variable of this name splits loops through the function it holds.
constexpr char kParallelForSlot[] = "msops_parallel_for_slot";
constexpr char kAllowListVariable[] = "MS_CUSTOM_AOT_WHITE_LIST";

fs::path Resolve(const std::string& text) {
  std::string expanded = text;
  const char* home = std::getenv("HOME");
  if (home && (text == "~" || text.rfind("~/", 0) == 0)) expanded = home + text.substr(1);
  const fs::path path = fs::weakly_canonical(expanded);
  // "folder/" and "folder" are one folder; the former has an empty last component.
  return path.has_filename() ? path : path.parent_path();
}

bool IsInside(const fs::path& folder, const fs::path& file) {
  const auto [end, unused] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return end == folder.end();
}

void CheckAllowed(const Library& library, const std::vector<std::string>& origins) {
  const char* const allowed = std::getenv(kAllowListVariable);
  if (!allowed || !*allowed) return;
  const fs::path folder = Resolve(allowed);
  for (const std::string& origin : origins) {
    if (origin.empty()) return;
    if (IsInside(folder, Resolve(origin))) return;
  }
  throw std::runtime_error(Explain(
      "Library " + library.Label(), "expected a file in the allowed folder, got one outside it",
      {std::string(kAllowListVariable) + " is " + folder.string(),
       "the library came from " + Resolve(origins.back()).string()},
      "Move the library or its source into that folder, or change the environment variable."));
}

[[noreturn]] void ThrowUnknown(const std::string& hash, std::string_view name,
                               const std::vector<std::string>& cache_lines) {
  throw std::runtime_error(
      Explain("Library " + Library(std::string(name), hash).Label(),
              "expected to find it by its hash, but no library here has it",
              DescribeSearch(hash, "libraries that this process built or loaded", cache_lines),
              "The program was lowered elsewhere. Copy the library from there into a folder, set "
              "MSOPS_LIBRARY_PATH to that folder, and call msops.register_ffi_targets()."));
}

// Returns whether what dlsym returned lies in the library of `handle`, and is no variable.
bool IsFunctionOf(void* handle, void* address) {
  Dl_info info = {};
  link_map* own = nullptr;
  link_map* found = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &own) != 0 ||
      dladdr1(address, &info, reinterpret_cast<void**>(&found), RTLD_DL_LINKMAP) == 0 ||
      found != own) {
    return false;
  }
  const ElfW(Sym)* symbol = nullptr;
  dladdr1(address, &info, const_cast<void**>(reinterpret_cast<const void**>(&symbol)),
          RTLD_DL_SYMENT);
  // What an indirect function (STT_GNU_IFUNC) chose may have no symbol of its own.
  return !symbol || info.dli_saddr != address || (symbol->st_info & 0xf) == STT_FUNC;
}

}  // namespace

Library::Library(std::string name, std::string hash)
    : name_(std::move(name)), hash_(std::move(hash)) {}

std::string Library::Label() const {
  return name_ + " (" + hash_.substr(0, kShownHashDigits) + ")";
}

void* Library::FindFunction(const std::string& symbol) const {
  void* const address = dlsym(handle_, symbol.c_str());
  return address && IsFunctionOf(handle_, address) ? address : nullptr;
}

LibraryStore& LibraryStore::Get() {
  static auto* const store = new LibraryStore();
  return *store;
}

void LibraryStore::Register(const std::string& hash, const std::string& path,
                            const std::string& origin, bool has_old_string_abi) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<Library>& library = libraries_[hash];
  const fs::path named = origin.empty() ? path : origin;
  if (!library) library = std::make_unique<Library>(named.filename().string(), hash);
  // The content is what the hash says, so the latest path is as good as the first, and still there.
  library->path_ = path;
  library->has_old_string_abi_ = has_old_string_abi;
  auto& origins = library->origins_;
  origins.erase(std::remove(origins.begin(), origins.end(), origin), origins.end());
  origins.push_back(origin);
}

Library& LibraryStore::Open(const std::string& hash, std::string_view name) {
  std::unique_lock<std::mutex> lock(mutex_);
  auto found = libraries_.find(hash);
  if (found == libraries_.end()) {
    // The finder registers what it finds, with the GIL, whose holder may wait for this mutex.
    lock.unlock();
    const std::vector<std::string> cache_lines = SearchCache(hash);
    lock.lock();
    found = libraries_.find(hash);
    if (found == libraries_.end()) ThrowUnknown(hash, name, cache_lines);
  }
  Library& library = *found->second;
  CheckAllowed(library, library.origins_);
  if (library.handle_) return library;
  // RTLD_NOW: what is missing is missed here and not in the middle of a call. RTLD_LOCAL: two
  // libraries may define the same names.
  library.handle_ = dlopen(library.path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library.handle_) {
    const char* const reason = dlerror();
    throw std::runtime_error(
        Explain("Library " + library.Label(), "expected a library that can be opened",
                {reason ? reason : "no reason was given"},
                "Build it for this machine, with every library it needs on its run path."));
  }
  if (void* const slot = dlsym(library.handle_, kParallelForSlot)) {
    *static_cast<decltype(&ParallelFor)*>(slot) = &ParallelFor;
  }
  return library;
}

}  // namespace msops
