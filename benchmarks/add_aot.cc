// add_aot.cc: float32 x + y as an aot kernel.
#include <cstdint>

#include "add_loop.h"

extern "C" int Add(int nparam, void** params, int* ndims, int64_t** shapes, const char** /*dtypes*/,
                   void* /*stream*/, void* /*extra*/) {
  if (nparam != 3) return 1;
  int64_t count = 1;
  for (int i = 0; i < ndims[2]; ++i) count *= shapes[2][i];
  AddLoop(static_cast<const float*>(params[0]), static_cast<const float*>(params[1]),
          static_cast<float*>(params[2]), count);
  return 0;
}
