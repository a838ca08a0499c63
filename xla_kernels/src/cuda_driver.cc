#include "cuda_driver.h"

#include <dlfcn.h>

#include <stdexcept>

#include "message.h"

namespace msops {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";
constexpr char kInstallDriver[] =
    "Install NVIDIA's driver for this GPU, or put the folder of libcuda.so.1 on LD_LIBRARY_PATH.";

template <typename Pointer>
void Find(void* library, const char* symbol, Pointer* pointer) {
  *pointer = reinterpret_cast<Pointer>(dlsym(library, symbol));
  if (*pointer) return;
  throw std::runtime_error(Explain(
      "CUDA", std::string("expected ") + symbol + " in " + kLibrary + ", found a driver without it",
      {}, "Update NVIDIA's driver."));
}

CudaDriver Open() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* const reason = dlerror();
    throw std::runtime_error(Explain("CUDA",
                                     std::string("the driver ") + kLibrary + " does not open",
                                     {reason ? reason : "no reason was given"}, kInstallDriver));
  }
  CudaDriver driver;
  Find(library, "cuGetErrorName", &driver.get_error_name);
  Find(library, "cuGetErrorString", &driver.get_error_string);
  Find(library, "cuStreamGetCtx", &driver.stream_get_context);
  Find(library, "cuCtxPushCurrent_v2", &driver.context_push);
  Find(library, "cuCtxPopCurrent_v2", &driver.context_pop);
  Find(library, "cuThreadExchangeStreamCaptureMode", &driver.exchange_capture_mode);
  Find(library, "cuModuleLoadData", &driver.module_load_data);
  Find(library, "cuModuleGetFunction", &driver.module_get_function);
  Find(library, "cuLaunchKernel", &driver.launch_kernel);
  Find(library, "cuMemsetD8Async", &driver.memset_bytes);
  Find(library, "cuMemcpyDtoDAsync_v2", &driver.copy_on_device);
  Find(library, "cuMemcpyDtoHAsync_v2", &driver.copy_to_host);
  Find(library, "cuStreamSynchronize", &driver.stream_synchronize);
  return driver;
}

}  // namespace

const CudaDriver& CudaDriver::Get() {
  static const CudaDriver driver = Open();
  return driver;
}

void CudaDriver::Check(Status status, const std::string& who, const char* call) const {
  if (status == kSuccess) return;
  const char* name = nullptr;
  const char* description = nullptr;
  get_error_name(status, &name);
  get_error_string(status, &description);
  throw std::runtime_error(
      Explain(who, std::string(call) + " failed with error " + std::to_string(status),
              {std::string(name ? name : "an error this driver does not know") + ": " +
               (description ? description : "no description")},
              "If kernels ran before, one of them may have failed: JAX reports such errors at a "
              "later call."));
}

CudaContextScope::CudaContextScope(const CudaDriver& driver, CudaDriver::Stream stream,
                                   const std::string& who)
    : driver_(driver) {
  driver.Check(driver.stream_get_context(stream, &context_), who, "cuStreamGetCtx");
  driver.Check(driver.context_push(context_), who, "cuCtxPushCurrent");
}

CudaContextScope::~CudaContextScope() {
  CudaDriver::Context popped;
  driver_.context_pop(&popped);
}

}  // namespace msops
