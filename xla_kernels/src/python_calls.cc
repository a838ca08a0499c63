#include "python_calls.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "aicpu_call.h"
#include "call_site.h"
#include "fault_report.h"
#include "interleave.h"
#include "lone_call.h"
#include "message.h"
#include "python_attributes.h"

namespace msops {
namespace {

namespace py = pybind11;

using Addresses = std::vector<uintptr_t>;

constexpr char kPlatform[] = "CPU";
constexpr int kPoison = 0xA4;

constexpr char kRunText[] =
    "Calls the kernel so often on inputs, outputs and workspaces at these addresses; returns after "
    "how many calls an output, given by position and bytes, was not as expected.";

std::vector<void*> Pointers(const Addresses& addresses, size_t expected) {
  if (addresses.size() != expected) {
    throw std::invalid_argument("expected " + std::to_string(expected) + " addresses, got " +
                                std::to_string(addresses.size()));
  }
  std::vector<void*> pointers;
  for (uintptr_t address : addresses) pointers.push_back(reinterpret_cast<void*>(address));
  return pointers;
}

std::unique_ptr<CallSite> MakeAotCall(const std::string& op, const std::string& library,
                                      const std::string& library_name, const std::string& symbol,
                                      std::vector<std::vector<int64_t>> shapes,
                                      std::vector<std::string> dtypes, const py::dict& attributes,
                                      std::vector<size_t> workspaces, bool reentrant) {
  CallSpec spec;
  spec.op = op;
  spec.platform = kPlatform;
  spec.library_hash = library;
  spec.library_name = library_name;
  spec.symbol = symbol;
  spec.shapes = std::move(shapes);
  spec.dtypes = std::move(dtypes);
  spec.attributes = ReadAttributes(attributes);
  spec.workspace_sizes_bytes = std::move(workspaces);
  spec.reentrant = reentrant;
  return std::make_unique<CallSite>(std::move(spec));
}

std::unique_ptr<AicpuCall> MakeAicpuCall(const std::string& op, const std::string& type,
                                         const std::string& library,
                                         const std::string& library_name,
                                         std::vector<std::vector<int64_t>> shapes,
                                         std::vector<std::string> dtypes, size_t input_count,
                                         const py::dict& attributes, bool dynamic_outputs,
                                         bool reentrant) {
  AicpuSpec spec;
  spec.op = op;
  spec.type = type;
  spec.library_hash = library;
  spec.library_name = library_name;
  spec.shapes = std::move(shapes);
  spec.dtypes = std::move(dtypes);
  spec.operand_count = input_count;
  spec.attributes = ReadAttributes(attributes);
  spec.dynamic_outputs = dynamic_outputs;
  spec.reentrant = reentrant;
  return std::make_unique<AicpuCall>(std::move(spec));
}

// An attribute as Python says it: name, dtype (empty of a text), whether it is a list, and bytes.
using TypedAttribute = std::tuple<std::string, std::string, bool, py::bytes>;

std::unique_ptr<LoneCall> MakeForeignCall(const std::string& op, const std::string& library,
                                          const std::string& library_name,
                                          const std::string& symbol,
                                          std::vector<std::vector<int64_t>> shapes,
                                          std::vector<std::string> dtypes, size_t input_count,
                                          const std::vector<TypedAttribute>& attributes,
                                          bool reentrant) {
  ForeignSpec spec;
  spec.op = op;
  spec.library_hash = library;
  spec.library_name = library_name;
  spec.symbol = symbol;
  spec.shapes = std::move(shapes);
  spec.dtypes = std::move(dtypes);
  spec.operand_count = input_count;
  spec.reentrant = reentrant;
  std::vector<LoneAttribute> own;
  for (const auto& [name, dtype, is_list, bytes] : attributes) {
    own.push_back({name, dtype, is_list, bytes});
  }
  return std::make_unique<LoneCall>(std::move(spec), std::move(own));
}

// What a call should leave in an output: the output's position among the arrays, and its bytes.
using Expected = std::vector<std::pair<size_t, std::string>>;

// Calls a kernel `repeats` times; returns after how many of them an output was not as expected.
// The GIL is not held, so that Python's threads can run a kernel side by side.
template <typename Call>
int Repeat(int repeats, const std::vector<void*>& pointers, const Expected& expected, Call&& call) {
  for (const auto& [position, bytes] : expected) {
    if (position >= pointers.size()) throw std::invalid_argument("no such output");
  }
  const py::gil_scoped_release released;
  int differing = 0;
  for (int i = 0; i < repeats; ++i) {
    // What a call writes after its return is missing; what it does not write, the last one did.
    for (const auto& [position, bytes] : expected) {
      std::memset(pointers[position], kPoison, bytes.size());
    }
    call();
    differing += std::any_of(expected.begin(), expected.end(), [&](const auto& output) {
      return std::memcmp(pointers[output.first], output.second.data(), output.second.size()) != 0;
    });
  }
  return differing;
}

int RunAot(CallSite& site, const Addresses& addresses, int repeats, const Expected& expected) {
  const std::vector<void*> pointers = Pointers(addresses, site.parameter_count());
  // A kernel may use the array of pointers as it likes: each call of a program has its own.
  std::vector<void*> own(pointers.size());
  const int differing = Repeat(repeats, pointers, expected, [&] {
    std::copy(pointers.begin(), pointers.end(), own.begin());
    site.Run(own.data(), nullptr);
  });
  if (!site.is_intact()) {
    throw std::runtime_error(Explain(site.Who(), "kernel wrote to its ndims, shapes or dtypes", {},
                                     "They are those of later calls, too: write to copies."));
  }
  return differing;
}

int RunAicpu(AicpuCall& call, const Addresses& addresses, int repeats, const Expected& expected) {
  std::vector<void*> pointers = Pointers(addresses, call.spec().shapes.size());
  return Repeat(repeats, pointers, expected, [&] { call.Run(pointers.data(), 1); });
}

int RunForeign(const LoneCall& call, const Addresses& addresses, int repeats,
               const Expected& expected) {
  const std::vector<void*> pointers = Pointers(addresses, call.spec().shapes.size());
  return Repeat(repeats, pointers, expected, [&] { call.Run(pointers); });
}

}  // namespace

void BindCalls(py::module_& module) {
  using py::arg;
  py::class_<CallSite>(module, "AotCall",
                       "An aot kernel bound to one call; its Init runs at construction.")
      .def(py::init(&MakeAotCall), arg("op"), arg("library"), arg("library_name"), arg("symbol"),
           arg("shapes"), arg("dtypes"), arg("attributes"), arg("workspaces"), arg("reentrant"))
      .def_property_readonly("workspace_sizes", &CallSite::workspace_sizes_bytes,
                             "Sizes in bytes of the memory that the kernel gets behind its arrays.")
      .def("run", &RunAot, arg("addresses"), arg("repeats") = 1, arg("expected") = Expected(),
           kRunText);
  py::class_<AicpuCall>(module, "AicpuCall", "An AICPU kernel bound to one call.")
      .def(py::init(&MakeAicpuCall), arg("op"), arg("type"), arg("library"), arg("library_name"),
           arg("shapes"), arg("dtypes"), arg("input_count"), arg("attributes"),
           arg("dynamic_outputs"), arg("reentrant"))
      .def_property_readonly(
          "workspace_sizes", [](const AicpuCall&) { return std::vector<size_t>(); },
          "Empty: AICPU kernels allocate for themselves.")
      .def("run", &RunAicpu, arg("addresses"), arg("repeats") = 1, arg("expected") = Expected(),
           kRunText);
  py::class_<LoneCall>(module, "ForeignCall", "A handler of XLA's FFI bound to one call.")
      .def(py::init(&MakeForeignCall), arg("op"), arg("library"), arg("library_name"),
           arg("symbol"), arg("shapes"), arg("dtypes"), arg("input_count"), arg("attributes"),
           arg("reentrant"))
      .def_property_readonly(
          "workspace_sizes", [](const LoneCall&) { return std::vector<size_t>(); },
          "Empty: handlers allocate for themselves.")
      .def("run", &RunForeign, arg("addresses"), arg("repeats") = 1, arg("expected") = Expected(),
           kRunText);
  module.def("report_faults", &ReportFaults, arg("file_descriptor"),
             "Has crashes of this process written to a file, as fault_report.h describes.");
  module.def("nap_on_signal", &NapOnSignal, arg("signal"),
             "Has threads that receive the signal stop for a moment, as interleave.h describes.");
}

}  // namespace msops
