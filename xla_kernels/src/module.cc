// module.cc: the Python module msops._native, and the table of what it has XLA register.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cubin_store.h"
#include "extension_table.h"
#include "ffi_handlers.h"
#include "host_function.h"
#include "host_threads.h"
#include "infer.h"
#include "library_store.h"
#include "nested_calls.h"
#include "python_attributes.h"
#include "python_calls.h"
#include "python_functions.h"
#include "reachable_objects.h"
#include "runner_store.h"
#include "search_report.h"

namespace msops {
namespace {

namespace py = pybind11;

template <typename Pointer>
py::capsule Capsule(Pointer pointer) {
  return py::capsule(reinterpret_cast<const void*>(pointer));
}

py::dict Row(const char* kind, const std::string& name, const char* platform, py::dict capsules) {
  py::dict row;
  row["kind"] = kind;
  row["name"] = name;
  row["platform"] = platform;
  row["capsules"] = std::move(capsules);
  return row;
}

// The state's type has a name that is unique in the process.
std::string StateName(const FfiHandlers& handlers) {
  return std::string(handlers.target) + "_state_" + handlers.platform;
}

// One row per registration. A type stands before the target whose state has it: XLA refuses the
// target otherwise.
py::list Registrations() {
  py::list rows;
  for (const FfiHandlers& handlers :
       {AicpuHandlers(), CpuAotHandlers(), CpuPyfuncHandlers(), CpuRunnerHandlers(),
        IndexHandlers(), CpuForeignHandlers(), CudaForeignHandlers(), RocmForeignHandlers(),
        CudaAotHandlers(), RocmAotHandlers(), CudaLoopHandlers(), CudaLoopHandlersWithScratch(),
        CudaRunnerHandlers(), RocmRunnerHandlers()}) {
    py::dict type;
    type["type_id"] = Capsule(handlers.type_id);
    type["type_info"] = Capsule(handlers.type_info);
    rows.append(Row("type", StateName(handlers), handlers.platform, std::move(type)));
    py::dict target;
    target["instantiate"] = Capsule(handlers.instantiate);
    target["execute"] = Capsule(handlers.execute);
    rows.append(Row("target", handlers.target, handlers.platform, std::move(target)));
  }
  return rows;
}

void RegisterLibrary(const std::string& hash, const std::string& path, const std::string& origin,
                     bool old_string_abi) {
  LibraryStore::Get().Register(hash, path, origin, old_string_abi);
}

void OpenLibrary(const std::string& hash) { LibraryStore::Get().Open(hash, "library"); }

void RegisterCubin(const std::string& hash, const py::bytes& content) {
  CubinStore::Get().Register(hash, content);
}

InferSpec Spec(const std::string& hash, const std::string& symbol, const py::dict& attributes,
               bool multiple) {
  return {hash, symbol, ReadAttributes(attributes), multiple};
}

std::vector<std::vector<int64_t>> PyInferShape(
    const std::string& hash, const std::string& symbol,
    const std::vector<std::vector<int64_t>>& input_shapes,
    const std::vector<std::string>& input_dtypes, const py::dict& attributes, bool multiple) {
  return InferShape(Spec(hash, symbol, attributes, multiple), input_shapes, input_dtypes);
}

std::vector<int> PyInferType(const std::string& hash, const std::string& symbol,
                             const std::vector<int>& input_type_ids, const py::dict& attributes,
                             bool multiple) {
  return InferType(Spec(hash, symbol, attributes, multiple), input_type_ids);
}

}  // namespace
}  // namespace msops

PYBIND11_MODULE(_native, module) {
  using pybind11::arg;
  module.doc() = "Native part of msops: FFI handlers for aot kernels, and the libraries they run.";
  pybind11::register_exception<msops::MissingCompanion>(module, "MissingCompanionError",
                                                        PyExc_RuntimeError);
  module.def("registrations", &msops::Registrations,
             "Returns what to register with jax.ffi, one dict a registration, in this order.");
  module.def("register_library", &msops::RegisterLibrary, arg("hash"), arg("path"), arg("origin"),
             arg("old_string_abi"),
             "Makes the library with this content hash known; it is opened when first used.");
  module.def("open_library", &msops::OpenLibrary, arg("hash"),
             "Opens a registered library, so that what is wrong with it is said now.");
  module.def("register_cubin", &msops::RegisterCubin, arg("hash"), arg("content"),
             "Makes CUDA code with this content hash known; it is loaded when first used.");
  module.def("note_search", &msops::NoteSearch, arg("lines"),
             "Keeps what was found in the folders of MSOPS_LIBRARY_PATH, for messages.");
  module.def("set_cache_finder", &msops::SetCacheFinder, arg("find"),
             "Has find(hash) asked for code that this process does not know; it registers what the "
             "cache has, and returns lines on what it does not have.");
  module.def("set_function_finder", &msops::SetFinder, arg("find"),
             "Has find(id) asked for the Python functions that programs name; it returns the "
             "function, or None.");
  module.def("pacing_hook", &msops::NewHook, arg("allow"), arg("wait"), arg("note"),
             "Returns what JAX is to call behind its calls of programs, as nested_calls.h says.");
  module.def("set_patience", &msops::SetPatience, arg("seconds"),
             "Sets after how long without progress calls of functions on XLA's threads fail.");
  module.def("set_release_patience", &msops::SetReleasePatience, arg("seconds"),
             "Sets for how long a view that is held after a call may yet be released.");
  module.def("find_reachable", &msops::FindReachable, arg("roots"), arg("types"),
             "Returns the objects of these types, or of derived ones, that the roots lead to.");
  module.def("await_functions", &msops::AwaitFunctions, arg("seconds"),
             pybind11::call_guard<pybind11::gil_scoped_release>(),
             "Waits until no Python function of a program runs, for at most so long; returns "
             "whether none does.");
  module.def("infer_shape", &msops::PyInferShape, arg("hash"), arg("symbol"), arg("input_shapes"),
             arg("input_dtypes"), arg("attributes"), arg("multiple"),
             "Returns the output shapes that <symbol>InferShape returns.");
  module.def("infer_type", &msops::PyInferType, arg("hash"), arg("symbol"), arg("input_type_ids"),
             arg("attributes"), arg("multiple"),
             "Returns the output TypeIds that <symbol>InferType returns.");
  module.def("extension_table", &msops::ExtensionTable,
             "Returns the capsule through which extension modules reach msops.");
  module.def("set_extension_verbs", &msops::SetExtensionVerbs, arg("functions"),
             "Says which functions serve the verbs of extension modules.");
  module.def("launch_runner", &msops::LaunchRunner, arg("runner"), arg("arrays"),
             arg("input_count"), arg("addresses"), "Launches a runner on memory, at once.");
  module.def("register_runner", &msops::RegisterRunner, arg("id"), arg("runner"),
             "Makes a runner known to programs by an id, as long as somebody owns it.");
  module.def(
      "count_runners", [] { return msops::RunnerStore::Get().CountAlive(); },
      "Returns how many registered runners are still there.");
  module.attr("ffi_version") = pybind11::make_tuple(XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR);
  msops::BindCalls(module);
}
