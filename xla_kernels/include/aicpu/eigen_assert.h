// eigen_assert.h: makes what Eigen asserts an exception, which becomes an error of the op. msops
// includes it before a source that it builds.
#ifndef MSOPS_AICPU_EIGEN_ASSERT_H_
#define MSOPS_AICPU_EIGEN_ASSERT_H_

#include <stdexcept>

#ifndef eigen_assert
#define eigen_assert(condition) \
  ((condition) ? static_cast<void>(0) : throw std::logic_error("Eigen expected " #condition))
#endif

#endif  // MSOPS_AICPU_EIGEN_ASSERT_H_
