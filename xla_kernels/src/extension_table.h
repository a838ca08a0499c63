// extension_table.h: this side of the C function table that extension modules take.
#ifndef MSOPS_EXTENSION_TABLE_HOST_H_
#define MSOPS_EXTENSION_TABLE_HOST_H_

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

namespace msops {

// Says which Python functions serve the verbs of MsopsVerb, in that order.
void SetExtensionVerbs(const pybind11::sequence& functions);

// Returns the capsule with the table.
pybind11::capsule ExtensionTable();

// Launches a runner at once. Each array is (type id, shape, strides or None, offset).
void LaunchRunner(const pybind11::capsule& runner, const pybind11::sequence& arrays,
                  size_t input_count, const std::vector<size_t>& addresses);

// Makes a runner known to programs by an id.
void RegisterRunner(const std::string& id, const pybind11::capsule& runner);

}  // namespace msops

#endif  // MSOPS_EXTENSION_TABLE_HOST_H_
