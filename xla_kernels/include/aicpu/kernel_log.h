// kernel_log.h: log and check macros, of both generations. Lines reach Python's logging under
// "msops.aicpu"; the last error line becomes part of the exception if Compute fails.
//
// The older macros (KERNEL_*, AICPU_*) log for the call that runs on the thread; the newer ones
// (CUST_*) begin with the context. Checks are plain blocks as in MindSpore, since kernels leave
// their semicolons out.
#ifndef MSOPS_AICPU_KERNEL_LOG_H_
#define MSOPS_AICPU_KERNEL_LOG_H_

#include <cstdint>

#include "cpu_context.h"
#include "host_call.h"
#include "status.h"

#define MSOPS_AICPU_LOG(call, level, ...) \
  ::aicpu::HostCall::Log(call, level, __FILE__, __LINE__, __FUNCTION__, __VA_ARGS__)
#define MSOPS_AICPU_LOG_NOW(level, ...) \
  MSOPS_AICPU_LOG(::aicpu::HostCall::Current(), level, __VA_ARGS__)
#define MSOPS_AICPU_LOG_FOR(ctx, level, ...) \
  MSOPS_AICPU_LOG(::aicpu::HostCall::Of(ctx), level, __VA_ARGS__)

// The older generation.

#define KERNEL_LOG_DEBUG(...) MSOPS_AICPU_LOG_NOW(MSOPS_AICPU_DEBUG, __VA_ARGS__)
#define KERNEL_LOG_INFO(...) MSOPS_AICPU_LOG_NOW(MSOPS_AICPU_INFO, __VA_ARGS__)
#define KERNEL_LOG_WARN(...) MSOPS_AICPU_LOG_NOW(MSOPS_AICPU_WARNING, __VA_ARGS__)
#define KERNEL_LOG_ERROR(...) MSOPS_AICPU_LOG_NOW(MSOPS_AICPU_ERROR, __VA_ARGS__)
#define KERNEL_LOG_EVENT(...) MSOPS_AICPU_LOG_NOW(MSOPS_AICPU_INFO, __VA_ARGS__)

#define KERNEL_CHECK_NULLPTR_VOID(value, ...) \
  if ((value) == nullptr) {                   \
    KERNEL_LOG_ERROR(__VA_ARGS__);            \
    return;                                   \
  }
#define KERNEL_CHECK_NULLPTR(value, code, ...) \
  if ((value) == nullptr) {                    \
    KERNEL_LOG_ERROR(__VA_ARGS__);             \
    return code;                               \
  }
#define KERNEL_CHECK_FALSE(condition, code, ...) \
  if (!(condition)) {                            \
    KERNEL_LOG_ERROR(__VA_ARGS__);               \
    return code;                                 \
  }
#define KERNEL_CHECK_FALSE_VOID(condition, ...) \
  if (!(condition)) {                           \
    KERNEL_LOG_ERROR(__VA_ARGS__);              \
    return;                                     \
  }
#define KERNEL_CHECK_FALSE_EXEC(condition, statement, ...) \
  if (!(condition)) {                                      \
    KERNEL_LOG_ERROR(__VA_ARGS__);                         \
    statement;                                             \
  }
#define KERNEL_CHECK_ASSIGN_64S_MULTI(a, b, result, code)                  \
  if (__builtin_mul_overflow((a), (b), &(result))) {                       \
    KERNEL_LOG_ERROR("The product of " #a " and " #b " exceeds an int64"); \
    return code;                                                           \
  }
#define KERNEL_HANDLE_ERROR(expression, ...)                                \
  {                                                                         \
    const uint32_t msops_status = static_cast<uint32_t>(expression);        \
    if (msops_status != static_cast<uint32_t>(::aicpu::KERNEL_STATUS_OK)) { \
      KERNEL_LOG_ERROR(__VA_ARGS__);                                        \
      return msops_status;                                                  \
    }                                                                       \
  }
#define RETURN_IF_FAILURE(expression)                                       \
  {                                                                         \
    const uint32_t msops_status = static_cast<uint32_t>(expression);        \
    if (msops_status != static_cast<uint32_t>(::aicpu::KERNEL_STATUS_OK)) { \
      return msops_status;                                                  \
    }                                                                       \
  }

#define AICPU_LOGD(...) KERNEL_LOG_DEBUG(__VA_ARGS__)
#define AICPU_LOGI(...) KERNEL_LOG_INFO(__VA_ARGS__)
#define AICPU_LOGW(...) KERNEL_LOG_WARN(__VA_ARGS__)
#define AICPU_LOGE(...) KERNEL_LOG_ERROR(__VA_ARGS__)
#define AICPU_EVENT(...) KERNEL_LOG_EVENT(__VA_ARGS__)
#define AICPU_CHECK_NULLPTR_VOID(value, ...) KERNEL_CHECK_NULLPTR_VOID(value, __VA_ARGS__)
#define AICPU_CHECK_NULLPTR(value, code, ...) KERNEL_CHECK_NULLPTR(value, code, __VA_ARGS__)
#define AICPU_CHECK_FALSE(condition, code, ...) KERNEL_CHECK_FALSE(condition, code, __VA_ARGS__)
// All of it is the expression, which may have commas.
#define AICPU_CHK_STATUS_RET(...) KERNEL_HANDLE_ERROR((__VA_ARGS__), "%s failed", #__VA_ARGS__)

// The newer generation.

#define CUST_KERNEL_LOG_DEBUG(ctx, ...) MSOPS_AICPU_LOG_FOR(ctx, MSOPS_AICPU_DEBUG, __VA_ARGS__)
#define CUST_KERNEL_LOG_INFO(ctx, ...) MSOPS_AICPU_LOG_FOR(ctx, MSOPS_AICPU_INFO, __VA_ARGS__)
#define CUST_KERNEL_LOG_WARN(ctx, ...) MSOPS_AICPU_LOG_FOR(ctx, MSOPS_AICPU_WARNING, __VA_ARGS__)
#define CUST_KERNEL_LOG_WARNING(ctx, ...) CUST_KERNEL_LOG_WARN(ctx, __VA_ARGS__)
#define CUST_KERNEL_LOG_ERROR(ctx, ...) MSOPS_AICPU_LOG_FOR(ctx, MSOPS_AICPU_ERROR, __VA_ARGS__)
#define CUST_KERNEL_LOG_EVENT(ctx, ...) MSOPS_AICPU_LOG_FOR(ctx, MSOPS_AICPU_INFO, __VA_ARGS__)

#define CUST_KERNEL_CHECK_NULLPTR_VOID(ctx, value, ...) \
  if ((value) == nullptr) {                             \
    CUST_KERNEL_LOG_ERROR(ctx, __VA_ARGS__);            \
    return;                                             \
  }
#define CUST_KERNEL_CHECK_NULLPTR(ctx, value, code, ...) \
  if ((value) == nullptr) {                              \
    CUST_KERNEL_LOG_ERROR(ctx, __VA_ARGS__);             \
    return code;                                         \
  }
#define CUST_KERNEL_CHECK_FALSE(ctx, condition, code, ...) \
  if (!(condition)) {                                      \
    CUST_KERNEL_LOG_ERROR(ctx, __VA_ARGS__);               \
    return code;                                           \
  }
#define CUST_KERNEL_CHECK_FALSE_VOID(ctx, condition, ...) \
  if (!(condition)) {                                     \
    CUST_KERNEL_LOG_ERROR(ctx, __VA_ARGS__);              \
    return;                                               \
  }
#define CUST_KERNEL_CHECK_FALSE_EXEC(ctx, condition, statement, ...) \
  if (!(condition)) {                                                \
    CUST_KERNEL_LOG_ERROR(ctx, __VA_ARGS__);                         \
    statement;                                                       \
  }
#define CUST_KERNEL_CHECK_ASSIGN_64S_MULTI(ctx, a, b, result, code)                  \
  if (__builtin_mul_overflow((a), (b), &(result))) {                                 \
    CUST_KERNEL_LOG_ERROR(ctx, "The product of " #a " and " #b " exceeds an int64"); \
    return code;                                                                     \
  }
#define CUST_KERNEL_HANDLE_ERROR(ctx, expression, ...)                      \
  {                                                                         \
    const uint32_t msops_status = static_cast<uint32_t>(expression);        \
    if (msops_status != static_cast<uint32_t>(::aicpu::KERNEL_STATUS_OK)) { \
      CUST_KERNEL_LOG_ERROR(ctx, __VA_ARGS__);                              \
      return msops_status;                                                  \
    }                                                                       \
  }

#define CUST_AICPU_LOGD(ctx, ...) CUST_KERNEL_LOG_DEBUG(ctx, __VA_ARGS__)
#define CUST_AICPU_LOGI(ctx, ...) CUST_KERNEL_LOG_INFO(ctx, __VA_ARGS__)
#define CUST_AICPU_LOGW(ctx, ...) CUST_KERNEL_LOG_WARN(ctx, __VA_ARGS__)
#define CUST_AICPU_LOGE(ctx, ...) CUST_KERNEL_LOG_ERROR(ctx, __VA_ARGS__)
#define CUST_AICPU_EVENT(ctx, ...) CUST_KERNEL_LOG_EVENT(ctx, __VA_ARGS__)
#define CUST_AICPU_CHECK_NULLPTR_VOID(ctx, value, ...) \
  CUST_KERNEL_CHECK_NULLPTR_VOID(ctx, value, __VA_ARGS__)
#define CUST_AICPU_CHECK_NULLPTR(ctx, value, code, ...) \
  CUST_KERNEL_CHECK_NULLPTR(ctx, value, code, __VA_ARGS__)
#define CUST_AICPU_CHECK_FALSE(ctx, condition, code, ...) \
  CUST_KERNEL_CHECK_FALSE(ctx, condition, code, __VA_ARGS__)
#define CUST_AICPU_CHK_STATUS_RET(ctx, ...) \
  CUST_KERNEL_HANDLE_ERROR(ctx, (__VA_ARGS__), "%s failed", #__VA_ARGS__)

#endif  // MSOPS_AICPU_KERNEL_LOG_H_
