// fake_libcuda.cc: a libcuda.so.1 that writes each call to the file FAKE_CUDA_LOG names.
//
// Device memory is host memory. A module's content is "<name>:<architecture>"; it loads in contexts
// of the same architecture, which are numbers: stream s belongs to context s / 10.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

std::vector<uintptr_t> current;
std::vector<std::string> modules;
std::vector<std::string> functions;

template <typename... Args>
void Log(const char* format, Args... args) {
  FILE* const file = std::fopen(std::getenv("FAKE_CUDA_LOG"), "a");
  std::fprintf(file, format, args...);
  std::fclose(file);
}

uintptr_t Current() { return current.empty() ? 0 : current.back(); }

}  // namespace

extern "C" {

int cuGetErrorName(int status, const char** name) {
  *name = status == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : nullptr;
  return 0;
}
int cuGetErrorString(int status, const char** text) {
  *text = status == 700 ? "an illegal memory access was encountered" : nullptr;
  return 0;
}
int cuStreamGetCtx(uintptr_t stream, uintptr_t* context) {
  *context = stream / 10;
  return 0;
}
int cuCtxPushCurrent_v2(uintptr_t context) {
  current.push_back(context);
  return 0;
}
int cuCtxPopCurrent_v2(uintptr_t* context) {
  *context = Current();
  current.pop_back();
  return 0;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  static int now = 1;
  std::swap(*mode, now);
  Log("capture mode %d\n", now);
  return 0;
}
int cuModuleLoadData(void** module, const char* content) {
  const std::string text(content);
  const size_t colon = text.find(':');
  Log("load %s in %zu\n", content, Current());
  if (std::stoul(text.substr(colon + 1)) != Current()) return 209;
  modules.push_back(text.substr(0, colon));
  *module = reinterpret_cast<void*>(modules.size());
  return 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  if (std::strcmp(name, "missing") == 0) return 500;
  functions.push_back(modules[reinterpret_cast<size_t>(module) - 1] + "." + name);
  *function = reinterpret_cast<void*>(functions.size());
  return 0;
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared_bytes, uintptr_t stream, void** arguments, void**) {
  const std::string& name = functions[reinterpret_cast<size_t>(function) - 1];
  Log("launch %s %ux%ux%u %ux%ux%u shared %u stream %zu", name.c_str(), gx, gy, gz, bx, by, bz,
      shared_bytes, static_cast<size_t>(stream));
  // A function takes one pointer for each letter behind the last underscore of its name.
  const size_t kinds = name.rfind('_');
  for (size_t i = kinds + 1; i < name.size(); ++i) {
    Log(" %ld", **static_cast<long***>(arguments[i - kinds - 1]));
  }
  Log("\n");
  if (name.find("index") != std::string::npos) **static_cast<int32_t**>(arguments[0]) = 2;
  return name.find("fault") != std::string::npos ? 700 : 0;
}
int cuMemsetD8Async(uintptr_t pointer, unsigned char value, size_t count, uintptr_t) {
  Log("set %zu bytes at %ld to %d\n", count, *reinterpret_cast<long*>(pointer), value);
  return 0;
}
int cuMemcpyDtoDAsync_v2(uintptr_t to, uintptr_t from, size_t count, uintptr_t) {
  Log("copy %zu bytes from %ld to %ld\n", count, *reinterpret_cast<long*>(from),
      *reinterpret_cast<long*>(to));
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, uintptr_t from, size_t count, uintptr_t) {
  std::memcpy(to, reinterpret_cast<void*>(from), count);
  return 0;
}
int cuStreamSynchronize(uintptr_t stream) {
  Log("wait for %zu\n", static_cast<size_t>(stream));
  return 0;
}

}  // extern "C"
