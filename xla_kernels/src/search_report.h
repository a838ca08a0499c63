// search_report.h: what MSOPS_LIBRARY_PATH had, for messages about code that is not found by its
// hash: libraries and cubins.
#ifndef MSOPS_SEARCH_REPORT_H_
#define MSOPS_SEARCH_REPORT_H_

#include <string>
#include <string_view>
#include <vector>

namespace msops {

// Keeps what was found in the folders of MSOPS_LIBRARY_PATH, a line each.
void NoteSearch(std::vector<std::string> lines);

// Returns these lines, after one with the hash that was not found and one with `own`, what this
// process has of its own. Callers may hold the mutex of their store.
std::vector<std::string> DescribeSearch(const std::string& hash, std::string_view own);

}  // namespace msops

#endif  // MSOPS_SEARCH_REPORT_H_
