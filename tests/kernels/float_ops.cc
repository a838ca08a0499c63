// Kernels of MindSpore's C ABI for the tests: float32 unless said otherwise.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "custom_aot_extra.h"

namespace {

int64_t Size(int index, const int* ndims, int64_t** shapes) {
  int64_t size = 1;
  for (int i = 0; i < ndims[index]; ++i) size *= shapes[index][i];
  return size;
}

bool AllAre(const char* dtype, int count, const char** dtypes) {
  for (int i = 0; i < count; ++i) {
    if (std::strcmp(dtypes[i], dtype) != 0) return false;
  }
  return true;
}

bool AllHaveSizeOf(int index, int count, const int* ndims, int64_t** shapes) {
  for (int i = 0; i < count; ++i) {
    if (Size(i, ndims, shapes) != Size(index, ndims, shapes)) return false;
  }
  return true;
}

}  // namespace

// out = a * b; 2 when a dtype is not float32, 3 when sizes differ.
extern "C" int Multiply(int nparam, void** params, int* ndims, int64_t** shapes,
                        const char** dtypes, void* stream, void* extra) {
  if (nparam != 3) return 1;
  if (!AllAre("float32", 3, dtypes)) return 2;
  if (!AllHaveSizeOf(2, 3, ndims, shapes)) return 3;
  const float* a = static_cast<const float*>(params[0]);
  const float* b = static_cast<const float*>(params[1]);
  float* out = static_cast<float*>(params[2]);
  for (int64_t i = 0; i < Size(2, ndims, shapes); ++i) out[i] = a[i] * b[i];
  return 0;
}

// out = a * b with each repeated as often as it takes to fill out, whatever the ranks
extern "C" int MultiplyRepeated(int nparam, void** params, int* ndims, int64_t** shapes,
                                const char** dtypes, void* stream, void* extra) {
  if (nparam != 3) return 1;
  if (!AllAre("float32", 3, dtypes)) return 2;
  const float* a = static_cast<const float*>(params[0]);
  const float* b = static_cast<const float*>(params[1]);
  float* out = static_cast<float*>(params[2]);
  const int64_t a_size = Size(0, ndims, shapes);
  const int64_t b_size = Size(1, ndims, shapes);
  for (int64_t i = 0; i < Size(2, ndims, shapes); ++i) out[i] = a[i % a_size] * b[i % b_size];
  return 0;
}

// total, maximum = a + b, max(a, b)
extern "C" int SumAndMax(int nparam, void** params, int* ndims, int64_t** shapes,
                         const char** dtypes, void* stream, void* extra) {
  if (nparam != 4) return 1;
  const float* a = static_cast<const float*>(params[0]);
  const float* b = static_cast<const float*>(params[1]);
  float* total = static_cast<float*>(params[2]);
  float* maximum = static_cast<float*>(params[3]);
  for (int64_t i = 0; i < Size(2, ndims, shapes); ++i) {
    total[i] = a[i] + b[i];
    maximum[i] = a[i] > b[i] ? a[i] : b[i];
  }
  return 0;
}

// out += b, where out is a's buffer; 2 when it is not.
extern "C" int AddInto(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                       void* stream, void* extra) {
  if (nparam != 3 || !AllAre("float32", 3, dtypes)) return 1;
  if (params[0] != params[2]) return 2;
  const float* b = static_cast<const float*>(params[1]);
  float* out = static_cast<float*>(params[2]);
  const int64_t size = Size(2, ndims, shapes);
  const int64_t b_size = Size(1, ndims, shapes);
  for (int64_t i = 0; i < size; ++i) out[i] += b[i % b_size];
  return 0;
}

// out = sum of all inputs but the output, however many; 3 when sizes differ.
extern "C" int AddAll(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                      void* stream, void* extra) {
  if (!AllHaveSizeOf(nparam - 1, nparam, ndims, shapes)) return 3;
  float* out = static_cast<float*>(params[nparam - 1]);
  const int64_t size = Size(nparam - 1, ndims, shapes);
  for (int64_t i = 0; i < size; ++i) {
    out[i] = 0;
    for (int k = 0; k + 1 < nparam; ++k) out[i] += static_cast<const float*>(params[k])[i];
  }
  return 0;
}

// Scaled sum of rows: attributes "scale" (float) and "axis_sizes" (list of int, unused but read),
// one workspace of the input's size in bytes, kernel data that keeps the scale.
class ScaleData : public AotKernelData {
 public:
  float scale;
};

extern "C" int ScaleSumInit(int* ndims, int64_t** shapes, const char** dtypes, AotExtra* extra) {
  auto* data = new ScaleData();
  data->scale = extra->Attr<float>("scale");
  extra->SetKernelData(data);
  extra->SetWorkSpace({static_cast<size_t>(Size(0, ndims, shapes)) * sizeof(float)});
  return 0;
}

extern "C" int ScaleSum(int nparam, void** params, int* ndims, int64_t** shapes,
                        const char** dtypes, void* stream, void* extra_void) {
  auto* extra = static_cast<AotExtra*>(extra_void);
  if (nparam != 3) return 1;
  const float scale = static_cast<ScaleData*>(extra->KernelData())->scale;
  const float* x = static_cast<const float*>(params[0]);
  float* out = static_cast<float*>(params[1]);
  float* scratch = static_cast<float*>(params[2]);
  const int64_t rows = shapes[0][0], columns = shapes[0][1];
  for (int64_t i = 0; i < rows * columns; ++i) scratch[i] = scale * x[i];
  for (int64_t r = 0; r < rows; ++r) {
    out[r] = 0;
    for (int64_t c = 0; c < columns; ++c) out[r] += scratch[r * columns + c];
  }
  return 0;
}

// Concatenates two vectors; infers its own shape and type.
extern "C" std::vector<int64_t> ConcatInferShape(int* ndims, int64_t** shapes, AotExtra* extra) {
  return {shapes[0][0] + shapes[1][0]};
}

enum TypeId : int {};

extern "C" TypeId ConcatInferType(std::vector<TypeId> type_ids, AotExtra* extra) {
  return type_ids[0];
}

extern "C" int Concat(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                      void* stream, void* extra) {
  const int64_t first = shapes[0][0], second = shapes[1][0];
  std::memcpy(params[2], params[0], first * sizeof(float));
  std::memcpy(static_cast<float*>(params[2]) + first, params[1], second * sizeof(float));
  return 0;
}

// Infers nonsense: a negative size.
extern "C" std::vector<int64_t> NonsenseInferShape(int* ndims, int64_t** shapes, AotExtra* extra) {
  return {-3};
}

extern "C" TypeId NonsenseInferType(std::vector<TypeId> type_ids, AotExtra* extra) {
  return static_cast<TypeId>(7);
}

extern "C" int Nonsense(int nparam, void** params, int* ndims, int64_t** shapes,
                        const char** dtypes, void* stream, void* extra) {
  return 0;
}

extern "C" int Throws(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                      void* stream, void* extra) {
  throw std::runtime_error("the kernel threw this");
}

extern "C" int Fails(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void* extra) {
  return 42;
}

// Copies bytes of any dtype: out = in, 2 unless both dtypes are the same.
extern "C" int Copy(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                    void* stream, void* extra) {
  if (nparam != 2) return 1;
  if (std::strcmp(dtypes[0], dtypes[1]) != 0) return 2;
  const char* name = dtypes[0];
  int64_t width = 1;
  if (std::strstr(name, "16")) width = 2;
  if (std::strstr(name, "32")) width = 4;
  if (std::strstr(name, "64")) width = 8;
  if (std::strcmp(name, "complex128") == 0) width = 16;
  std::memcpy(params[1], params[0], Size(0, ndims, shapes) * width);
  return 0;
}

// A counter that the library keeps: out[0] = how often it ran, so merged or dropped calls show.
extern "C" int Count(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void* extra) {
  // Devices call it at the same time.
  static std::atomic<int> count = 0;
  static_cast<float*>(params[nparam - 1])[0] = static_cast<float>(++count);
  return 0;
}
