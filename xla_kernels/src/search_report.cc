#include "search_report.h"

#include <memory>
#include <mutex>
#include <utility>

#include "message.h"

namespace msops {
namespace {

struct Search {
  // Never destroyed: messages are written until the process ends.
  static Search& Get() {
    static auto* const search = new Search;
    return *search;
  }

  // Not the mutex of a store: a store holds its own when it does not find something.
  std::mutex mutex;
  std::vector<std::string> lines = {
      "MSOPS_LIBRARY_PATH was not read: msops.register_ffi_targets() reads it"};
  // Shared, as copying a function of Python takes the GIL, whose holder may wait for the mutex.
  std::shared_ptr<const CacheFinder> find;
};

}  // namespace

void NoteSearch(std::vector<std::string> lines) {
  const std::lock_guard<std::mutex> lock(Search::Get().mutex);
  Search::Get().lines = std::move(lines);
}

void SetCacheFinder(CacheFinder find) {
  auto shared = std::make_shared<const CacheFinder>(std::move(find));
  const std::lock_guard<std::mutex> lock(Search::Get().mutex);
  Search::Get().find.swap(shared);
}

std::vector<std::string> SearchCache(const std::string& hash) {
  std::shared_ptr<const CacheFinder> find;
  {
    const std::lock_guard<std::mutex> lock(Search::Get().mutex);
    find = Search::Get().find;
  }
  if (!find) return {};
  try {
    return (*find)(hash);
  } catch (const std::exception& error) {
    return {"not looked in the cache folder: " + TextOf(error)};
  }
}

std::vector<std::string> DescribeSearch(const std::string& hash, std::string_view own,
                                        const std::vector<std::string>& cache_lines) {
  std::vector<std::string> lines = {"hash " + hash, "looked among the " + std::string(own)};
  const std::lock_guard<std::mutex> lock(Search::Get().mutex);
  lines.insert(lines.end(), Search::Get().lines.begin(), Search::Get().lines.end());
  lines.insert(lines.end(), cache_lines.begin(), cache_lines.end());
  return lines;
}

}  // namespace msops
