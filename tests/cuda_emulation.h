// cuda_emulation.h: enough of CUDA for generated kernels to compile as C++; cuda_emulation.cc runs
// them.
#include <math.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __device__
#define __launch_bounds__(threads)

struct EmulatedDim {
  unsigned x;
};
extern EmulatedDim threadIdx, blockIdx, blockDim, gridDim;

// Runs a function for every thread of a grid. `seed` chooses the order in which they run: 0
// ascending, 1 descending, else random.
void EmulateLaunch(void (*kernel)(void** arguments), void** arguments, unsigned blocks,
                   unsigned threads, unsigned seed);

inline float __int_as_float(int bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
inline double __longlong_as_double(long long bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline float ms_from_f16(uint16_t bits) {
  _Float16 value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint16_t ms_to_f16(float value) {
  const _Float16 rounded = value;
  uint16_t bits;
  memcpy(&bits, &rounded, sizeof bits);
  return bits;
}
