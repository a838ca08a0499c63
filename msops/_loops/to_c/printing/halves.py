"""float16 in generated C: the compiler's type if it has one, as gcc 12 does, else its bits."""

HALVES = """
#ifdef __FLT16_MANT_DIG__
typedef _Float16 ms_half;

static inline float ms_from_half(ms_half x) {
  return x;
}

static inline ms_half ms_to_half(float x) {
  return (ms_half)x;
}
#else
typedef uint16_t ms_half;

union ms_half_parts {
  float value;
  uint32_t bits;
};

static inline float ms_from_half(ms_half x) {
  union ms_half_parts u;
  u.bits = (uint32_t)(x & 0x7fff) << 13;
  // The exponents of float start 112 lower; a product does subnormals right, too.
  u.value *= 0x1p112f;
  if ((x & 0x7c00) == 0x7c00) u.bits |= 0x7f800000;
  u.bits |= (uint32_t)(x & 0x8000) << 16;
  return u.value;
}

static inline ms_half ms_to_half(float x) {
  union ms_half_parts u;
  u.value = x;
  const uint32_t sign = (u.bits >> 16) & 0x8000, size = u.bits & 0x7fffffff;
  if (size > 0x7f800000) return (ms_half)(sign | 0x7e00);
  if (size >= 0x477ff000) return (ms_half)(sign | 0x7c00);
  if (size >= 0x38800000) {
    return (ms_half)(sign | ((size - 0x38000000 + 0xfff + ((size >> 13) & 1)) >> 13));
  }
  // A float just above 0.5 has the spacing of subnormal halves: the sum rounds as they do.
  u.bits = size;
  u.value += 0.5f;
  return (ms_half)(sign | (u.bits - 0x3f000000));
}
#endif"""
