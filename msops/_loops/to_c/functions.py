"""Mathematical functions in generated C, in a form that compilers vectorise.

A compiler vectorises calls of the C library only if all arithmetic is loosened with it, which would
change more than these functions. So the common ones on float are printed as functions without
branches, within 2 ulp; of the others, glibc's vector library has most, within 4 ulp, and a
declaration lets gcc use it.
"""

from __future__ import annotations

from typing import ClassVar

from msops._loops.ir.nodes import Buffer
from msops._loops.to_c.halves import HALVES
from msops._loops.to_c.text.names import LIBRARY
from msops._loops.to_c.threads import CThreads

# Coefficients of exp, log and tanh: S. L. Moshier, Cephes Mathematical Library, single/{expf,logf,
# tanhf}.c; of erf: N. Juffa, "erff", both with constants that are exact in few bits where a product
# must be.
_FUNCTIONS = {
    "bits": """
static inline int32_t ms_bits(float x) {
  union { float value; int32_t bits; } u;
  u.value = x;
  return u.bits;
}

static inline float ms_float(int32_t bits) {
  union { int32_t bits; float value; } u;
  u.bits = bits;
  return u.value;
}""",
    "fma": """
#ifdef __FP_FAST_FMAF
#define ms_fma(a, b, c) __builtin_fmaf(a, b, c)
#else
#define ms_fma(a, b, c) ((a) * (b) + (c))
#endif""",
    # exp(r) * 2^n for small r, also where 2^n alone would be subnormal or infinite.
    "exp_core": """
static inline float ms_exp_core(float r, int32_t n) {
  float p = 1.9875691500e-4f;
  p = ms_fma(p, r, 1.3981999507e-3f);
  p = ms_fma(p, r, 8.3334519073e-3f);
  p = ms_fma(p, r, 4.1665795894e-2f);
  p = ms_fma(p, r, 1.6666665459e-1f);
  p = ms_fma(p, r, 5.0000001201e-1f);
  p = ms_fma(p, r * r, r) + 1.0f;
  const int32_t half = n >> 1;
  return p * ms_float((half + 127) << 23) * ms_float((n - half + 127) << 23);
}""",
    # Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits.
    "exp": """
static inline float ms_exp_f32(float x) {
  x = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;
  const float shifted = ms_fma(x, 1.44269504f, 12582912.0f), n = shifted - 12582912.0f;
  const float r = ms_fma(n, 2.12194440e-4f, ms_fma(n, -0.693359375f, x));
  return ms_exp_core(r, ms_bits(shifted) - 0x4b400000);
}""",
    "log": """
static inline float ms_log_f32(float x) {
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
}""",
    "tanh": """
static inline float ms_tanh_f32(float x) {
  const float size = fabsf(x), z = x * x;
  float p = -5.70498872745e-3f;
  p = ms_fma(p, z, 2.06390887954e-2f);
  p = ms_fma(p, z, -5.37397155531e-2f);
  p = ms_fma(p, z, 1.33314422036e-1f);
  p = ms_fma(p, z, -3.33332819422e-1f);
  const float small = ms_fma(p * z, x, x);
  const float large = 1.0f - 2.0f / (ms_exp_f32(2.0f * size) + 1.0f);
  return size < 0.625f ? small : copysignf(large, x);
}""",
    "sigmoid": """
static inline float ms_sigmoid_f32(float x) {
  return 1.0f / (1.0f + ms_exp_f32(-x));
}""",
    "erf": """
static inline float ms_erf_f32(float x) {
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
}""",
}

_NEEDS = {
    "exp_core": ("fma", "bits"),
    "exp": ("exp_core",),
    "log": ("fma", "bits"),
    "tanh": ("exp",),
    "sigmoid": ("exp",),
    "erf": ("exp",),
}

# By the glibc from which the vector library of x86-64 has them.
_VECTOR_LIBRARY = {
    (2, 22): ("sin", "cos", "exp", "log", "pow"),
    (2, 35): (
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cosh", "erf", "exp2", "expm1",
        "log10", "log1p", "log2", "sinh", "tan", "tanh",
    ),
}  # fmt: skip
_SINCE = {name: version for version, names in _VECTOR_LIBRARY.items() for name in names}


class CMath(CThreads):
    """Prints C: `CThreads` with functions that vectorise, and float16."""

    storage_types: ClassVar[dict[str, str]] = CThreads.storage_types | {"float16": "ms_half"}

    def storage_type(self, buffer: Buffer) -> str:
        """Returns the C type of an array's elements, declared from now on."""
        if buffer.dtype == "float16":
            self._need_halves()
        return super().storage_type(buffer)

    def from_storage(self, text: str, dtype: str) -> str:
        """Returns the value that an element of an array stands for."""
        if dtype != "float16":
            return super().from_storage(text, dtype)
        self._need_halves()
        return f"ms_from_half({text})"

    def to_storage(self, text: str, dtype: str) -> str:
        """Returns what is written into an array for a value."""
        if dtype != "float16":
            return super().to_storage(text, dtype)
        self._need_halves()
        return f"ms_to_half({text})"

    def _need_halves(self) -> None:
        self.helpers.setdefault("ms_half", HALVES.strip())

    def math(self, function: str, args: tuple[str, ...], dtype: str) -> str:
        """Returns a function, or `pow`, of float32 or float64 values."""
        if dtype == "float32" and function in _FUNCTIONS:
            self._need(function)
            return f"ms_{function}_f32({', '.join(args)})"
        if LIBRARY.get(function) in _SINCE:
            self._declare_vector(LIBRARY[function], len(args), dtype)
        return super().math(function, args, dtype)

    def _need(self, function: str) -> None:
        for name in _NEEDS.get(function, ()):
            self._need(name)
        self.helpers.setdefault(f"ms_{function}_f32", _FUNCTIONS[function].strip())

    def _declare_vector(self, function: str, arity: int, dtype: str) -> None:
        """Lets gcc replace calls in loops by the vector library's, where there is one."""
        major, minor = _SINCE[function]
        kind = self.value_types[dtype]
        name = function if dtype == "float64" else f"{function}f"
        self.helpers.setdefault(
            name,
            "#if defined(__x86_64__) && defined(__GLIBC_PREREQ)\n"
            f"#if __GLIBC_PREREQ({major}, {minor})\n"
            f'__attribute__((simd("notinbranch"), const)) {kind} {name}'
            f"({', '.join([kind] * arity)});\n"
            "#endif\n#endif",
        )
