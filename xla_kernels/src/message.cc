#include "message.h"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <typeinfo>

namespace msops {

std::string Explain(std::string_view who, std::string_view problem,
                    std::initializer_list<std::string> details, std::string_view remedy) {
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
  return text.append(remedy);
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
    return type + ": " + error.what();
  } catch (...) {
    return type;
  }
}

}  // namespace msops
