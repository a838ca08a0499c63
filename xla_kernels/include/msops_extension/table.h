// table.h: the C function table through which extension modules and msops meet.
//
// A module is built long before, or after, the msops that loads it, by whatever compiler and
// pybind11 the user has. So nothing of C++ crosses: msops._native hands out one table in a capsule,
// a module takes it when it is loaded, and refuses a table that is not of its version.
#ifndef MSOPS_EXTENSION_TABLE_H_
#define MSOPS_EXTENSION_TABLE_H_

#include <Python.h>

#include <cstddef>
#include <cstdint>

extern "C" {

// Raise it when any of the below changes its meaning or layout.
#define MSOPS_EXTENSION_VERSION 2
#define MSOPS_EXTENSION_CAPSULE "msops.extension.v2"

// What a module asks of msops: verbs with Python objects as arguments and results. The order is
// that of the methods in msops/_extension/verbs.py.
enum MsopsVerb : int32_t {
  kMsopsFromPython,   // (object) -> handle, or None if the object is no tensor
  kMsopsToPython,     // (handle) -> what the caller of the function gets
  kMsopsEmpty,        // (type id, shape) -> handle without data
  kMsopsLayout,       // (handle) -> (type id, shape, strides in elements, offset in elements)
  kMsopsAddress,      // (handle) -> address of its first entry
  kMsopsIsTraced,     // (handles) -> whether one of them is being traced
  kMsopsMethod,       // (name, handle, *arguments) -> handle, or a tuple of them
  kMsopsFactory,      // (name, value or shape, type id) -> handle
  kMsopsAssign,       // (target handle, source handle) -> None
  kMsopsLaunchAclnn,  // (name, inputs, outputs or None, op) -> None
  kMsopsRun,          // (op, runner capsule, inputs, outputs, strided flags) -> None
  kMsopsApply,        // (name, tensors, others, is_tensor, trace) -> output handles
  kMsopsVerbCount
};

// An array as a kernel sees it.
typedef struct {
  int32_t type_id;  // a number of mindspore::TypeId
  int64_t rank;
  const int64_t* shape;    // `rank` extents
  const int64_t* strides;  // `rank` strides in elements; null for a dense, row-major array
  int64_t offset;          // in elements from the first entry of the memory it is a view of
} MsopsArray;

// What one execution of a runner gets. Pointers are valid until the call returns.
typedef struct {
  void* const* data;  // addresses of the first entries: inputs, then outputs
  void* stream;       // the device's stream; null on CPU
  void* context;      // for the two functions
  void* (*allocate)(void* context, size_t size_bytes);  // workspace; null if there is none left
  void (*fail)(void* context, const char* message);     // says why `launch` returned 0
} MsopsExecution;

// A runner of a module. `bind` makes what one call site needs, for arrays that never change;
// `launch` may be called from several threads at a time, without the GIL.
typedef struct {
  void* self;
  void* (*bind)(void* self, const MsopsArray* arrays, size_t inputs, size_t outputs);
  int (*launch)(void* binding, const MsopsExecution* execution);
  void (*unbind)(void* binding);
  void (*destroy)(void* self);
} MsopsRunner;

typedef struct {
  int32_t version;
  int32_t verb_count;
  // Returns a new reference, or null with a Python error set. Needs the GIL.
  PyObject* (*call)(int32_t verb, PyObject* const* arguments, size_t count);
  // Takes over a runner; returns a Python object that owns it, or null with an error set.
  PyObject* (*own_runner)(MsopsRunner runner);
} MsopsTable;

}  // extern "C"

#endif  // MSOPS_EXTENSION_TABLE_H_
