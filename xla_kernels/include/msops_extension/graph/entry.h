// entry.h: the function through which msops calls the graph operators of a module.
#ifndef MSOPS_EXTENSION_GRAPH_ENTRY_H_
#define MSOPS_EXTENSION_GRAPH_ENTRY_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "msops_extension/graph/call.h"

namespace msops::extension {

using InferTable = std::map<std::string, mindspore::ops::OpFuncImpl*>;

// Returns a new reference to a function of Python. For the arguments (name) it gives the positions
// of tensors whose values the operator's infer functions ask for; for (name, names of the
// arguments, results, written, values, contents, labels) it makes a call and gives the handles of
// its results.
inline PyObject* MakeGraphEntry(InferTable table) {
  py::cpp_function entry([table = std::move(table)](const py::args& arguments) -> py::object {
    GraphDefinition definition;
    definition.name = TextOf(PyTuple_GET_ITEM(arguments.ptr(), 0));
    definition.infer = table.at(definition.name);
    if (PyTuple_GET_SIZE(arguments.ptr()) == 1) {
      const auto positions = definition.infer->GetValueDependArgIndices();
      return Numbers({positions.begin(), positions.end()});
    }
    PyObject* const names = PyTuple_GET_ITEM(arguments.ptr(), 1);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
      definition.arguments.push_back(TextOf(PyTuple_GET_ITEM(names, i)));
    }
    definition.results = AsNumbers(PyTuple_GET_ITEM(arguments.ptr(), 2));
    definition.written = AsNumbers(PyTuple_GET_ITEM(arguments.ptr(), 3));
    GraphCall call(std::move(definition), PyTuple_GET_ITEM(arguments.ptr(), 4),
                   PyTuple_GET_ITEM(arguments.ptr(), 5), PyTuple_GET_ITEM(arguments.ptr(), 6));
    return call.Run();
  });
  return entry.release().ptr();
}

}  // namespace msops::extension

#endif  // MSOPS_EXTENSION_GRAPH_ENTRY_H_
