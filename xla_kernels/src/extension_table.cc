#include "extension_table.h"

#include <pybind11/stl.h>

#include <memory>
#include <utility>

#include "../include/msops_extension/table.h"
#include "runner_store.h"

namespace msops {
namespace {

namespace py = pybind11;

constexpr char kRunnerCapsule[] = "msops.extension.runner";

// The functions live as long as the process: modules keep the table.
PyObject* verbs[kMsopsVerbCount] = {};

PyObject* CallVerb(int32_t verb, PyObject* const* arguments, size_t count) {
  if (verb < 0 || verb >= kMsopsVerbCount || !verbs[verb]) {
    PyErr_SetString(PyExc_ImportError,
                    "An extension module asks this msops for what it does not have: build the "
                    "module again, and load it with CustomOpBuilder(...).load().");
    return nullptr;
  }
  return PyObject_Vectorcall(verbs[verb], arguments, count, nullptr);
}

using Owner = std::shared_ptr<const Runner>;

PyObject* OwnRunner(MsopsRunner row) {
  auto owner = std::make_unique<Owner>(std::make_shared<const Runner>(row));
  PyObject* const capsule = PyCapsule_New(owner.get(), kRunnerCapsule, [](PyObject* object) {
    delete static_cast<Owner*>(PyCapsule_GetPointer(object, kRunnerCapsule));
  });
  if (capsule) owner.release();
  return capsule;
}

const Owner& OwnerIn(const py::capsule& capsule) {
  auto* const owner =
      static_cast<const Owner*>(PyCapsule_GetPointer(capsule.ptr(), kRunnerCapsule));
  if (!owner) throw py::error_already_set();
  return *owner;
}

constexpr MsopsTable kTable = {MSOPS_EXTENSION_VERSION, kMsopsVerbCount, CallVerb, OwnRunner};

}  // namespace

void SetExtensionVerbs(const py::sequence& functions) {
  if (functions.size() != kMsopsVerbCount) {
    throw py::value_error("expected " + std::to_string(kMsopsVerbCount) + " verbs; got " +
                          std::to_string(functions.size()));
  }
  for (int32_t verb = 0; verb < kMsopsVerbCount; ++verb) {
    verbs[verb] = py::object(functions[verb]).release().ptr();
  }
}

py::capsule ExtensionTable() { return py::capsule(&kTable, MSOPS_EXTENSION_CAPSULE); }

void LaunchRunner(const py::capsule& runner, const py::sequence& arrays, size_t input_count,
                  const std::vector<size_t>& addresses) {
  std::vector<RunnerArray> read;
  read.reserve(arrays.size());
  for (const py::handle& item : arrays) {
    const auto array = py::reinterpret_borrow<py::tuple>(item);
    read.push_back(
        {array[0].cast<int32_t>(), array[1].cast<std::vector<int64_t>>(),
         array[2].is_none() ? std::vector<int64_t>() : array[2].cast<std::vector<int64_t>>(),
         array[3].cast<int64_t>()});
  }
  std::vector<void*> data;
  for (const size_t address : addresses) data.push_back(reinterpret_cast<void*>(address));
  const RunnerBinding binding(OwnerIn(runner), read, input_count);
  PoolAllocator allocator;
  const py::gil_scoped_release released;
  binding.Launch(data.data(), nullptr, &allocator);
}

void RegisterRunner(const std::string& id, const py::capsule& runner) {
  RunnerStore::Get().Register(id, OwnerIn(runner));
}

}  // namespace msops
