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
using INTERNAL_EXCEPTION = Raise<std::runtime_error>;
using CRITICAL = Raise<std::runtime_error>;
}  // namespace log_level

}  // namespace msops::extension

namespace mindspore {

// The kinds of errors of MindSpore 2.10.0, core/include/utils/log_adapter.h.
enum ExceptionType {
  NoExceptionType = 0,
  UnknownError,
  ArgumentError,
  NotSupportError,
  NotExistsError,
  DeviceProcessError,
  AbortedError,
  IndexError,
  ValueError,
  TypeError,
  ShapeError,
  KeyError,
  AttributeError,
  NameError,
  AssertionError,
  BaseException,
  KeyboardInterrupt,
  Exception,
  StopIteration,
  OverflowError,
  ZeroDivisionError,
  EnvironmentError,
  IOError,
  OSError,
  ImportError,
  MemoryError,
  UnboundLocalError,
  RuntimeError,
  NotImplementedError,
  IndentationError,
  RuntimeWarning,
};

}  // namespace mindspore

namespace msops::extension {

// Python's class for a kind. As in MindSpore the kinds that Python has no class of, and Exception
// and ImportError, are a RuntimeError. Needs the GIL.
inline PyObject* ClassOf(mindspore::ExceptionType kind) {
  switch (kind) {
    case mindspore::IndexError:
      return PyExc_IndexError;
    case mindspore::ValueError:
      return PyExc_ValueError;
    case mindspore::TypeError:
      return PyExc_TypeError;
    case mindspore::KeyError:
      return PyExc_KeyError;
    case mindspore::AttributeError:
      return PyExc_AttributeError;
    case mindspore::NameError:
      return PyExc_NameError;
    case mindspore::AssertionError:
      return PyExc_AssertionError;
    case mindspore::BaseException:
      return PyExc_BaseException;
    case mindspore::KeyboardInterrupt:
      return PyExc_KeyboardInterrupt;
    case mindspore::StopIteration:
      return PyExc_StopIteration;
    case mindspore::OverflowError:
      return PyExc_OverflowError;
    case mindspore::ZeroDivisionError:
      return PyExc_ZeroDivisionError;
    case mindspore::EnvironmentError:
    case mindspore::IOError:
    case mindspore::OSError:
      return PyExc_OSError;
    case mindspore::MemoryError:
      return PyExc_MemoryError;
    case mindspore::UnboundLocalError:
      return PyExc_UnboundLocalError;
    case mindspore::NotImplementedError:
      return PyExc_NotImplementedError;
    case mindspore::IndentationError:
      return PyExc_IndentationError;
    case mindspore::RuntimeWarning:
      return PyExc_RuntimeWarning;
    default:
      return PyExc_RuntimeError;
  }
}

// An error of a kind, which pybind11 makes Python's of.
class KindError : public pybind11::builtin_exception {
 public:
  KindError(mindspore::ExceptionType kind, const std::string& text)
      : builtin_exception(text), kind_(kind) {}
  void set_error() const override { PyErr_SetString(ClassOf(kind_), what()); }

 private:
  mindspore::ExceptionType kind_;
};

struct RaiseKind {
  [[noreturn]] void operator^(const Message& message) const {
    throw KindError(kind, message.text());
  }
  mindspore::ExceptionType kind;
};

}  // namespace msops::extension

#define MS_LOG(level) ::msops::extension::log_level::level() ^ ::msops::extension::Message()
// ValueError and mindspore::ValueError are the same here, in every namespace.
#define MS_EXCEPTION(kind)                                            \
  ::msops::extension::RaiseKind{[&]() -> ::mindspore::ExceptionType { \
    using namespace ::mindspore; /* NOLINT(build/namespaces) */       \
    return kind;                                                      \
  }()} ^                                                              \
      ::msops::extension::Message()
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

#define MS_EXCEPTION_IF_ZERO(name, value)                   \
  do {                                                      \
    if ((value) == 0) {                                     \
      MS_LOG(EXCEPTION) << "The " << (name) << " is zero."; \
    }                                                       \
  } while (false)

#endif  // MSOPS_EXTENSION_LOG_H_
