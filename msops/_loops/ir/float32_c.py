"""C code of functions on float that compilers vectorise: without branches, within 2 ulp.

A compiler vectorises calls of the C library only if all arithmetic is loosened with it, which would
change more than these functions. In a large loop gcc would leave some as calls, which keep the loop
out of vectors: so they are inlined always. The table of functions names the code of a function;
each `ms_` name in it is another function of this module, which is printed before it.

Coefficients of exp, log and tanh: S. L. Moshier, Cephes Mathematical Library, single/{expf,logf,
tanhf}.c; of erf: N. Juffa, "erff", both with constants that are exact in few bits where a product
must be.
"""

from __future__ import annotations

# Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits.
EXP = """
static inline __attribute__((always_inline)) float ms_exp_f32(float x) {
  x = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;
  const float shifted = ms_fma(x, 1.44269504f, 12582912.0f), n = shifted - 12582912.0f;
  const float r = ms_fma(n, 2.12194440e-4f, ms_fma(n, -0.693359375f, x));
  return ms_exp_core(r, ms_bits(shifted) - 0x4b400000);
}"""

LOG = """
static inline __attribute__((always_inline)) float ms_log_f32(float x) {
  const int subnormal = x < 1.17549435e-38f;
  const int32_t bits = ms_bits(subnormal ? x * 8388608.0f : x);
  const int32_t n = (bits - 0x3f3504f3) >> 23;
  const float e = (float)(subnormal ? n - 23 : n), f = ms_float(bits - n * 8388608) - 1.0f;
  const float z = f * f;
  float p = 7.0376836292e-2f;
  p = ms_fma(p, f, -1.1514610310e-1f);
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

TANH = """
static inline __attribute__((always_inline)) float ms_tanh_f32(float x) {
  const float size = fabsf(x), z = x * x;
  float p = -5.70498872745e-3f;
  p = ms_fma(p, z, 2.06390887954e-2f);
  p = ms_fma(p, z, -5.37397155531e-2f);
  p = ms_fma(p, z, 1.33314422036e-1f);
  p = ms_fma(p, z, -3.33332819422e-1f);
  const float small = ms_fma(p * z, x, x);
  const float large = 1.0f - 2.0f / (ms_exp_f32(2.0f * size) + 1.0f);
  return copysignf(size < 0.625f ? small : large, x);
}"""

ERF = """
static inline __attribute__((always_inline)) float ms_erf_f32(float x) {
  const float z = x * x, size = fabsf(x), t = size > 4.0f ? 4.0f : size, s = t * t;
  float p = -5.96761703e-4f;
  p = ms_fma(p, z, 4.99119423e-3f);
  p = ms_fma(p, z, -2.67681349e-2f);
  p = ms_fma(p, z, 1.12819925e-1f);
  p = ms_fma(p, z, -3.76125336e-1f);
  p = ms_fma(p, z, 1.28379166e-1f);
  float q = ms_fma(-1.72853470e-5f, t, 3.83197126e-4f);
  q = ms_fma(q, s, ms_fma(-3.88396438e-3f, t, 2.42546219e-2f));
  q = ms_fma(q, t, -1.06777877e-1f);
  q = ms_fma(q, t, -6.34846687e-1f);
  q = ms_fma(q, t, -1.28717512e-1f);
  q = 1.0f - ms_exp_f32(ms_fma(q, t, -t));
  return size < 0.927734375f ? ms_fma(p, x, x) : copysignf(q, x);
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

_FMA = """
#ifdef __FP_FAST_FMAF
#define ms_fma(a, b, c) __builtin_fmaf(a, b, c)
#else
#define ms_fma(a, b, c) ((a) * (b) + (c))
#endif"""

# exp(r) * 2^n for small r, also where 2^n alone would be subnormal or infinite.
_EXP_CORE = """
static inline __attribute__((always_inline)) float ms_exp_core(float r, int32_t n) {
  float p = 1.9875691500e-4f;
  p = ms_fma(p, r, 1.3981999507e-3f);
  p = ms_fma(p, r, 8.3334519073e-3f);
  p = ms_fma(p, r, 4.1665795894e-2f);
  p = ms_fma(p, r, 1.6666665459e-1f);
  p = ms_fma(p, r, 5.0000001201e-1f);
  p = ms_fma(p, r * r, r) + 1.0f;
  const int32_t half = n >> 1;
  return p * ms_float((half + 127) << 23) * ms_float((n - half + 127) << 23);
}"""

PARTS = {
    "ms_bits": _BITS,
    "ms_float": _FLOAT,
    "ms_fma": _FMA,
    "ms_exp_core": _EXP_CORE,
    "ms_exp_f32": EXP,
}
"""What the functions are made of, by name."""
