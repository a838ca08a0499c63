// fft_helper.h: what the kernels of Fourier and cosine transforms share. MindSpore's names for it
// speak of PocketFFT; here Eigen computes. Without Eigen it is empty.
#ifndef MSOPS_AICPU_UTILS_FFT_HELPER_H_
#define MSOPS_AICPU_UTILS_FFT_HELPER_H_

#include "kernel_util.h"

#if __has_include(<unsupported/Eigen/FFT>)

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <unsupported/Eigen/FFT>
#include <utility>
#include <vector>

namespace aicpu {

// Where a transform divides by its size: going back, going there, or by its root both ways.
enum NormMode : int64_t { BACKWARD = 0, FORWARD = 1, ORTHO = 2 };

// Returns how many entries a tensor has when the axes `dim` get the sizes `s`.
inline int64_t GetCalculateElementNum(std::vector<int64_t> tensor_shape, std::vector<int64_t> dim,
                                      std::vector<int64_t> s, int64_t input_element_nums) {
  for (size_t i = 0; i < dim.size(); ++i) {
    const int64_t size = tensor_shape[static_cast<size_t>(dim[i])];
    input_element_nums = size == 0 ? 0 : input_element_nums / size * s[i];
  }
  return input_element_nums;
}

// Returns the factor of a transform of `element_nums` entries.
inline double GetNormalized(int64_t element_nums, NormMode norm, bool is_forward) {
  const auto count = static_cast<double>(element_nums);
  if (norm == ORTHO) return 1 / std::sqrt(count);
  return (norm == FORWARD) == is_forward ? 1 / count : 1;
}

// The names of inverse transforms begin with an I: IFFT, IRFFT2, IDCT.
inline bool IsForwardOp(const std::string& op_name) { return GetOpName(op_name)[0] != 'I'; }

// Converts an entry; of a complex number to a real type the real or the imaginary part.
template <typename S, typename T>
void Cast(const S* in, T* out, bool get_real = true) {
  if constexpr (Eigen::NumTraits<S>::IsComplex && !Eigen::NumTraits<T>::IsComplex) {
    *out = static_cast<T>(get_real ? in->real() : in->imag());
  } else {
    *out = static_cast<T>(*in);
  }
}

// Copies the corner that two shapes of one rank have in common; the rest of the output stays.
template <typename T_in, typename T_out>
void ShapeCopy(T_in* input, T_out* output, const std::vector<int64_t> input_shape,
               const std::vector<int64_t> output_shape, bool get_real = true) {
  const size_t rank = input_shape.size();
  int64_t count = 1;
  std::vector<int64_t> corner(rank);
  for (size_t i = 0; i < rank; ++i) count *= corner[i] = std::min(input_shape[i], output_shape[i]);
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n, from = 0, to = 0, from_stride = 1, to_stride = 1;
    for (size_t i = rank; i-- > 0; rest /= corner[i]) {
      from += rest % corner[i] * from_stride;
      to += rest % corner[i] * to_stride;
      from_stride *= input_shape[i];
      to_stride *= output_shape[i];
    }
    Cast(input + from, output + to, get_real);
  }
}

namespace fft_internal {

template <typename T>
using Line = std::vector<std::complex<T>>;

// Returns the sums of line[j] exp(-+2 pi i j k / n), minus if `forward`.
template <typename T>
Line<T> Transformed(const Line<T>& line, bool forward) {
  if (line.size() < 2) return line;
  Eigen::FFT<T> fft;
  fft.SetFlag(Eigen::FFT<T>::Unscaled);
  Line<T> out(line.size());
  const auto size = static_cast<Eigen::Index>(line.size());
  forward ? fft.fwd(out.data(), line.data(), size) : fft.inv(out.data(), line.data(), size);
  return out;
}

// Calls `work(input, output, stride)` for the lines along an axis of two arrays that differ there.
template <typename Work, typename In, typename Out>
void ForEachLine(const std::vector<int64_t>& shape, size_t axis, int64_t in_size, int64_t out_size,
                 In* input, Out* output, const Work& work) {
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < shape.size(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : shape[i];
  for (int64_t i = 0; i < outer; ++i) {
    for (int64_t j = 0; j < inner; ++j) {
      work(input + i * in_size * inner + j, output + i * out_size * inner + j, inner);
    }
  }
}

// Transforms along one axis in place.
template <typename T>
void TransformAxis(std::vector<std::complex<T>>* data, const std::vector<int64_t>& shape,
                   size_t axis, bool forward) {
  const int64_t size = shape[axis];
  ForEachLine(shape, axis, size, size, data->data(), data->data(),
              [&](const std::complex<T>* in, std::complex<T>* out, int64_t stride) {
                Line<T> line(static_cast<size_t>(size));
                for (int64_t k = 0; k < size; ++k) line[k] = in[k * stride];
                line = Transformed(line, forward);
                for (int64_t k = 0; k < size; ++k) out[k * stride] = line[k];
              });
}

inline size_t Count(const std::vector<int64_t>& shape) {
  size_t count = 1;
  for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
  return count;
}

// Throws std::invalid_argument if a line is shorter than its transform is defined for.
inline void RequireSize(int64_t size, int64_t least) {
  if (size >= least) return;
  throw std::invalid_argument("expected at least " + std::to_string(least) +
                              " entries along an axis that is transformed; got " +
                              std::to_string(size) + ". Pad the input with zeros.");
}

// The cosine transform of one line, by Fourier transforms of twice its length.
//
// Source: M. Puschel, J. M. F. Moura, "The Algebraic Approach to the Discrete Cosine and Sine
// Transforms and their Fast Algorithms", 2003; unscaled, as scipy.fft.dct with norm="backward".
template <typename T>
std::vector<T> CosineTransformed(std::vector<T> x, int type, bool ortho) {
  const size_t n = x.size();
  const T half = std::sqrt(T(0.5)), step = T(M_PI) / static_cast<T>(2 * n);
  if (type == 1 && ortho) x[0] /= half, x[n - 1] /= half;
  if (type == 3) x[0] *= ortho ? 1 / half / 2 : T(0.5);
  Line<T> line(type == 1 ? 2 * (n - 1) : 2 * n);
  for (size_t j = 0; j < n; ++j) {
    const T turn = type == 3 || type == 4 ? -step * static_cast<T>(j) : T(0);
    line[j] = std::polar(T(1), turn) * x[j];
    if (type == 1 && j > 0 && j < n - 1) line[line.size() - j] = line[j];
  }
  line = Transformed(line, true);
  for (size_t k = 0; k < n; ++k) {
    T turn = 0;
    if (type == 2) turn = -step * static_cast<T>(k);
    if (type == 4) turn = -step * (static_cast<T>(k) + T(0.5));
    x[k] = (std::polar(T(1), turn) * line[k]).real() * (type == 1 ? 1 : 2);
  }
  if (ortho && type <= 2) x[0] *= half;
  if (ortho && type == 1) x[n - 1] *= half;
  return x;
}

}  // namespace fft_internal

// Transforms a complex array along the axes `dim`, times `fct`.
template <typename T>
void PocketFFTC2C(std::complex<T>* calculate_input, std::complex<T>* output_ptr, bool forward,
                  T fct, const std::vector<int64_t>& calculate_shape,
                  const std::vector<int64_t>& dim) {
  const size_t count = fft_internal::Count(calculate_shape);
  std::vector<std::complex<T>> data(calculate_input, calculate_input + count);
  for (const int64_t axis : dim) {
    fft_internal::TransformAxis(&data, calculate_shape, static_cast<size_t>(axis), forward);
  }
  for (size_t i = 0; i < count; ++i) output_ptr[i] = data[i] * fct;
}

// The same of a real array of `calculate_shape`; along the last of `dim`, of size n, the output has
// the first n / 2 + 1 entries.
template <typename T>
void PocketFFTR2C(T* calculate_input, std::complex<T>* output_ptr, bool forward, T fct,
                  const std::vector<int64_t>& calculate_shape, const std::vector<int64_t>& dim) {
  const size_t count = fft_internal::Count(calculate_shape);
  std::vector<std::complex<T>> data(calculate_input, calculate_input + count);
  for (const int64_t axis : dim) {
    fft_internal::TransformAxis(&data, calculate_shape, static_cast<size_t>(axis), forward);
  }
  const auto last = static_cast<size_t>(dim.back());
  const int64_t size = calculate_shape[last], kept = size / 2 + 1;
  fft_internal::RequireSize(size, 1);
  fft_internal::ForEachLine(calculate_shape, last, size, kept, data.data(), output_ptr,
                            [&](const std::complex<T>* in, std::complex<T>* out, int64_t stride) {
                              for (int64_t k = 0; k < kept; ++k)
                                out[k * stride] = in[k * stride] * fct;
                            });
}

// The transform to a real array of `calculate_shape`, of a complex one of that shape. Along the
// last of `dim`, of size n, it reads the first n / 2 + 1 entries: the others are their conjugates.
template <typename T>
void PocketFFTC2R(std::complex<T>* calculate_input, T* output_ptr, bool forward, T fct,
                  const std::vector<int64_t>& calculate_shape, const std::vector<int64_t>& dim) {
  const auto last = static_cast<size_t>(dim.back());
  const int64_t size = calculate_shape[last], given = size / 2 + 1;
  fft_internal::RequireSize(size, 1);
  const size_t count = fft_internal::Count(calculate_shape);
  std::vector<std::complex<T>> data(calculate_input, calculate_input + count);
  for (const int64_t axis : dim) {
    if (static_cast<size_t>(axis) == last) continue;
    fft_internal::TransformAxis(&data, calculate_shape, static_cast<size_t>(axis), forward);
  }
  fft_internal::ForEachLine(calculate_shape, last, size, size, data.data(), output_ptr,
                            [&](const std::complex<T>* in, T* out, int64_t stride) {
                              fft_internal::Line<T> line(static_cast<size_t>(size));
                              for (int64_t k = 0; k < size; ++k) {
                                line[k] =
                                    k < given ? in[k * stride] : std::conj(in[(size - k) * stride]);
                              }
                              line = fft_internal::Transformed(line, forward);
                              for (int64_t k = 0; k < size; ++k)
                                out[k * stride] = line[k].real() * fct;
                            });
}

// Cosine transforms of type 1 to 4 along the axes `dim`, times `fct`.
template <typename T>
void PocketFFTDCT(T* calculate_input, T* output_ptr, int dct_type, T fct,
                  const std::vector<int64_t>& calculate_shape, const std::vector<int64_t>& dim,
                  bool is_ortho = false) {
  const size_t count = fft_internal::Count(calculate_shape);
  std::vector<T> data(calculate_input, calculate_input + count);
  for (const int64_t axis : dim) {
    const int64_t size = calculate_shape[static_cast<size_t>(axis)];
    fft_internal::RequireSize(size, dct_type == 1 ? 2 : 1);
    fft_internal::ForEachLine(calculate_shape, static_cast<size_t>(axis), size, size, data.data(),
                              data.data(), [&](const T* in, T* out, int64_t stride) {
                                std::vector<T> line(static_cast<size_t>(size));
                                for (int64_t k = 0; k < size; ++k) line[k] = in[k * stride];
                                line = fft_internal::CosineTransformed(std::move(line), dct_type,
                                                                       is_ortho);
                                for (int64_t k = 0; k < size; ++k) out[k * stride] = line[k];
                              });
  }
  for (size_t i = 0; i < count; ++i) output_ptr[i] = data[i] * fct;
}

}  // namespace aicpu

#endif

#endif  // MSOPS_AICPU_UTILS_FFT_HELPER_H_
