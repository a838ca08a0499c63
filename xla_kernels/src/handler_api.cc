#include "handler_api.h"

#include <string>

// What the FFI leaves to the one who calls handlers.
struct XLA_FFI_Error {
  std::string message;
};

namespace msops {
namespace {

XLA_FFI_Error* CreateError(XLA_FFI_Error_Create_Args* args) {
  return new XLA_FFI_Error{args->message ? args->message : ""};
}

void GetMessage(XLA_FFI_Error_GetMessage_Args* args) {
  args->message = args->error->message.c_str();
}

void DestroyError(XLA_FFI_Error_Destroy_Args* args) { delete args->error; }

XLA_FFI_Error* RunTask(XLA_FFI_ThreadPool_Schedule_Args* args) {
  args->task(args->data);
  return nullptr;
}

XLA_FFI_Error* CountThreads(XLA_FFI_ThreadPool_NumThreads_Args* args) {
  *args->num_threads = 1;
  return nullptr;
}

XLA_FFI_Error* GetRunId(XLA_FFI_RunId_Get_Args* args) {
  args->run_id = 0;
  return nullptr;
}

XLA_FFI_Error* GetDevice(XLA_FFI_DeviceOrdinal_Get_Args* args) {
  args->device_ordinal = 0;
  return nullptr;
}

template <typename Args>
XLA_FFI_Error* Refuse(Args*) {
  return new XLA_FFI_Error{"the handler asks for what only a program of XLA has"};
}

XLA_FFI_Api MakeApi() {
  XLA_FFI_Api api{};
  api.struct_size = XLA_FFI_Api_STRUCT_SIZE;
  api.api_version.struct_size = XLA_FFI_Api_Version_STRUCT_SIZE;
  api.api_version.major_version = XLA_FFI_API_MAJOR;
  api.api_version.minor_version = XLA_FFI_API_MINOR;
  api.XLA_FFI_Error_Create = CreateError;
  api.XLA_FFI_Error_GetMessage = GetMessage;
  api.XLA_FFI_Error_Destroy = DestroyError;
  api.XLA_FFI_Handler_Register = Refuse;
  api.XLA_FFI_Stream_Get = Refuse;
  api.XLA_FFI_Type_Register = Refuse;
  api.XLA_FFI_ExecutionContext_Get = Refuse;
  api.XLA_FFI_State_Set = Refuse;
  api.XLA_FFI_State_Get = Refuse;
  api.XLA_FFI_DeviceMemory_Allocate = Refuse;
  api.XLA_FFI_DeviceMemory_Free = Refuse;
  api.XLA_FFI_ThreadPool_Schedule = RunTask;
  api.XLA_FFI_ThreadPool_NumThreads = CountThreads;
  api.XLA_FFI_Future_Create = Refuse;
  api.XLA_FFI_Future_SetAvailable = Refuse;
  api.XLA_FFI_Future_SetError = Refuse;
  api.XLA_FFI_RunId_Get = GetRunId;
  api.XLA_FFI_DeviceOrdinal_Get = GetDevice;
  return api;
}

}  // namespace

const XLA_FFI_Api* LoneHandlerApi() {
  static const XLA_FFI_Api api = MakeApi();
  return &api;
}

}  // namespace msops
