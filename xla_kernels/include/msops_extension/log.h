// log.h: MindSpore's macros that throw. The other levels of MS_LOG are dropped, as in its releases.
#ifndef MSOPS_EXTENSION_LOG_H_
#define MSOPS_EXTENSION_LOG_H_

#include <pybind11/pybind11.h>

#include <sstream>
#include <stdexcept>
#include <string>

namespace msops::extension {

// Collects what stands behind `MS_LOG(EXCEPTION) <<`.
class Message {
 public:
  template <typename Part>
  Message& operator<<(const Part& part) {
    stream_ << part;
    return *this;
  }
  std::string text() const { return stream_.str(); }

 private:
  std::ostringstream stream_;
};

// ^ binds more weakly than <<, so these get the whole message.
template <typename Exception>
struct Raise {
  [[noreturn]] void operator^(const Message& message) const { throw Exception(message.text()); }
};
struct Drop {
  void operator^(const Message&) const {}
};

namespace log_level {
using DEBUG = Drop;
using INFO = Drop;
using WARNING = Drop;
using ERROR = Drop;
using EXCEPTION = Raise<std::runtime_error>;
}  // namespace log_level

// pybind11 makes the Python error of the same name of each.
namespace error_kind {
using RuntimeError = Raise<std::runtime_error>;
using ValueError = Raise<pybind11::value_error>;
using TypeError = Raise<pybind11::type_error>;
using IndexError = Raise<pybind11::index_error>;
}  // namespace error_kind

}  // namespace msops::extension

#define MS_LOG(level) ::msops::extension::log_level::level() ^ ::msops::extension::Message()
#define MS_EXCEPTION(kind) ::msops::extension::error_kind::kind() ^ ::msops::extension::Message()
#define MS_EXCEPTION_IF_NULL(pointer)                             \
  do {                                                            \
    if ((pointer) == nullptr) {                                   \
      MS_LOG(EXCEPTION) << "The pointer [" #pointer "] is null."; \
    }                                                             \
  } while (false)
#define MS_EXCEPTION_IF_CHECK_FAIL(condition, message) \
  do {                                                 \
    if (!(condition)) {                                \
      MS_LOG(EXCEPTION) << (message);                  \
    }                                                  \
  } while (false)

#endif  // MSOPS_EXTENSION_LOG_H_
