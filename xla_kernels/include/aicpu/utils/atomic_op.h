// atomic_op.h: read-modify-write of an entry that several threads write.
#ifndef MSOPS_AICPU_UTILS_ATOMIC_OP_H_
#define MSOPS_AICPU_UTILS_ATOMIC_OP_H_

#include <complex>
#include <type_traits>

#include "../cpu_context.h"

namespace aicpu {
namespace atomic_internal {

// Works for any dtype of 1, 2, 4 or 8 bytes, Eigen's half among them.
template <typename T, typename Operation>
void Update(T* target, Operation operation) {
  T expected, desired;
  __atomic_load(target, &expected, __ATOMIC_RELAXED);
  do {
    desired = operation(expected);
  } while (!__atomic_compare_exchange(target, &expected, &desired, true, __ATOMIC_ACQ_REL,
                                      __ATOMIC_RELAXED));
}

}  // namespace atomic_internal

// Complex numbers are added part by part: no processor exchanges the largest at once.
template <typename T>
void AtomicAdd(T* const target, const T& operand) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    auto* const parts = reinterpret_cast<typename T::value_type*>(target);
    AtomicAdd(parts, operand.real());
    AtomicAdd(parts + 1, operand.imag());
  } else {
    atomic_internal::Update(target, [&](T value) { return static_cast<T>(value + operand); });
  }
}

// The form of newer kernels.
template <typename T>
void AtomicAdd(CpuKernelContext&, T* const target, const T operand) {
  AtomicAdd(target, operand);
}

template <typename T>
void AtomicSub(T* const target, const T& operand) {
  atomic_internal::Update(target, [&](T value) { return static_cast<T>(value - operand); });
}

template <typename T>
void AtomicMul(T* const target, const T& operand) {
  atomic_internal::Update(target, [&](T value) { return static_cast<T>(value * operand); });
}

template <typename T>
void AtomicDiv(T* const target, const T& operand) {
  atomic_internal::Update(target, [&](T value) { return static_cast<T>(value / operand); });
}

template <typename T>
void AtomicMax(T* const target, const T& operand) {
  atomic_internal::Update(target, [&](T value) { return value < operand ? operand : value; });
}

template <typename T>
void AtomicMin(T* const target, const T& operand) {
  atomic_internal::Update(target, [&](T value) { return operand < value ? operand : value; });
}

}  // namespace aicpu

#endif  // MSOPS_AICPU_UTILS_ATOMIC_OP_H_
