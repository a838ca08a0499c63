// securec.h: the bounds-checked functions of C11's annex K that kernels use, with libsecurec's
// return values. After a failed copy the destination is cleared, as far as it is known.
#ifndef MSOPS_AICPU_SECUREC_H_
#define MSOPS_AICPU_SECUREC_H_

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifndef SECUREC_MEM_MAX_LEN
#define SECUREC_MEM_MAX_LEN 0x7fffffffUL
#endif
#ifndef SECUREC_STRING_MAX_LEN
#define SECUREC_STRING_MAX_LEN 0x7fffffffUL
#endif

#ifndef EOK
#define EOK 0
#endif
#define EINVAL_AND_RESET 150
#define ERANGE_AND_RESET 162
#define EOVERLAP_AND_RESET 182
#ifndef EINVAL
#define EINVAL 22
#endif
#ifndef ERANGE
#define ERANGE 34
#endif

typedef int errno_t;

inline errno_t memset_s(void* dest, size_t dest_max, int c, size_t count) {
  if (dest_max == 0 || dest_max > SECUREC_MEM_MAX_LEN) return ERANGE;
  if (!dest) return EINVAL;
  if (count > dest_max) {
    memset(dest, c, dest_max);
    return ERANGE_AND_RESET;
  }
  memset(dest, c, count);
  return EOK;
}

inline errno_t memcpy_s(void* dest, size_t dest_max, const void* src, size_t count) {
  if (dest_max == 0 || dest_max > SECUREC_MEM_MAX_LEN) return ERANGE;
  if (!dest) return EINVAL;
  if (!src) {
    memset(dest, 0, dest_max);
    return EINVAL_AND_RESET;
  }
  if (count > dest_max) {
    memset(dest, 0, dest_max);
    return ERANGE_AND_RESET;
  }
  const uintptr_t to = (uintptr_t)dest, from = (uintptr_t)src;
  if (to != from && to < from + count && from < to + count) {
    memset(dest, 0, dest_max);
    return EOVERLAP_AND_RESET;
  }
  if (to != from && count != 0) memcpy(dest, src, count);
  return EOK;
}

inline errno_t memmove_s(void* dest, size_t dest_max, const void* src, size_t count) {
  if (dest_max == 0 || dest_max > SECUREC_MEM_MAX_LEN) return ERANGE;
  if (!dest) return EINVAL;
  if (!src || count > dest_max) {
    memset(dest, 0, dest_max);
    return src ? ERANGE_AND_RESET : EINVAL_AND_RESET;
  }
  memmove(dest, src, count);
  return EOK;
}

inline errno_t strncpy_s(char* dest, size_t dest_max, const char* src, size_t count) {
  if (dest_max == 0 || dest_max > SECUREC_STRING_MAX_LEN) return ERANGE;
  if (!dest) return EINVAL;
  if (!src) {
    dest[0] = '\0';
    return EINVAL_AND_RESET;
  }
  const size_t length = strnlen(src, count);
  if (length >= dest_max) {
    dest[0] = '\0';
    return ERANGE_AND_RESET;
  }
  memmove(dest, src, length);
  dest[length] = '\0';
  return EOK;
}

inline errno_t strcpy_s(char* dest, size_t dest_max, const char* src) {
  return strncpy_s(dest, dest_max, src, SECUREC_STRING_MAX_LEN);
}

inline errno_t strncat_s(char* dest, size_t dest_max, const char* src, size_t count) {
  if (dest_max == 0 || dest_max > SECUREC_STRING_MAX_LEN) return ERANGE;
  if (!dest) return EINVAL;
  const size_t used = strnlen(dest, dest_max);
  if (used == dest_max || !src) {
    dest[0] = '\0';
    return EINVAL_AND_RESET;
  }
  const errno_t status = strncpy_s(dest + used, dest_max - used, src, count);
  if (status != EOK) dest[0] = '\0';
  return status;
}

inline errno_t strcat_s(char* dest, size_t dest_max, const char* src) {
  return strncat_s(dest, dest_max, src, SECUREC_STRING_MAX_LEN);
}

inline int vsnprintf_s(char* dest, size_t dest_max, size_t count, const char* format,
                       va_list values) {
  if (!dest || !format || dest_max == 0 || dest_max > SECUREC_STRING_MAX_LEN) return -1;
  const int length = vsnprintf(dest, dest_max, format, values);
  if (length < 0 || (size_t)length >= dest_max || (size_t)length > count) {
    // What `count` allows is kept; what does not fit at all is dropped.
    dest[length >= 0 && count < dest_max ? count : 0] = '\0';
    return -1;
  }
  return length;
}

inline int vsnprintf_truncated_s(char* dest, size_t dest_max, const char* format, va_list values) {
  if (!dest || !format || dest_max == 0 || dest_max > SECUREC_STRING_MAX_LEN) return -1;
  const int length = vsnprintf(dest, dest_max, format, values);
  return length < 0 || (size_t)length < dest_max ? length : (int)(dest_max - 1);
}

inline int snprintf_s(char* dest, size_t dest_max, size_t count, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const int length = vsnprintf_s(dest, dest_max, count, format, values);
  va_end(values);
  return length;
}

inline int sprintf_s(char* dest, size_t dest_max, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const int length = vsnprintf_s(dest, dest_max, SECUREC_STRING_MAX_LEN, format, values);
  va_end(values);
  return length;
}

#endif  // MSOPS_AICPU_SECUREC_H_
