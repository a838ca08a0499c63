// ms_utils_secure.h: memory functions for more bytes than those of securec.h take.
#ifndef MSOPS_AICPU_UTILS_MS_UTILS_SECURE_H_
#define MSOPS_AICPU_UTILS_MS_UTILS_SECURE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../securec.h"

namespace mindspore {
namespace common {

inline int huge_memset(uint8_t* destination, size_t room, int value, size_t count) {
  if (destination == nullptr) return EINVAL;
  if (count > room) return ERANGE;
  std::memset(destination, value, count);
  return EOK;
}

inline int huge_memcpy(uint8_t* destination, size_t room, const uint8_t* source, size_t count) {
  if (destination == nullptr || source == nullptr) return EINVAL;
  if (count > room) return ERANGE;
  std::memcpy(destination, source, count);
  return EOK;
}

}  // namespace common
}  // namespace mindspore

#endif  // MSOPS_AICPU_UTILS_MS_UTILS_SECURE_H_
