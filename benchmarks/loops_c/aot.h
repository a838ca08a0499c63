// aot.h: the signature of MindSpore's aot kernels.
#include <math.h>
#include <stdint.h>
#include <string.h>

#define KERNEL(name)                                                                     \
  int name(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes, \
           void* stream, void* extra)
