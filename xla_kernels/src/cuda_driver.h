// cuda_driver.h: the few functions of the CUDA driver that it takes to run a generated kernel.
//
// The driver is opened at run time, so that the module loads where there is none; what is declared
// here is the stable binary interface of libcuda.so.1, which cuda.h declares too.
#ifndef MSOPS_CUDA_DRIVER_H_
#define MSOPS_CUDA_DRIVER_H_

#include <cstddef>
#include <string>

namespace msops {

struct CudaDriver {
  using Status = int;
  using Context = void*;
  using Module = void*;
  using Function = void*;
  using Stream = void*;
  using DevicePointer = unsigned long long;

  static constexpr Status kSuccess = 0;
  static constexpr Status kNoBinaryForGpu = 209;
  static constexpr int kCaptureModeRelaxed = 2;

  static DevicePointer Address(const void* pointer) {
    return reinterpret_cast<DevicePointer>(pointer);
  }

  // The driver of the process. Throws std::runtime_error with what to do if there is none.
  static const CudaDriver& Get();

  // Throws std::runtime_error, in the name of `who`, unless `status` is kSuccess. `call` is the
  // function that returned it.
  void Check(Status status, const std::string& who, const char* call) const;

  Status (*get_error_name)(Status, const char**);
  Status (*get_error_string)(Status, const char**);
  Status (*stream_get_context)(Stream, Context*);
  Status (*context_push)(Context);
  Status (*context_pop)(Context*);
  Status (*exchange_capture_mode)(int*);
  Status (*module_load_data)(Module*, const void*);
  Status (*module_get_function)(Function*, Module, const char*);
  Status (*launch_kernel)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, Stream, void**, void**);
  Status (*memset_bytes)(DevicePointer, unsigned char, size_t, Stream);
  Status (*copy_on_device)(DevicePointer, DevicePointer, size_t, Stream);
  Status (*copy_to_host)(void*, DevicePointer, size_t, Stream);
  Status (*stream_synchronize)(Stream);
};

// Makes the context of a stream the thread's current one for as long as it lives.
class CudaContextScope {
 public:
  CudaContextScope(const CudaDriver& driver, CudaDriver::Stream stream, const std::string& who);
  ~CudaContextScope();
  CudaContextScope(const CudaContextScope&) = delete;
  CudaContextScope& operator=(const CudaContextScope&) = delete;

  CudaDriver::Context context() const { return context_; }

 private:
  const CudaDriver& driver_;
  CudaDriver::Context context_ = nullptr;
};

}  // namespace msops

#endif  // MSOPS_CUDA_DRIVER_H_
