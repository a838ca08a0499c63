#include "search_report.h"

#include <mutex>
#include <utility>

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
};

}  // namespace

void NoteSearch(std::vector<std::string> lines) {
  const std::lock_guard<std::mutex> lock(Search::Get().mutex);
  Search::Get().lines = std::move(lines);
}

std::vector<std::string> DescribeSearch(const std::string& hash, std::string_view own) {
  std::vector<std::string> lines = {"hash " + hash, "looked among the " + std::string(own)};
  const std::lock_guard<std::mutex> lock(Search::Get().mutex);
  lines.insert(lines.end(), Search::Get().lines.begin(), Search::Get().lines.end());
  return lines;
}

}  // namespace msops
