// run_call.cc: builds and runs a CudaCall as the command line says, with buffers 0, 1, 2, ...
//
//   run_call CUBINS FUNCTIONS PLAN ARRAYS WORKSPACES CHECKS STREAM...
//
// Lists have commas. Cubin h of CUBINS is registered with h as its content, unless h begins with a
// dash. Each buffer starts with its number. What goes wrong is printed.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "call_table.h"
#include "cubin_store.h"
#include "cuda_call.h"

namespace {

std::vector<int64_t> Numbers(const char* text) {
  std::vector<int64_t> numbers;
  for (const std::string& word : msops::SplitNames(text)) numbers.push_back(std::stoll(word));
  return numbers;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    msops::CudaCallSpec spec;
    spec.op = "lu";
    spec.cubins = msops::SplitNames(argv[1]);
    spec.functions = msops::SplitNames(argv[2]);
    spec.plan = Numbers(argv[3]);
    spec.platform = "GPU";
    spec.shapes.resize(std::stoul(argv[4]));
    spec.workspace_sizes_bytes = Numbers(argv[5]);
    spec.checks = msops::SplitNames(argv[6]);
    for (const std::string& content : spec.cubins) {
      if (content[0] != '-') msops::CubinStore::Get().Register(content, content);
    }
    msops::CudaCall call(spec);
    std::printf("%zu buffers, %zu bytes\n", call.parameter_count(), call.workspace_bytes());
    std::vector<std::vector<char>> arrays(spec.shapes.size(), std::vector<char>(64));
    std::vector<char> block(call.workspace_bytes() + 64);
    std::vector<void*> buffers(call.parameter_count());
    for (size_t i = 0; i < arrays.size(); ++i) buffers[i] = arrays[i].data();
    call.PlaceWorkspaces(block.data(), buffers.data());
    for (size_t i = 0; i < buffers.size(); ++i) *static_cast<long*>(buffers[i]) = i;
    for (int i = 7; i < argc; ++i) {
      call.Run(buffers.data(), reinterpret_cast<void*>(std::stoul(argv[i])));
    }
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
  }
}
