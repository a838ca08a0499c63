// names.h: constants, dtypes as objects and checks that sources of graph operators use.
#ifndef MSOPS_EXTENSION_GRAPH_NAMES_H_
#define MSOPS_EXTENSION_GRAPH_NAMES_H_

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "msops_extension/element.h"

#ifndef MS_LIKELY
#define MS_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define MS_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#endif

// Throws a ValueError with that text unless the condition holds.
#ifndef MS_CHECK_VALUE
#define MS_CHECK_VALUE(condition, message)                   \
  do {                                                       \
    if (!(condition)) MS_EXCEPTION(ValueError) << (message); \
  } while (false)
#endif

namespace mindspore {

#define MSOPS_INDEX(number)                             \
  inline constexpr size_t kIndex##number = number;      \
  inline constexpr size_t kInputIndex##number = number; \
  inline constexpr size_t kOutputIndex##number = number;
MSOPS_INDEX(0)
MSOPS_INDEX(1)
MSOPS_INDEX(2)
MSOPS_INDEX(3)
MSOPS_INDEX(4)
MSOPS_INDEX(5)
MSOPS_INDEX(6)
MSOPS_INDEX(7)
MSOPS_INDEX(8)
MSOPS_INDEX(9)
MSOPS_INDEX(10)
MSOPS_INDEX(11)
MSOPS_INDEX(12)
#undef MSOPS_INDEX

// A dtype as an object; there is one for each.
class Type {
 public:
  explicit Type(TypeId type_id) : type_id_(type_id) {}
  TypeId type_id() const { return type_id_; }
  std::string ToString() const { return msops::extension::NameOf(type_id_); }

 private:
  const TypeId type_id_;
};
using TypePtr = std::shared_ptr<Type>;

inline TypePtr TypeIdToType(TypeId type_id) {
  static std::map<TypeId, TypePtr> types;
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  TypePtr& type = types[type_id];
  if (!type) type = std::make_shared<Type>(type_id);
  return type;
}

}  // namespace mindspore

#endif  // MSOPS_EXTENSION_GRAPH_NAMES_H_
