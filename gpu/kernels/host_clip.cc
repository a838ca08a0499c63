// host_clip.cc: y = x with negative elements replaced by 0, for float32, on the host. A GPU reaches
// it through Custom(..., host=True).
#include <cstdint>
#include <cstring>

extern "C" int HostClip(int nparam, void** params, int* ndims, int64_t** shapes,
                        const char** dtypes, void* stream, void* extra) {
  if (nparam != 2 || std::strcmp(dtypes[0], "float32") != 0) return 1;
  const auto* const x = static_cast<const float*>(params[0]);
  auto* const y = static_cast<float*>(params[1]);
  int64_t count = 1;
  for (int i = 0; i < ndims[0]; ++i) count *= shapes[0][i];
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
  return 0;
}
