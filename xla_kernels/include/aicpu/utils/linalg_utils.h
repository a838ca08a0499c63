// linalg_utils.h: names for the dtypes of linear algebra, and conversions between them. Without
// Eigen it is empty.
#ifndef MSOPS_AICPU_UTILS_LINALG_UTILS_H_
#define MSOPS_AICPU_UTILS_LINALG_UTILS_H_

#include "kernel_util.h"

#if __has_include(<Eigen/Dense>)

#include <Eigen/Dense>
#include <complex>

namespace aicpu {

using complex64 = std::complex<float>;
using complex128 = std::complex<double>;
using float16 = Eigen::half;

// Converts an entry; of a complex number to a real type the real part.
template <typename T_in, typename T_out>
void Cast(const T_in* in, T_out* out) {
  if constexpr (Eigen::NumTraits<T_in>::IsComplex && !Eigen::NumTraits<T_out>::IsComplex) {
    *out = static_cast<T_out>(in->real());
  } else {
    *out = static_cast<T_out>(*in);
  }
}

}  // namespace aicpu

#endif

#endif  // MSOPS_AICPU_UTILS_LINALG_UTILS_H_
