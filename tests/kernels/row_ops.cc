// Kernels over the rows of a matrix, for tests of programs on several devices.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "custom_aot_extra.h"

// out[i, j] = x[i, j] * w[j]. Init asks for a workspace of the size of x, which is written.
extern "C" int ScaleRowsInit(int* ndims, int64_t** shapes, const char** dtypes, AotExtra* extra) {
  if (ndims[0] != 2 || ndims[1] != 1 || shapes[0][1] != shapes[1][0]) return 1;
  extra->SetWorkSpace({static_cast<size_t>(shapes[0][0] * shapes[0][1]) * sizeof(float)});
  return 0;
}

extern "C" int ScaleRows(int nparam, void** params, int* ndims, int64_t** shapes,
                         const char** dtypes, void* stream, void* extra) {
  if (nparam != 4 || shapes[2][0] != shapes[0][0] || shapes[2][1] != shapes[0][1]) return 2;
  const int64_t rows = shapes[0][0], columns = shapes[0][1];
  const float* x = static_cast<const float*>(params[0]);
  const float* w = static_cast<const float*>(params[1]);
  float* out = static_cast<float*>(params[2]);
  float* scratch = static_cast<float*>(params[3]);
  std::memcpy(scratch, x, rows * columns * sizeof(float));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) out[i * columns + j] = scratch[i * columns + j] * w[j];
  }
  return 0;
}

// out[i, j] = x[i, j] / sum over j of x[i, j]: rows are independent, columns are not.
extern "C" int NormalizeRows(int nparam, void** params, int* ndims, int64_t** shapes,
                             const char** dtypes, void* stream, void* extra) {
  const int64_t rows = shapes[0][0], columns = shapes[0][1];
  const float* x = static_cast<const float*>(params[0]);
  float* out = static_cast<float*>(params[1]);
  for (int64_t i = 0; i < rows; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < columns; ++j) sum += x[i * columns + j];
    for (int64_t j = 0; j < columns; ++j) out[i * columns + j] = x[i * columns + j] / sum;
  }
  return 0;
}
