// kernel_tools.h: what the kernels of this folder share.
#ifndef MSOPS_GPU_KERNEL_TOOLS_H_
#define MSOPS_GPU_KERNEL_TOOLS_H_

#include <cstdint>
#include <cstring>

constexpr int kThreads = 256;

// Returns the number of elements of a parameter.
inline int64_t Count(int ndim, const int64_t* shape) {
  int64_t count = 1;
  for (int i = 0; i < ndim; ++i) count *= shape[i];
  return count;
}

// Returns the number of blocks for one thread per element.
inline unsigned Blocks(int64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

// Returns whether the parameters have these dtypes, in order.
template <typename... Names>
bool HaveDtypes(const char** dtypes, Names... names) {
  int i = 0;
  return (... && (std::strcmp(dtypes[i++], names) == 0));
}

// What a kernel returns for parameters it cannot serve; launch errors are CUDA's own codes.
constexpr int kBadParameters = -1;

// Returns 0, or the code of the launch that just failed.
inline int LaunchStatus() { return static_cast<int>(cudaGetLastError()); }

#endif  // MSOPS_GPU_KERNEL_TOOLS_H_
