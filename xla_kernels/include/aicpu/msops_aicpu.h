// msops_aicpu.h: how a library of AICPU kernels and msops meet. Plain C and versioned, so that a
// library built by another compiler, or against older headers of the same version, works.
//
// A library exports the four functions at the end; cpu_kernel_utils.h defines them, so that every
// source that includes the AICPU headers brings them along.
#ifndef MSOPS_AICPU_H_
#define MSOPS_AICPU_H_

#include <stdint.h>

// Raised when anything below changes. msops refuses libraries of another version.
#define MSOPS_AICPU_VERSION 1

#define MSOPS_AICPU_EXPORT extern "C" inline __attribute__((used, visibility("default")))

extern "C" {

// An input or output. Shapes are those of the program; an output's data has room for all of it.
struct MsopsAicpuTensor {
  void* data;
  uint64_t size_bytes;
  int32_t dtype;  // aicpu::DataType
  int32_t rank;
  const int64_t* dims;
};

// The attribute that lists the names of the inputs, if op info has them.
#define MSOPS_AICPU_INPUT_NAMES "msops_input_names"

enum MsopsAicpuKind {
  MSOPS_AICPU_BOOL = 0,   // values are uint8_t
  MSOPS_AICPU_INT = 1,    // int64_t
  MSOPS_AICPU_FLOAT = 2,  // double
  MSOPS_AICPU_TEXT = 3,   // MsopsAicpuText
};

struct MsopsAicpuText {
  const char* data;
  uint64_t size;
};

// An attribute: a scalar (depth 0), a list (1), or a list of lists (2) whose lengths are `lengths`.
struct MsopsAicpuAttribute {
  const char* name;
  int32_t kind;
  int32_t depth;
  const void* values;
  uint64_t count;
  const int64_t* lengths;
  uint64_t rows;
};

enum MsopsAicpuLogLevel {
  MSOPS_AICPU_DEBUG = 10,
  MSOPS_AICPU_INFO = 20,
  MSOPS_AICPU_WARNING = 30,
  MSOPS_AICPU_ERROR = 40,
};

// What msops does for a kernel. `call` is that of MsopsAicpuCall. Any thread may call these.
struct MsopsAicpuHost {
  // Runs `body(argument, begin, end)` over blocks of the iterations; 0, or the first other code.
  int (*parallel_for)(int64_t begin, int64_t end, int64_t grain,
                      int (*body)(void* argument, int64_t begin, int64_t end), void* argument);
  // Number of threads that parallel_for runs on.
  int64_t (*thread_count)(void* call);
  // Whether anything is done with a line of this level; if not, it need not be formatted.
  int (*wants_log)(void* call, int level);
  void (*log)(void* call, int level, const char* file, int line, const char* function,
              const char* text);
  // Says what shape the kernel gave an output.
  void (*set_shape)(void* call, uint32_t output, int32_t rank, const int64_t* dims);
};

struct MsopsAicpuCall {
  const struct MsopsAicpuHost* host;
  void* call;
  const char* type;  // name of the op
  const struct MsopsAicpuTensor* inputs;
  uint32_t input_count;
  const struct MsopsAicpuTensor* outputs;
  uint32_t output_count;
  const struct MsopsAicpuAttribute* attributes;
  uint32_t attribute_count;
};

// The exported functions:
//   uint32_t msops_aicpu_version(void)             MSOPS_AICPU_VERSION of these headers
//   const char* msops_aicpu_kernels(void)          names of the registered kernels, in lines
//   int msops_aicpu_has(const char* type)          whether there is a kernel for an op
//   uint32_t msops_aicpu_compute(const struct MsopsAicpuCall*)
//                                                  the code of Compute; may throw C++ exceptions
}  // extern "C"

#endif  // MSOPS_AICPU_H_
