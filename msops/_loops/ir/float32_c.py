"""C code of functions on float that compilers vectorise: without branches.

A compiler vectorises calls of the C library only if all arithmetic is loosened with it, which would
change more than these functions. In a large loop gcc would leave some as calls, which keep the loop
out of vectors: so they are inlined always. The table of functions names the code of a function;
each `ms_` name in it is another function of this module, which is printed before it.

exp and log are within 1 ulp, tanh within 4 and erf within 6 (XLA's tanh within 5, its erf within
6). Coefficients of log: S. L. Moshier, Cephes Mathematical Library, single/logf.c; the others are
minimax approximations of the smallest relative error. log(2) is two constants, of which the first
has few bits: its product with an integer is exact.
"""

from __future__ import annotations

# Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits. Two factors of 2, as 2^n
# alone may be subnormal or infinite. Both are products: a sum of exponents would make a number of a
# NaN whose low bits are not 0.
EXP = """
static inline __attribute__((always_inline)) float ms_exp_f32(float x) {
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  const float shifted = ms_fma(x, 1.44269504f, 12582912.0f);
  const int32_t n = ms_bits(shifted) - 0x4b400000, half = n >> 1;
  return ms_exp_rest(x, shifted) * ms_power(half) * ms_power(n - half);
}"""

LOG = """
static inline __attribute__((always_inline)) float ms_log_f32(float x) {
  const int subnormal = x < 1.17549435e-38f;
  const int32_t bits = ms_bits(subnormal ? x * 8388608.0f : x);
  const int32_t n = (bits - 0x3f3504f3) >> 23;
  const float e = ms_number(subnormal ? n - 23 : n), f = ms_float(bits - n * 8388608) - 1.0f;
  const float z = f * f;
  float p = ms_fma(f, 7.0376836292e-2f, -1.1514610310e-1f);
  p = ms_fma(p, f, 1.1676998740e-1f);
  p = ms_fma(p, f, -1.2420140846e-1f);
  p = ms_fma(p, f, 1.4249322787e-1f);
  p = ms_fma(p, f, -1.6668057665e-1f);
  p = ms_fma(p, f, 2.0000714765e-1f);
  p = ms_fma(p, f, -2.4999993993e-1f);
  p = ms_fma(p, f, 3.3333331174e-1f);
  p = ms_fma(e, -2.12194440e-4f, p * f * z);
  p = ms_fma(e, 0.693359375f, f + ms_fma(z, -0.5f, p));
  p = x < __builtin_inff() ? p : x;
  p = x == 0.0f ? -__builtin_inff() : p;
  return x < 0.0f ? __builtin_nanf("") : p;
}"""

# tanh(x) is e / (e + 2) with e = exp(2x) - 1, which is 2^n - 1 + 2^n * (exp(r) - 1). From where on
# XLA's is exactly 1, this is that of 9.02, which is 1.
TANH = """
static inline __attribute__((always_inline)) float ms_tanh_f32(float x) {
  const float size = fabsf(x), t = size >= 7.99881172f ? 9.02f : size;
  const float shifted = ms_fma(t, 2.88539008f, 12582912.0f), n = shifted - 12582912.0f;
  const float r = ms_fma(n, 2.12194440e-4f, ms_fma(n, -0.693359375f, t + t));
  float p = ms_fma(r, 1.388248871e-3f, 8.366691880e-3f);
  p = ms_fma(p, r, 4.166720435e-2f);
  p = ms_fma(p, r, 1.666654199e-1f);
  p = ms_fma(p, r, 4.999999702e-1f);
  p = ms_fma(p, r * r, r);
  const float power = ms_power(ms_bits(shifted) - 0x4b400000);
  const float e = ms_fma(power, p, power - 1.0f);
  return copysignf(e / (e + 2.0f), x);
}"""

# A quotient of polynomials, as XLA has it: an exponential would be nearer and take twice as long.
ERF = """
static inline __attribute__((always_inline)) float ms_erf_f32(float x) {
  const float size = fabsf(x), z = x * x, w = z * z;
  float p = ms_fma(2.833719691e-06f, z, 3.826386237e-04f);
  p = ms_fma(p, w, ms_fma(4.902071320e-03f, z, 7.020821422e-02f));
  p = ms_fma(p, w, ms_fma(2.510888278e-01f, z, 1.510575891e+00f));
  float q = ms_fma(5.197780411e-05f, z, 1.530576264e-03f);
  q = ms_fma(q, w, ms_fma(1.976015046e-02f, z, 1.512718052e-01f));
  q = ms_fma(q, w, ms_fma(6.687587500e-01f, z, 1.338713050e+00f));
  const float quotient = size * p / q, least = quotient > 1.0f ? 1.0f : quotient;
  return copysignf(size > 3.84f ? 1.0f : least, x);
}"""

_BITS = """
static inline __attribute__((always_inline)) int32_t ms_bits(float x) {
  union { float value; int32_t bits; } u;
  u.value = x;
  return u.bits;
}"""

_FLOAT = """
static inline __attribute__((always_inline)) float ms_float(int32_t bits) {
  union { int32_t bits; float value; } u;
  u.bits = bits;
  return u.value;
}"""

# exp(x) / 2^n, where n is the integer nearest to x / log(2), and shifted is 1.5 * 2^23 + n.
_EXP_REST = """
static inline __attribute__((always_inline)) float ms_exp_rest(float x, float shifted) {
  const float n = shifted - 12582912.0f;
  const float r = ms_fma(n, 2.12194440e-4f, ms_fma(n, -0.693359375f, x));
  float p = ms_fma(r, 1.381422160e-3f, 8.368899114e-3f);
  p = ms_fma(p, r, 4.166840389e-2f);
  p = ms_fma(p, r, 1.666651964e-1f);
  p = ms_fma(p, r, 4.999999404e-1f);
  return ms_fma(p, r * r, r) + 1.0f;
}"""

# 2^n, if that is a normal number.
_POWER = """
static inline __attribute__((always_inline)) float ms_power(int32_t n) {
  return ms_float(0x3f800000 + n * 8388608);
}"""

_NUMBER = """
static inline __attribute__((always_inline)) float ms_number(int32_t n) {
  return (float)n;
}"""

_FMA = """
#ifdef __FP_FAST_FMAF
#define ms_fma(a, b, c) __builtin_fmaf(a, b, c)
#else
#define ms_fma(a, b, c) ((a) * (b) + (c))
#endif"""

PARTS = {
    "ms_bits": _BITS,
    "ms_float": _FLOAT,
    "ms_fma": _FMA,
    "ms_exp_rest": _EXP_REST,
    "ms_number": _NUMBER,
    "ms_power": _POWER,
    "ms_exp_f32": EXP,
}
"""The helpers that the functions call, by name."""
