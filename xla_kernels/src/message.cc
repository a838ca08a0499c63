#include "message.h"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <typeinfo>

namespace msops {
namespace {

// Returns how many bytes the character at the start of `text` has; 0 if it is not UTF-8.
size_t CharacterBytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t count = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < count) return 0;
  for (size_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Longer than need be, a surrogate, or beyond the last character.
  const bool is_bad = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0) ||
                      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) >= 0x90);
  return is_bad ? 0 : count;
}

}  // namespace

std::string AsUtf8(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t count = CharacterBytes(text);
    result.append(count ? text.substr(0, count) : "\xef\xbf\xbd");
    text.remove_prefix(count ? count : 1);
  }
  return result;
}

std::string Explain(std::string_view who, std::string_view problem,
                    const std::vector<std::string>& details, std::string_view remedy) {
  std::string text;
  text.append(who).append(": ").append(problem).append(details.size() ? ":\n" : ".\n");
  for (std::string_view detail : details) {
    // A detail may have several lines, the text of a user's exception for one.
    while (!detail.empty()) {
      const size_t end = detail.find('\n');
      text.append("  ").append(detail.substr(0, end)).append("\n");
      detail.remove_prefix(end == std::string_view::npos ? detail.size() : end + 1);
    }
  }
  return AsUtf8(text.append(remedy));
}

std::string TextOf(const std::exception& error) {
  const char* const text = error.what();
  return text ? text : "";
}

std::string ExplainFailure(const std::string& who, const std::exception& error) {
  if (!dynamic_cast<const std::bad_alloc*>(&error)) return TextOf(error);
  try {
    return Explain(who, "no memory for its call", {},
                   "Run fewer calls at once, or leave more memory.");
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  }
}

std::string DescribeCurrentException() {
  std::string type = "an exception";
  if (const std::type_info* info = abi::__cxa_current_exception_type()) {
    int status = 0;
    std::unique_ptr<char, decltype(&std::free)> name(
        abi::__cxa_demangle(info->name(), nullptr, nullptr, &status), &std::free);
    type = status == 0 ? name.get() : info->name();
  }
  try {
    throw;
  } catch (const std::exception& error) {
    return type + ": " + TextOf(error);
  } catch (...) {
    return type;
  }
}

}  // namespace msops
