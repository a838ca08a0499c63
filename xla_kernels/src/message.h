// message.h: the one form that error messages have, as msops.errors.explain on the Python side.
#ifndef MSOPS_MESSAGE_H_
#define MSOPS_MESSAGE_H_

#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace msops {

// Returns a text with each byte that is not UTF-8 replaced by U+FFFD.
std::string AsUtf8(std::string_view text);

// Formats "<who>: <problem>", the details indented below it, and what to do. The details are a
// user's text: what in them is not UTF-8 is replaced, since Python and XLA take nothing else.
std::string Explain(std::string_view who, std::string_view problem,
                    const std::vector<std::string>& details, std::string_view remedy);

// Returns what an exception says, or "" if it says nothing: a user's what() may return nullptr.
std::string TextOf(const std::exception& error);

// The text of an error that is short enough to need no memory.
inline constexpr char kOutOfMemory[] = "out of memory";

// Returns the text of an error that ends a call: its own, or one that names the call for
// std::bad_alloc, which says nothing.
std::string ExplainFailure(const std::string& who, const std::exception& error);

// Describes the exception being handled, with its type. Call it inside a catch block only.
std::string DescribeCurrentException();

}  // namespace msops

#endif  // MSOPS_MESSAGE_H_
