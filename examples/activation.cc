// activation.cc: the Mish activation and its gradient, kernels of examples/digits.py.
//
//   Mish(x) = x t   with   t = tanh(log(1 + e^x)) = n / (n + 2),   n = e^x (e^x + 2)
//   Mish'(x) = t + x t'   with   t' = 4 e^x (e^x + 1) / (n + 2)^2
//
// With e = e^x both take one exponential, where tanh, log and exp one after the other take three;
// and no digits cancel for negative x. Source: Misra, "Mish", arXiv:1908.08681, equation 1.
#include <cstdint>
#include <cstring>

// Without floating-point exceptions, which nothing here uses, GCC turns comparisons into vector
// selects.
#pragma GCC optimize("no-trapping-math")

// Compiles a function for newer x86 processors too; the loader picks the version for the machine.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_MACHINE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_MACHINE
#endif

namespace {

enum Status { kOk = 0, kWrongCount = 1, kWrongDtype = 2, kWrongSize = 3 };

// e^x for x in [-80, 80] to two units in the last place: 2^k e^r with k whole and |r| <= ln(2) / 2.
// Unlike std::exp it has neither branch nor call, so the loops around it become vector code.
// Source: the polynomial is that of Cephes, expf.c.
inline float Exp(float x) {
  constexpr float kToWhole = 0x1.8p23f;  // adding it rounds to a whole number
  const float k = (x * 1.44269504f + kToWhole) - kToWhole;
  // ln(2) in two parts, the first of so few bits that its product with k is exact.
  const float r = x - k * 0.693359375f + k * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1;
  const int32_t bits = (static_cast<int32_t>(k) + 127) << 23;  // of the float 2^k
  float two_to_k;
  std::memcpy(&two_to_k, &bits, sizeof two_to_k);
  return p * two_to_k;
}

// Below -80, Mish and its slope are 0 to 30 decimal places; above 20, t is 1 in float32, while the
// square of n would overflow. Comparing this way round lets NaN through.
inline float AtLeastMinus80(float x) { return x < -80 ? -80 : x; }
inline float AtMost20(float x) { return x > 20 ? 20 : x; }

FOR_EACH_MACHINE void MishLoop(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float value = AtLeastMinus80(x[i]);
    const float e = Exp(AtMost20(value));
    const float n = e * (e + 2);
    y[i] = value * (n / (n + 2));
  }
}

FOR_EACH_MACHINE void MishGradLoop(const float* x, const float* dy, float* dx, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float value = AtMost20(AtLeastMinus80(x[i]));
    const float e = Exp(value);
    const float n = e * (e + 2);
    const float t_slope = 4 * e * (e + 1) / ((n + 2) * (n + 2));
    dx[i] = dy[i] * (n / (n + 2) + value * t_slope);
  }
}

int64_t CountElements(int ndim, const int64_t* shape) {
  int64_t count = 1;
  for (int i = 0; i < ndim; ++i) count *= shape[i];
  return count;
}

// Checks that a call has `expected` parameters, all float32 and of one size.
Status Check(int expected, int nparam, const int* ndims, int64_t** shapes, const char** dtypes) {
  if (nparam != expected) return kWrongCount;
  for (int i = 0; i < nparam; ++i) {
    if (std::strcmp(dtypes[i], "float32") != 0) return kWrongDtype;
    if (CountElements(ndims[i], shapes[i]) != CountElements(ndims[0], shapes[0])) return kWrongSize;
  }
  return kOk;
}

}  // namespace

// params: x, y
extern "C" int Mish(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                    void* /*stream*/, void* /*extra*/) {
  const Status status = Check(2, nparam, ndims, shapes, dtypes);
  if (status != kOk) return status;
  MishLoop(static_cast<const float*>(params[0]), static_cast<float*>(params[1]),
           CountElements(ndims[0], shapes[0]));
  return kOk;
}

// params: x, dy, dx
extern "C" int MishGrad(int nparam, void** params, int* ndims, int64_t** shapes,
                        const char** dtypes, void* /*stream*/, void* /*extra*/) {
  const Status status = Check(3, nparam, ndims, shapes, dtypes);
  if (status != kOk) return status;
  MishGradLoop(static_cast<const float*>(params[0]), static_cast<const float*>(params[1]),
               static_cast<float*>(params[2]), CountElements(ndims[0], shapes[0]));
  return kOk;
}
