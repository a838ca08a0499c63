// search_report.h: code that programs name by its hash, libraries and cubins, and this process does
// not know: where it was looked for, and what looks for it at last.
#ifndef MSOPS_SEARCH_REPORT_H_
#define MSOPS_SEARCH_REPORT_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace msops {

// Keeps what was found in the folders of MSOPS_LIBRARY_PATH, a line each.
void NoteSearch(std::vector<std::string> lines);

// Registers what the cache folder has under a hash; returns lines that say why it has nothing.
using CacheFinder = std::function<std::vector<std::string>(const std::string& hash)>;

// Says who searches the cache folder. Without, nobody does.
void SetCacheFinder(CacheFinder find);

// Asks the finder, and returns its lines. It is Python: callers hold no mutex that it could need.
std::vector<std::string> SearchCache(const std::string& hash);

// Returns the lines of NoteSearch, after one with the hash that was not found and one with `own`,
// what this process has of its own, and before those of SearchCache. Callers may hold the mutex of
// their store.
std::vector<std::string> DescribeSearch(const std::string& hash, std::string_view own,
                                        const std::vector<std::string>& cache_lines);

}  // namespace msops

#endif  // MSOPS_SEARCH_REPORT_H_
