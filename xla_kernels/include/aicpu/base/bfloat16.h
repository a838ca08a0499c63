// bfloat16.h: MindSpore's bfloat16: the upper half of a float, computed with as float.
#ifndef MSOPS_AICPU_BASE_BFLOAT16_H_
#define MSOPS_AICPU_BASE_BFLOAT16_H_

#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <ostream>
#include <type_traits>

namespace mindspore {

class BFloat16 {
 public:
  static constexpr uint16_t value_mask = 0x7fff;
  static constexpr uint16_t inf_value = 0x7f80;
  static constexpr uint16_t nan_value = 0x7fc0;
  static constexpr uint16_t true_value = 0x3f80;

  BFloat16() = default;
  explicit BFloat16(float value) : value_(FromFloat32(value)) {}
  explicit BFloat16(bool value) : value_(value ? true_value : 0) {}
  template <typename T>
  explicit BFloat16(const T& value) : value_(FromFloat32(static_cast<float>(value))) {}

  static BFloat16 FromRaw(uint16_t bits) {
    BFloat16 result;
    result.value_ = bits;
    return result;
  }

  uint16_t int_value() const { return value_; }

  template <typename T>
  explicit operator T() const {
    return static_cast<T>(ToFloat32(*this));
  }
  explicit operator bool() const { return (value_ & value_mask) != 0; }
  explicit operator float() const { return ToFloat32(*this); }

  BFloat16& operator+=(const BFloat16& other) {
    return *this = BFloat16(ToFloat32(*this) + ToFloat32(other));
  }
  BFloat16& operator-=(const BFloat16& other) {
    return *this = BFloat16(ToFloat32(*this) - ToFloat32(other));
  }
  BFloat16& operator*=(const BFloat16& other) {
    return *this = BFloat16(ToFloat32(*this) * ToFloat32(other));
  }
  BFloat16& operator/=(const BFloat16& other) {
    return *this = BFloat16(ToFloat32(*this) / ToFloat32(other));
  }

  static float ToFloat32(const BFloat16& value) {
    const uint32_t bits = static_cast<uint32_t>(value.value_) << 16;
    float result;
    std::memcpy(&result, &bits, sizeof result);
    return result;
  }

  // Rounds to nearest, ties to even.
  static uint16_t FromFloat32(float value) {
    if (std::isnan(value)) return nan_value;
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }

 private:
  uint16_t value_;
};

inline BFloat16 operator+(const BFloat16& a, const BFloat16& b) { return BFloat16(a) += b; }
inline BFloat16 operator-(const BFloat16& a, const BFloat16& b) { return BFloat16(a) -= b; }
inline BFloat16 operator*(const BFloat16& a, const BFloat16& b) { return BFloat16(a) *= b; }
inline BFloat16 operator/(const BFloat16& a, const BFloat16& b) { return BFloat16(a) /= b; }
inline BFloat16 operator/(const BFloat16& a, size_t b) {
  return BFloat16(static_cast<float>(a) / static_cast<float>(b));
}
inline BFloat16 operator-(const BFloat16& a) { return BFloat16::FromRaw(a.int_value() ^ 0x8000); }
inline bool operator==(const BFloat16& a, const BFloat16& b) {
  return static_cast<float>(a) == static_cast<float>(b);
}
inline bool operator!=(const BFloat16& a, const BFloat16& b) { return !(a == b); }
inline bool operator<(const BFloat16& a, const BFloat16& b) {
  return static_cast<float>(a) < static_cast<float>(b);
}
inline bool operator<=(const BFloat16& a, const BFloat16& b) {
  return static_cast<float>(a) <= static_cast<float>(b);
}
inline bool operator>(const BFloat16& a, const BFloat16& b) { return b < a; }
inline bool operator>=(const BFloat16& a, const BFloat16& b) { return b <= a; }
inline std::ostream& operator<<(std::ostream& stream, const BFloat16& value) {
  return stream << static_cast<float>(value);
}

}  // namespace mindspore

using bfloat16 = mindspore::BFloat16;

namespace std {

template <>
struct hash<bfloat16> {
  size_t operator()(const bfloat16& value) const noexcept { return value.int_value(); }
};

template <>
struct is_floating_point<bfloat16> : public true_type {};
template <>
struct is_signed<bfloat16> : public true_type {};

template <>
struct numeric_limits<bfloat16> {
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool has_signaling_NaN = true;
  static constexpr float_denorm_style has_denorm = numeric_limits<float>::has_denorm;
  static constexpr bool has_denorm_loss = false;
  static constexpr float_round_style round_style = numeric_limits<float>::round_style;
  static constexpr bool is_iec559 = false;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr int digits = 8;
  static constexpr int digits10 = 2;
  static constexpr int max_digits10 = 4;
  static constexpr int radix = 2;
  static constexpr int min_exponent = numeric_limits<float>::min_exponent;
  static constexpr int min_exponent10 = numeric_limits<float>::min_exponent10;
  static constexpr int max_exponent = numeric_limits<float>::max_exponent;
  static constexpr int max_exponent10 = numeric_limits<float>::max_exponent10;
  static constexpr bool traps = numeric_limits<float>::traps;
  static constexpr bool tinyness_before = numeric_limits<float>::tinyness_before;

  static bfloat16(min)() noexcept { return bfloat16::FromRaw(0x0080); }
  static bfloat16(max)() noexcept { return bfloat16::FromRaw(0x7f7f); }
  static bfloat16 lowest() noexcept { return bfloat16::FromRaw(0xff7f); }
  static bfloat16 epsilon() noexcept { return bfloat16::FromRaw(0x3c00); }
  static bfloat16 round_error() noexcept { return bfloat16::FromRaw(0x3f00); }
  static bfloat16 infinity() noexcept { return bfloat16::FromRaw(0x7f80); }
  static bfloat16 quiet_NaN() noexcept { return bfloat16::FromRaw(0x7fc0); }
  static bfloat16 signaling_NaN() noexcept { return bfloat16::FromRaw(0x7f81); }
  static bfloat16 denorm_min() noexcept { return bfloat16::FromRaw(0x0001); }
};

}  // namespace std

namespace mindspore {

inline bool(isinf)(const BFloat16& a) { return (a.int_value() & 0x7fff) == 0x7f80; }
inline bool(isnan)(const BFloat16& a) { return (a.int_value() & 0x7fff) > 0x7f80; }
inline bool(isfinite)(const BFloat16& a) { return (a.int_value() & 0x7f80) != 0x7f80; }
inline BFloat16 abs(const BFloat16& a) { return BFloat16::FromRaw(a.int_value() & 0x7fff); }
inline BFloat16(min)(const BFloat16& a, const BFloat16& b) { return b < a ? b : a; }
inline BFloat16(max)(const BFloat16& a, const BFloat16& b) { return a < b ? b : a; }
inline BFloat16 exp(const BFloat16& a) { return BFloat16(std::exp(static_cast<float>(a))); }
inline BFloat16 log(const BFloat16& a) { return BFloat16(std::log(static_cast<float>(a))); }
inline BFloat16 log1p(const BFloat16& a) { return BFloat16(std::log1p(static_cast<float>(a))); }
inline BFloat16 log10(const BFloat16& a) { return BFloat16(std::log10(static_cast<float>(a))); }
inline BFloat16 sqrt(const BFloat16& a) { return BFloat16(std::sqrt(static_cast<float>(a))); }
inline BFloat16 sin(const BFloat16& a) { return BFloat16(std::sin(static_cast<float>(a))); }
inline BFloat16 cos(const BFloat16& a) { return BFloat16(std::cos(static_cast<float>(a))); }
inline BFloat16 tan(const BFloat16& a) { return BFloat16(std::tan(static_cast<float>(a))); }
inline BFloat16 tanh(const BFloat16& a) { return BFloat16(std::tanh(static_cast<float>(a))); }
inline BFloat16 floor(const BFloat16& a) { return BFloat16(std::floor(static_cast<float>(a))); }
inline BFloat16 ceil(const BFloat16& a) { return BFloat16(std::ceil(static_cast<float>(a))); }
inline BFloat16 pow(const BFloat16& a, const BFloat16& b) {
  return BFloat16(std::pow(static_cast<float>(a), static_cast<float>(b)));
}

}  // namespace mindspore

inline float bfloat_to_float(const bfloat16& value) { return static_cast<float>(value); }

#endif  // MSOPS_AICPU_BASE_BFLOAT16_H_
