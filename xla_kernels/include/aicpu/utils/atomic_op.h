// atomic_op.h: read-modify-write of an entry that several threads write.
#ifndef MSOPS_AICPU_UTILS_ATOMIC_OP_H_
#define MSOPS_AICPU_UTILS_ATOMIC_OP_H_

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

template <typename T>
void AtomicAdd(T* const target, const T& operand) {
  atomic_internal::Update(target, [&](T value) { return static_cast<T>(value + operand); });
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
